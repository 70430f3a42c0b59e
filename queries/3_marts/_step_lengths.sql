-- _step_lengths: spread of the measured steps, and the rule that found them.
-- grain: one row per (trace, phase)
-- reads: _step_windows, _step_ranges
-- columns:
--   trace_id BIGINT - capture
--   phase VARCHAR - phase
--   step_rule VARCHAR - rule
--   median_ns DOUBLE ns median
--   p95_ns DOUBLE ns 95th percentile, interpolated
--   p5_ns DOUBLE ns 5th percentile, interpolated
SELECT
    _step_windows.trace_id, _step_windows.phase,
    any_value(_step_ranges.rule) AS step_rule,
    quantile_cont(_step_windows.end_ns - _step_windows.start_ns, 0.5) AS median_ns,
    quantile_cont(_step_windows.end_ns - _step_windows.start_ns, 0.95) AS p95_ns,
    quantile_cont(_step_windows.end_ns - _step_windows.start_ns, 0.05) AS p5_ns
FROM _step_windows
INNER JOIN _step_ranges USING (trace_id, process_id, step)
WHERE _step_windows.is_measured
GROUP BY _step_windows.trace_id, _step_windows.phase
