-- _step_busy: busy time of a process inside each of its steps, with the tails of executions that began before.
-- grain: one row per (trace, process, step) with an execution inside
-- reads: _executions, _step_windows, _process_keys
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   step BIGINT - step
--   busy_ns BIGINT ns union over the devices of the process
WITH executions AS (
    SELECT
        start_ns, end_ns,
        start_ns + shift_ns AS start_key,
        end_ns + shift_ns AS end_key
    FROM _executions
    INNER JOIN _process_keys USING (trace_id, process_id)
    WHERE is_valid
),

windows AS (
    SELECT
        trace_id, process_id, step, start_ns, end_ns,
        start_ns + shift_ns AS start_key,
        end_ns + shift_ns AS end_key
    FROM _step_windows
    INNER JOIN _process_keys USING (trace_id, process_id)
),

clipped AS (
    SELECT
        windows.trace_id, windows.process_id, windows.step,
        greatest(executions.start_ns, windows.start_ns) AS start_ns,
        least(executions.end_ns, windows.end_ns) AS end_ns
    FROM executions
    INNER JOIN windows ON executions.start_key < windows.end_key AND executions.end_key > windows.start_key
),

ordered AS (
    SELECT
        *,
        coalesce(max(end_ns) OVER (
            PARTITION BY trace_id, process_id, step
            ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), start_ns) AS covered_ns
    FROM clipped
)

SELECT
    trace_id, process_id, step,
    sum(greatest(end_ns - greatest(start_ns, covered_ns), 0))::BIGINT AS busy_ns
FROM ordered
GROUP BY trace_id, process_id, step
