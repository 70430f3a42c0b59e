-- _launches: the API call that launched each execution: same correlation id and same process, never the id alone.
-- grain: one row per execution that has a call
-- reads: _executions, _launch_calls
-- stored: table
-- columns:
--   trace_id BIGINT - capture
--   gpu_execution_id BIGINT - execution
--   api_call_id BIGINT - call; of several generations of the id the last one started before the execution ended
SELECT
    _executions.trace_id,
    _executions.gpu_execution_id,
    arg_max(_launch_calls.api_call_id, _launch_calls.start_ns) AS api_call_id
FROM _executions
INNER JOIN _launch_calls USING (trace_id, process_id, correlation_id)
WHERE
    _launch_calls.generations > 1
    AND (_executions.end_ns IS NULL OR _launch_calls.start_ns <= _executions.end_ns)
GROUP BY _executions.trace_id, _executions.gpu_execution_id
UNION ALL
SELECT
    _executions.trace_id,
    _executions.gpu_execution_id,
    _launch_calls.api_call_id
FROM _executions
INNER JOIN _launch_calls USING (trace_id, process_id, correlation_id)
WHERE
    _launch_calls.generations = 1
    AND (_executions.end_ns IS NULL OR _launch_calls.start_ns <= _executions.end_ns)
