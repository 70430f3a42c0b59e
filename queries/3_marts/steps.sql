-- steps: steps on the GPU timeline.
-- grain: one row per (trace, process, step) with compute on the GPU
-- reads: _step_windows, _step_ranges, _step_busy, operator_calls, _executions, _device_rates
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   step BIGINT - number from 0 in start order
--   step_label VARCHAR - text as captured; labels may repeat
--   phase VARCHAR - phase, '' when there is one
--   start_ns BIGINT ns first compute execution launched in the step
--   end_ns BIGINT ns that of the next step, or the step's own last execution
--   wall_ns BIGINT ns end_ns - start_ns
--   busy_ns BIGINT ns union of the executions of the process inside, over its devices
--   is_measured BOOLEAN - false: first of three or more, left out of every headline
--   is_contiguous BOOLEAN - ends where the next one starts
--   items DOUBLE - items that the step states
--   tokens DOUBLE - tokens that the step states
--   flop DOUBLE FLOP model FLOP: stated by the step, else the sum of its operator calls
--   bytes DOUBLE B sum of its operator calls
--   mfu_pct DOUBLE % flop of wall_ns at the reference peak of all devices of the process
--   hfu_pct DOUBLE % the same with extra FLOP
--   mbu_pct DOUBLE % bytes of wall_ns at the datasheet bandwidth
WITH works AS (
    SELECT
        trace_id, process_id, step,
        sum(flop) AS flop,
        sum(flop + extra_flop) AS executed_flop,
        sum(bytes) AS bytes
    FROM operator_calls
    WHERE step IS NOT NULL
    GROUP BY trace_id, process_id, step
),

rates AS (
    SELECT
        used.trace_id, used.process_id,
        if(count(reference_flop_per_s) = count(*), sum(reference_flop_per_s), NULL) AS flop_per_s,
        if(count(bytes_per_s) = count(*), sum(bytes_per_s), NULL) AS bytes_per_s
    FROM (SELECT DISTINCT trace_id, process_id, device_id FROM _executions WHERE is_valid) AS used
    LEFT JOIN _device_rates USING (trace_id, device_id)
    GROUP BY used.trace_id, used.process_id
)

SELECT
    trace_id, process_id, step, _step_ranges.step_label, _step_windows.phase, _step_windows.start_ns, _step_windows.end_ns,
    _step_windows.end_ns - _step_windows.start_ns AS wall_ns,
    coalesce(busy.busy_ns, 0) AS busy_ns,
    is_measured, is_contiguous, items, tokens,
    coalesce(_step_ranges.flop, works.flop) AS flop,
    works.bytes,
    if(wall_ns > 0, 100 * 1e9 * coalesce(_step_ranges.flop, works.flop) / wall_ns / rates.flop_per_s, NULL) AS mfu_pct,
    if(
        wall_ns > 0,
        100 * 1e9 * (coalesce(_step_ranges.flop, works.flop) + coalesce(works.executed_flop - works.flop, 0))
        / wall_ns / rates.flop_per_s, NULL
    ) AS hfu_pct,
    if(wall_ns > 0, 100 * 1e9 * works.bytes / wall_ns / rates.bytes_per_s, NULL) AS mbu_pct
FROM _step_windows
INNER JOIN _step_ranges USING (trace_id, process_id, step)
LEFT JOIN works USING (trace_id, process_id, step)
LEFT JOIN rates USING (trace_id, process_id)
LEFT JOIN _step_busy AS busy USING (trace_id, process_id, step)
ORDER BY trace_id, process_id, step
