-- _window_executions: executions clipped to the windows.
-- grain: one row per (execution, window that it overlaps)
-- reads: gpu_executions, _windows, _sweep, _place_keys
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   device_id BIGINT - device
--   phase VARCHAR - phase of the window
--   gpu_execution_id BIGINT - execution
--   operator_call_id BIGINT - operator call
--   execution_class VARCHAR - compute, copy or communication
--   start_ns BIGINT ns start inside the window
--   end_ns BIGINT ns end inside the window
--   exclusive_ns DOUBLE ns share of the compute time of the window
WITH executions AS (
    SELECT
        gpu_executions.trace_id, process_id, device_id, gpu_execution_id, operator_call_id, execution_class, start_ns, end_ns,
        start_ns + shift_ns AS start_key,
        end_ns + shift_ns AS end_key
    FROM gpu_executions
    INNER JOIN _place_keys USING (trace_id, process_id, device_id)
    WHERE is_valid
),

windows AS (
    SELECT
        phase,
        start_ns,
        end_ns,
        start_ns + shift_ns AS start_key,
        end_ns + shift_ns AS end_key
    FROM _windows
    INNER JOIN _place_keys USING (trace_id, process_id, device_id)
),

-- an execution of zero length belongs to the window that it starts in, or to the one that ends with it
clipped AS (
    SELECT
        executions.* EXCLUDE (start_ns, end_ns, start_key, end_key),
        windows.phase,
        greatest(executions.start_ns, windows.start_ns) AS start_ns,
        least(executions.end_ns, windows.end_ns) AS end_ns
    FROM executions
    INNER JOIN windows ON executions.start_key <= windows.end_key AND executions.end_key >= windows.start_key
    WHERE
        least(executions.end_ns, windows.end_ns) > greatest(executions.start_ns, windows.start_ns)
        OR (executions.start_ns = executions.end_ns AND executions.start_ns < windows.end_ns)
)

SELECT
    clipped.trace_id, clipped.process_id, clipped.device_id, clipped.phase, gpu_execution_id, operator_call_id,
    execution_class, clipped.start_ns, clipped.end_ns,
    if(execution_class = 'compute', after.share_ns - before.share_ns, 0) AS exclusive_ns
FROM clipped
INNER JOIN _sweep AS before
    ON
        clipped.trace_id = before.trace_id
        AND clipped.process_id = before.process_id
        AND clipped.device_id = before.device_id
        AND clipped.start_ns = before.at_ns
INNER JOIN _sweep AS after
    ON
        clipped.trace_id = after.trace_id
        AND clipped.process_id = after.process_id
        AND clipped.device_id = after.device_id
        AND clipped.end_ns = after.at_ns
