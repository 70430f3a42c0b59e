-- _step_works: model work of the steps as stated by the user or by their annotations.
-- grain: one row per (trace, process, phase)
-- reads: _step_windows, _step_ranges, _options, raw_untraced_steps
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   phase VARCHAR - phase
--   step_count BIGINT - measured steps
--   wall_ns BIGINT ns their windows together
--   flop DOUBLE FLOP model FLOP of all of them, NULL unless every one states it
--   is_user BOOLEAN - stated by the user
--   items DOUBLE - items of all of them, NULL unless every one states it
--   untraced_step_ns DOUBLE ns mean of the steps timed before the capture, NULL when none were
--   untraced_count BIGINT - steps timed before the capture
WITH untraced AS (
    SELECT
        trace_id,
        avg(wall_ns) AS step_ns,
        count(*) AS step_count
    FROM raw_untraced_steps
    GROUP BY trace_id
),

timed AS (
    SELECT trace_id, count(DISTINCT process_id) * count(DISTINCT phase) AS groups
    FROM _step_windows
    GROUP BY trace_id
)

SELECT
    _step_windows.trace_id,
    _step_windows.process_id,
    _step_windows.phase,
    count(*) AS step_count,
    sum(_step_windows.end_ns - _step_windows.start_ns)::BIGINT AS wall_ns,
    CASE
        WHEN any_value(_options.step_flop) IS NOT NULL THEN any_value(_options.step_flop) * count(*)
        WHEN count(_step_ranges.flop) = count(*) THEN sum(_step_ranges.flop)
    END AS flop,
    any_value(_options.step_flop) IS NOT NULL AS is_user,
    CASE
        WHEN any_value(_options.step_items) IS NOT NULL THEN any_value(_options.step_items) * count(*)
        WHEN count(coalesce(_step_ranges.items, _step_ranges.tokens)) = count(*)
            THEN sum(coalesce(_step_ranges.items, _step_ranges.tokens))
    END AS items,
    any_value(CASE WHEN timed.groups = 1 THEN untraced.step_ns END) AS untraced_step_ns,
    coalesce(any_value(CASE WHEN timed.groups = 1 THEN untraced.step_count END), 0) AS untraced_count
FROM _step_windows
INNER JOIN _step_ranges USING (trace_id, process_id, step)
INNER JOIN timed ON _step_windows.trace_id = timed.trace_id
CROSS JOIN _options
LEFT JOIN untraced ON _step_windows.trace_id = untraced.trace_id
WHERE _step_windows.is_measured
GROUP BY _step_windows.trace_id, _step_windows.process_id, _step_windows.phase
