-- _operator_busy: union of the intervals of each operator inside the windows, of all its calls and of those with a full cost.
-- grain: one row per (trace, process, device, phase, operator, direction)
-- reads: _window_executions, _window_calls, gpu_executions
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   device_id BIGINT - device
--   phase VARCHAR - phase of the windows
--   operator VARCHAR - operator
--   direction VARCHAR - forward, backward, update or ''
--   kernel_count BIGINT - kernels
--   busy_ns BIGINT ns union of all executions
--   costed_busy_ns BIGINT ns union of the executions of calls whose FLOP and bytes are known
--   flop_busy_ns BIGINT ns union of the executions of calls whose FLOP are known
WITH executions AS (
    SELECT
        _window_executions.trace_id, _window_executions.process_id, _window_executions.device_id, _window_executions.phase,
        calls.operator, calls.direction, calls.is_costed AND _window_executions.execution_class = 'compute' AS is_costed,
        calls.flop IS NOT NULL AND _window_executions.execution_class = 'compute' AS has_flop,
        gpu_executions.kind,
        _window_executions.start_ns, _window_executions.end_ns
    FROM _window_executions
    INNER JOIN _window_calls AS calls USING (trace_id, process_id, device_id, phase, operator_call_id)
    INNER JOIN gpu_executions
        ON
            _window_executions.trace_id = gpu_executions.trace_id
            AND _window_executions.gpu_execution_id = gpu_executions.gpu_execution_id
),

ordered AS (
    SELECT
        *,
        coalesce(max(end_ns) OVER before, start_ns) AS covered_ns,
        coalesce(max(if(is_costed, end_ns, NULL)) OVER before, start_ns) AS costed_covered_ns,
        coalesce(max(if(has_flop, end_ns, NULL)) OVER before, start_ns) AS flop_covered_ns
    FROM executions
    WINDOW before AS (
        PARTITION BY trace_id, process_id, device_id, phase, operator, direction
        ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
)

SELECT
    trace_id, process_id, device_id, phase, operator, direction,
    count(*) FILTER (WHERE kind = 'kernel') AS kernel_count,
    sum(greatest(end_ns - greatest(start_ns, covered_ns), 0))::BIGINT AS busy_ns,
    coalesce(sum(greatest(end_ns - greatest(start_ns, costed_covered_ns), 0)) FILTER (WHERE is_costed), 0)::BIGINT AS costed_busy_ns,
    coalesce(sum(greatest(end_ns - greatest(start_ns, flop_covered_ns), 0)) FILTER (WHERE has_flop), 0)::BIGINT AS flop_busy_ns
FROM ordered
GROUP BY trace_id, process_id, device_id, phase, operator, direction
