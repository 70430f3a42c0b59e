-- operator_calls: executions of one operator with their cost and speed of light.
-- grain: one row per (operator range, cost range, graph launch, step, device): one call of an operator, forward or backward
-- reads: _call_works, _call_costs, _call_ideals, _best_rates, _device_rates, _device_dtypes
-- columns:
--   trace_id BIGINT - capture
--   operator_call_id BIGINT - key within the trace
--   process_id BIGINT - process
--   device_id BIGINT - device
--   phase VARCHAR - phase of the step, '' outside
--   range_id BIGINT - range of the operator, NULL for the '(..)' names
--   cost_range_id BIGINT - range whose cost covers it
--   api_call_id BIGINT - launch of the CUDA graph whose nodes these are, NULL for others
--   operator VARCHAR - operator
--   direction VARCHAR - forward, backward, update; '' for the '(..)' names
--   step BIGINT - step by launch, NULL outside
--   shapes VARCHAR - sizes of the arguments as captured
--   dtype VARCHAR - type it computes in, NULL when unknown
--   start_ns BIGINT ns first start on the GPU
--   end_ns BIGINT ns last end on the GPU
--   kernel_count BIGINT - kernels
--   busy_ns BIGINT ns union of its executions
--   exclusive_ns DOUBLE ns share of compute time
--   flop DOUBLE FLOP model FLOP, NULL when unknown
--   extra_flop DOUBLE FLOP executed beyond the model: recompute, padding
--   flop_min DOUBLE FLOP lower bound where a flag that is not in the trace may halve the work
--   bytes DOUBLE B fused bytes, NULL when unknown
--   cost_source VARCHAR - annotation, shapes, copied_bytes; NULL without a cost
--   cost_reason VARCHAR - why the cost is unknown, or what it assumes
--   ideal_ns DOUBLE ns T_SOL at the datasheet: max(flop / peak of the dtype, bytes / bandwidth)
--   ideal_measured_ns DOUBLE ns the same at the measured burst ceilings, or the best of the trace where that beats them; NULL when none is known
WITH ceilings_used AS (
    SELECT
        _call_works.trace_id, _call_works.operator_call_id,
        greatest(_device_dtypes.measured_flop_per_s, compute_best.rate_per_s) AS flop_per_s,
        greatest(_device_rates.measured_bytes_per_s, memory_best.rate_per_s) AS bytes_per_s
    FROM _call_works
    INNER JOIN _call_costs USING (trace_id, operator_call_id)
    LEFT JOIN _device_rates USING (trace_id, device_id)
    LEFT JOIN _device_dtypes
        ON
            _call_works.trace_id = _device_dtypes.trace_id
            AND _call_works.device_id = _device_dtypes.device_id
            AND _call_costs.dtype = _device_dtypes.dtype
    LEFT JOIN _best_rates AS compute_best
        ON
            _call_works.trace_id = compute_best.trace_id
            AND _call_works.device_id = compute_best.device_id
            AND _call_costs.dtype = compute_best.dtype
    LEFT JOIN _best_rates AS memory_best
        ON
            _call_works.trace_id = memory_best.trace_id
            AND _call_works.device_id = memory_best.device_id
            AND memory_best.dtype = 'bytes'
)

SELECT
    trace_id, operator_call_id, _call_works.process_id, _call_works.device_id, phase, range_id, cost_range_id,
    graph_launch_id AS api_call_id, operator, direction, step, _call_costs.shapes, _call_costs.dtype, start_ns, end_ns,
    kernel_count, busy_ns, exclusive_ns, flop, extra_flop, flop_min, bytes, cost_source,
    CASE
        WHEN compute_ns IS NULL AND flop > 0 AND bytes IS NOT NULL AND cost_reason IS NULL
            THEN 'no peak known for ' || coalesce(_call_costs.dtype, 'the dtype, which is unknown')
        WHEN memory_ns IS NULL AND flop IS NOT NULL AND bytes IS NOT NULL AND cost_reason IS NULL
            THEN 'no memory bandwidth known for the device'
        ELSE cost_reason
    END AS cost_reason,
    ideal_ns,
    CASE
        WHEN ideal_ns IS NULL THEN NULL
        WHEN flop = 0 THEN 1e9 * bytes / ceilings_used.bytes_per_s
        WHEN ceilings_used.flop_per_s IS NULL OR ceilings_used.bytes_per_s IS NULL THEN NULL
        ELSE greatest(1e9 * flop / ceilings_used.flop_per_s, 1e9 * bytes / ceilings_used.bytes_per_s)
    END AS ideal_measured_ns
FROM _call_works
INNER JOIN _call_costs USING (trace_id, operator_call_id)
INNER JOIN _call_ideals USING (trace_id, operator_call_id)
INNER JOIN ceilings_used USING (trace_id, operator_call_id)
