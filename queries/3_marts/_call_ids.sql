-- _call_ids: operator call of each execution: same operator and cost range, graph launch, step and device; copies within the device and
-- memsets without a cost range are calls of their own, since their bytes are known.
-- grain: one row per execution
-- reads: _executions, _attributed
-- columns:
--   trace_id BIGINT - capture
--   gpu_execution_id BIGINT - execution
--   operator_call_id BIGINT - first execution of the call
SELECT
    _executions.trace_id,
    _executions.gpu_execution_id,
    min(_executions.gpu_execution_id) OVER (
        PARTITION BY
            _executions.trace_id, _executions.process_id, _executions.device_id, operator_range_id, operator, direction,
            cost_range_id, is_covered, graph_launch_id, step,
            cost_range_id IS NULL AND execution_class = 'compute' AND kind IN ('memcpy', 'memset')
    ) AS operator_call_id
FROM _executions
INNER JOIN _attributed
    ON _executions.trace_id = _attributed.trace_id AND _executions.gpu_execution_id = _attributed.gpu_execution_id
