-- _device_rates: the denominators of a device: reference peak, bandwidths, clock that the peak is quoted at.
-- grain: one row per (trace, device that did work)
-- reads: devices, _executions, _peaks, _device_peaks, _options
-- stored: table
-- columns:
--   trace_id BIGINT - capture
--   device_id BIGINT - device
--   device_name VARCHAR - name, NULL when the capture lists no such GPU
--   peak_name VARCHAR - name that the peaks go by
--   peak_trace_id BIGINT - key of its peaks: -1 when the capture lists no such GPU
--   peak_gpu_id BIGINT - key of its peaks
--   sm_count BIGINT - streaming multiprocessors
--   l2_bytes BIGINT B L2 cache
--   reference_dtype VARCHAR - the user's, else the 16-bit tensor type that the GPU has, bf16 first
--   reference_flop_per_s DOUBLE FLOP/s dense datasheet peak of the reference dtype
--   bytes_per_s DOUBLE B/s datasheet bandwidth
--   measured_bytes_per_s DOUBLE B/s measured bandwidth
--   peak_clock_hz BIGINT Hz SM clock at which the datasheet quotes the tensor peak
WITH used AS (
    SELECT DISTINCT trace_id, device_id
    FROM _executions
    WHERE device_id IS NOT NULL
),

named AS (
    SELECT
        used.trace_id,
        used.device_id,
        devices.device_name,
        coalesce(devices.device_name, '(unknown GPU)') AS peak_name,
        if(devices.device_name IS NULL, -1, used.trace_id) AS peak_trace_id,
        if(devices.device_name IS NULL, -1, used.device_id) AS peak_gpu_id,
        devices.sm_count,
        devices.l2_bytes,
        _device_peaks.tensor_peak_hz AS peak_clock_hz
    FROM used
    LEFT JOIN devices ON used.trace_id = devices.trace_id AND used.device_id = devices.device_id
    LEFT JOIN _device_peaks ON used.trace_id = _device_peaks.trace_id AND used.device_id = _device_peaks.gpu_id
),

rates AS (
    SELECT
        named.*,
        max(_peaks.flop_per_s) FILTER (WHERE _peaks.dtype = _options.reference_dtype AND _peaks.kind = 'datasheet') AS stated,
        max(_peaks.flop_per_s) FILTER (WHERE _peaks.dtype = 'bf16' AND _peaks.kind = 'datasheet') AS bf16,
        max(_peaks.flop_per_s) FILTER (WHERE _peaks.dtype = 'fp16' AND _peaks.kind = 'datasheet') AS fp16,
        max(_peaks.bytes_per_s) FILTER (WHERE _peaks.dtype = 'bytes' AND _peaks.kind = 'datasheet') AS bytes_per_s,
        max(_peaks.bytes_per_s) FILTER (
            WHERE _peaks.dtype = 'bytes' AND _peaks.kind = 'measured' AND _peaks.condition = 'burst'
        ) AS measured_bytes_per_s,
        any_value(_options.reference_dtype) AS reference_option
    FROM named
    CROSS JOIN _options
    LEFT JOIN _peaks ON named.peak_trace_id = _peaks.trace_id AND named.peak_gpu_id = _peaks.gpu_id
    GROUP BY ALL
)

SELECT
    trace_id,
    device_id,
    device_name,
    peak_name,
    peak_trace_id,
    peak_gpu_id,
    sm_count,
    l2_bytes,
    CASE
        WHEN reference_option IS NOT NULL THEN reference_option
        WHEN bf16 IS NOT NULL THEN 'bf16'
        WHEN fp16 IS NOT NULL THEN 'fp16'
    END AS reference_dtype,
    CASE WHEN reference_option IS NOT NULL THEN stated ELSE coalesce(bf16, fp16) END AS reference_flop_per_s,
    bytes_per_s,
    measured_bytes_per_s,
    peak_clock_hz
FROM rates
