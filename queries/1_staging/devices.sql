-- devices: GPUs of the machine that did the work, or that its capture lists.
-- grain: one row per (trace, device)
-- reads: raw_gpus, raw_cuda_devices, _device_peaks
-- columns:
--   trace_id BIGINT - capture
--   device_id BIGINT - physical GPU: Nsight's index over the GPUs of the machine
--   device_name VARCHAR - marketing name
--   uuid VARCHAR - GPU uuid
--   sm_count BIGINT - streaming multiprocessors; of a MIG slice those of the slice
--   clock_hz BIGINT Hz maximum SM clock that the driver states, not the clock during the run
--   memory_bandwidth_bytes_per_s BIGINT B/s bandwidth that the driver states
--   l2_bytes BIGINT B L2 cache
--   peak_key VARCHAR - row of the peak table that matches the name, NULL when none does
WITH slices AS (
    SELECT
        trace_id,
        gpu_id,
        min(sm_count) AS sm_count
    FROM raw_cuda_devices
    GROUP BY trace_id, gpu_id
)

SELECT
    raw_gpus.trace_id,
    raw_gpus.gpu_id AS device_id,
    raw_gpus.name AS device_name,
    raw_gpus.uuid,
    least(raw_gpus.sm_count, slices.sm_count) AS sm_count,
    raw_gpus.clock_hz,
    raw_gpus.memory_bandwidth_bytes_per_s,
    raw_gpus.l2_bytes,
    _device_peaks.peak_key
FROM raw_gpus
LEFT JOIN slices ON raw_gpus.trace_id = slices.trace_id AND raw_gpus.gpu_id = slices.gpu_id
LEFT JOIN _device_peaks ON raw_gpus.trace_id = _device_peaks.trace_id AND raw_gpus.gpu_id = _device_peaks.gpu_id
ORDER BY raw_gpus.trace_id, device_id
