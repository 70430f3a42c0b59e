-- _call_works: executions of each operator call, summed.
-- grain: one row per operator call
-- reads: gpu_executions
-- columns:
--   trace_id BIGINT - capture
--   operator_call_id BIGINT - operator call
--   process_id BIGINT - process
--   device_id BIGINT - device
--   phase VARCHAR - phase of the step
--   step BIGINT - step
--   range_id BIGINT - range of the operator, NULL for the '(..)' names
--   innermost_range_id BIGINT - innermost range of one of its launches
--   cost_range_id BIGINT - range whose cost covers it
--   is_covered BOOLEAN - a cost encloses it, but covers costed ranges inside and not this rest
--   graph_launch_id BIGINT - launch of a graph whose nodes these are
--   operator VARCHAR - operator
--   direction VARCHAR - forward, backward, update or ''
--   start_ns BIGINT ns first start
--   end_ns BIGINT ns last end
--   kernel_count BIGINT - kernels
--   work_ns BIGINT ns sum of the executions
--   compute_work_ns BIGINT ns sum of those of class compute
--   busy_ns BIGINT ns union of the executions
--   exclusive_ns DOUBLE ns share of compute time
--   name_dtype VARCHAR - type in the name of the longest kernel that has one
--   moved_bytes DOUBLE B 2 x bytes of copies within the device + 1 x bytes of memsets, where nothing else is in the call
WITH ordered AS (
    SELECT
        *,
        end_ns - start_ns AS length_ns,
        max(end_ns) OVER (
            PARTITION BY trace_id, operator_call_id ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered_ns
    FROM gpu_executions
    WHERE is_valid
)

SELECT
    trace_id,
    operator_call_id,
    any_value(process_id) AS process_id,
    any_value(device_id) AS device_id,
    min(phase) AS phase,
    any_value(step) AS step,
    any_value(operator_range_id) AS range_id,
    arg_max(range_id, length_ns) AS innermost_range_id,
    any_value(cost_range_id) AS cost_range_id,
    bool_or(is_covered) AS is_covered,
    any_value(graph_launch_id) AS graph_launch_id,
    any_value(operator) AS operator,
    any_value(direction) AS direction,
    min(start_ns) AS start_ns,
    max(end_ns) AS end_ns,
    count(*) FILTER (WHERE kind = 'kernel') AS kernel_count,
    sum(length_ns)::BIGINT AS work_ns,
    coalesce(sum(length_ns) FILTER (WHERE execution_class = 'compute'), 0)::BIGINT AS compute_work_ns,
    sum(greatest(end_ns - greatest(start_ns, coalesce(covered_ns, start_ns)), 0))::BIGINT AS busy_ns,
    sum(exclusive_ns) AS exclusive_ns,
    arg_max(name_dtype, length_ns) FILTER (WHERE name_dtype IS NOT NULL) AS name_dtype,
    CASE
        WHEN bool_and(execution_class = 'compute' AND kind IN ('memcpy', 'memset'))
            THEN sum(if(kind = 'memcpy', 2, 1) * copied_bytes)::DOUBLE
    END AS moved_bytes
FROM ordered
GROUP BY trace_id, operator_call_id
