-- _device_dtypes: compute peaks of a device by type.
-- grain: one row per (trace, device, dtype)
-- reads: _device_rates, _peaks
-- stored: table
-- columns:
--   trace_id BIGINT - capture
--   device_id BIGINT - device
--   dtype VARCHAR - type
--   flop_per_s DOUBLE FLOP/s dense datasheet peak
--   measured_flop_per_s DOUBLE FLOP/s measured burst ceiling, NULL when none is known
SELECT
    _device_rates.trace_id,
    _device_rates.device_id,
    _peaks.dtype,
    max(_peaks.flop_per_s) FILTER (WHERE _peaks.kind = 'datasheet') AS flop_per_s,
    max(_peaks.flop_per_s) FILTER (WHERE _peaks.kind = 'measured' AND _peaks.condition = 'burst') AS measured_flop_per_s
FROM _device_rates
INNER JOIN _peaks ON _device_rates.peak_trace_id = _peaks.trace_id AND _device_rates.peak_gpu_id = _peaks.gpu_id
WHERE _peaks.dtype != 'bytes'
GROUP BY _device_rates.trace_id, _device_rates.device_id, _peaks.dtype
