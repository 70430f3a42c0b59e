-- report_warnings: what is wrong or missing in the data, worst first.
--
-- grain: one row per (trace_id, code, message)
-- reads: warnings
--
-- columns:
--   trace_id BIGINT - the trace; NULL when it concerns all
--   code VARCHAR - of a closed set
--   severity VARCHAR - 'error', 'warning' or 'info'
--   count BIGINT - how many
--   message VARCHAR - what was found
--   hint VARCHAR - what to do
SELECT
    trace_id,
    code,
    severity,
    count::BIGINT AS count,
    message,
    hint
FROM warnings
ORDER BY CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, code, trace_id, message, hint
