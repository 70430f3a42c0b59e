-- _device_map: physical GPU behind the CUDA ordinal of a process: under CUDA_VISIBLE_DEVICES every rank calls its GPU 0.
-- grain: one row per (trace, process, CUDA ordinal) that executed something
-- reads: raw_kernels, raw_memcpys, raw_memsets, raw_graph_traces, raw_cuda_devices, raw_gpus
-- columns:
--   trace_id BIGINT - capture
--   global_pid BIGINT - process as captured, NULL in old exports
--   cuda_device BIGINT - ordinal within the process
--   device_id BIGINT - physical GPU; the ordinal when the capture lists no GPU
WITH used AS (
    SELECT DISTINCT trace_id, global_pid, device_id AS cuda_device FROM raw_kernels
    UNION
    SELECT DISTINCT trace_id, global_pid, device_id FROM raw_memcpys
    UNION
    SELECT DISTINCT trace_id, global_pid, device_id FROM raw_memsets
    UNION
    SELECT DISTINCT trace_id, global_pid, device_id FROM raw_graph_traces
),

by_process AS (
    SELECT
        trace_id,
        pid,
        cuda_device,
        min(gpu_id) AS gpu_id
    FROM raw_cuda_devices
    GROUP BY trace_id, pid, cuda_device
),

by_ordinal AS (
    SELECT
        trace_id,
        coalesce(cuda_device, gpu_id) AS cuda_device,
        min(gpu_id) AS gpu_id
    FROM raw_gpus
    GROUP BY ALL
)

SELECT
    used.trace_id,
    used.global_pid,
    used.cuda_device,
    coalesce(by_process.gpu_id, by_ordinal.gpu_id, used.cuda_device) AS device_id
FROM used
LEFT JOIN by_process
    ON
        used.trace_id = by_process.trace_id
        AND ((used.global_pid >> 24) & 16777215) = by_process.pid
        AND used.cuda_device = by_process.cuda_device
LEFT JOIN by_ordinal ON used.trace_id = by_ordinal.trace_id AND used.cuda_device = by_ordinal.cuda_device
