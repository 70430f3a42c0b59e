-- _summary_totals: windows of a phase summed over processes and devices.
-- grain: one row per (trace, phase)
-- reads: _windows, _step_works, _device_rates, _clocks, coverage
-- columns:
--   trace_id BIGINT - capture
--   phase VARCHAR - phase
--   device_name VARCHAR - GPUs that did the work
--   gpu_count BIGINT - GPUs
--   process_count BIGINT - processes
--   step_count HUGEINT - measured steps over all processes
--   wall_ns DOUBLE ns wall time summed over devices (one that several processes use counts once), the untraced one where known
--   step_ns DOUBLE ns mean step
--   traced_step_ns DOUBLE ns mean measured step in the capture
--   untraced_step_ns DOUBLE ns mean step before the capture
--   untraced_n BIGINT - steps timed before the capture
--   busy_pct DOUBLE % of the windows in which a device executes something
--   reference_dtype VARCHAR - type of the reference peak
--   reference_flop_per_s DOUBLE FLOP/s reference peak of one GPU
--   bytes_per_s DOUBLE B/s bandwidth of one GPU
--   has_peaks BOOLEAN - the reference peak of every device is known
--   stated_flop DOUBLE FLOP stated for all steps, NULL unless every process states it
--   is_user BOOLEAN - the user stated the FLOP
--   attributed_pct DOUBLE % of busy time with an operator
--   costed_pct DOUBLE % of busy time with a cost
--   items_per_s DOUBLE 1/s items over all processes
--   energy_j_per_step DOUBLE J energy of a step
--   sm_clock_hz DOUBLE Hz mean SM clock
--   window_ns BIGINT ns longest sum of windows of a device
WITH windows AS (
    SELECT
        trace_id, phase, process_id, device_id,
        sum(end_ns - start_ns)::BIGINT AS traced_ns
    FROM _windows
    GROUP BY trace_id, phase, process_id, device_id
),

places AS (
    SELECT
        windows.*, coalesce(_step_works.step_count, 0) AS steps, _step_works.items, _step_works.flop,
        coalesce(_step_works.untraced_step_ns * _step_works.step_count, windows.traced_ns) AS wall_ns,
        _step_works.untraced_step_ns, _step_works.untraced_count, _step_works.is_user,
        rates.device_name, rates.reference_dtype, rates.reference_flop_per_s, rates.bytes_per_s,
        _clocks.sm_clock_hz, _clocks.joule_per_ns, coverage.attributed_pct, coverage.costed_pct, coverage.busy_ns,
        windows.device_id = min(windows.device_id) OVER (PARTITION BY windows.trace_id, windows.phase, windows.process_id) AS is_first,
        row_number() OVER (
            PARTITION BY windows.trace_id, windows.phase, windows.device_id ORDER BY windows.traced_ns DESC, windows.process_id
        ) = 1 AS is_longest
    FROM windows
    LEFT JOIN _step_works USING (trace_id, process_id, phase)
    LEFT JOIN _device_rates AS rates USING (trace_id, device_id)
    LEFT JOIN _clocks USING (trace_id, device_id)
    LEFT JOIN coverage USING (trace_id, process_id, device_id, phase)
)

SELECT
    trace_id, phase,
    string_agg(DISTINCT device_name, ', ' ORDER BY device_name) AS device_name,
    count(DISTINCT device_id) AS gpu_count,
    count(DISTINCT process_id) AS process_count,
    sum(steps) FILTER (WHERE is_first) AS step_count,
    sum(wall_ns) FILTER (WHERE is_longest) AS wall_ns,
    sum(wall_ns) FILTER (WHERE is_first) / nullif(sum(steps) FILTER (WHERE is_first), 0) AS step_ns,
    sum(traced_ns) FILTER (WHERE is_first) / nullif(sum(steps) FILTER (WHERE is_first), 0) AS traced_step_ns,
    any_value(untraced_step_ns) AS untraced_step_ns,
    coalesce(max(untraced_count), 0) AS untraced_n,
    100.0 * sum(busy_ns) / sum(traced_ns) AS busy_pct,
    min(reference_dtype) AS reference_dtype,
    min(reference_flop_per_s) AS reference_flop_per_s,
    min(bytes_per_s) AS bytes_per_s,
    count(reference_flop_per_s) = count(*) AS has_peaks,
    if(count(flop) = count(*), sum(flop) FILTER (WHERE is_first), NULL) AS stated_flop,
    coalesce(bool_or(is_user), false) AS is_user,
    sum(attributed_pct * busy_ns) / sum(busy_ns) FILTER (WHERE attributed_pct IS NOT NULL) AS attributed_pct,
    sum(costed_pct * busy_ns) / sum(busy_ns) FILTER (WHERE costed_pct IS NOT NULL) AS costed_pct,
    1e9 * sum(items / (wall_ns / steps) / steps) FILTER (WHERE is_first AND steps > 0) AS items_per_s,
    sum(joule_per_ns * wall_ns / nullif(steps, 0)) FILTER (WHERE is_longest) AS energy_j_per_step,
    avg(sm_clock_hz) AS sm_clock_hz,
    max(traced_ns) AS window_ns
FROM places
GROUP BY trace_id, phase
