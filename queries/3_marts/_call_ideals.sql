-- _call_ideals: time of each operator call at the datasheet ceilings; the best rates of the trace follow from it.
-- grain: one row per operator call
-- reads: _call_works, _call_costs, _device_rates, _device_dtypes
-- columns:
--   trace_id BIGINT - capture
--   operator_call_id BIGINT - operator call
--   device_id BIGINT - device
--   dtype VARCHAR - type
--   compute_ns DOUBLE ns FLOP / datasheet peak, 0 without FLOP, NULL when the peak is unknown
--   memory_ns DOUBLE ns bytes / datasheet bandwidth
--   ideal_ns DOUBLE ns T_SOL: the greater of the two, NULL unless both are known
SELECT
    _call_works.trace_id,
    _call_works.operator_call_id,
    _call_works.device_id,
    _call_costs.dtype,
    if(_call_costs.flop = 0, 0, 1e9 * _call_costs.flop / _device_dtypes.flop_per_s) AS compute_ns,
    1e9 * _call_costs.bytes / _device_rates.bytes_per_s AS memory_ns,
    CASE
        WHEN compute_ns IS NOT NULL AND memory_ns IS NOT NULL THEN greatest(compute_ns, memory_ns)
    END AS ideal_ns
FROM _call_works
INNER JOIN _call_costs USING (trace_id, operator_call_id)
LEFT JOIN _device_rates USING (trace_id, device_id)
LEFT JOIN _device_dtypes
    ON
        _call_works.trace_id = _device_dtypes.trace_id
        AND _call_works.device_id = _device_dtypes.device_id
        AND _call_costs.dtype = _device_dtypes.dtype
