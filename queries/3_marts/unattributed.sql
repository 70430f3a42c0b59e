-- unattributed: executions of the capture that no range names, by name.
-- grain: one row per (trace, name, kernel class, reason)
-- reads: gpu_executions
-- columns:
--   trace_id BIGINT - capture
--   name VARCHAR - kernel or kind of copy
--   kernel_class VARCHAR - class by the name's rules
--   count BIGINT - executions
--   busy_ns BIGINT ns sum of their times
--   reason VARCHAR - no API call in the capture, no range at the launch, or only a step range
SELECT
    trace_id,
    name,
    kernel_class,
    count(*) AS count,
    sum(end_ns - start_ns)::BIGINT AS busy_ns,
    CASE
        WHEN operator = '(step)' THEN 'only a step range at the launch'
        WHEN api_call_id IS NULL THEN 'no API call in the capture'
        ELSE 'no range at the launch'
    END AS reason
FROM gpu_executions
WHERE operator IN ('(unattributed)', '(step)') AND is_valid
GROUP BY ALL
ORDER BY trace_id, busy_ns DESC, name, reason
