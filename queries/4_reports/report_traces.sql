-- report_traces: what was captured, with which versions, on which GPUs.
--
-- grain: one row per (trace_id, device_id); one with device NULL when a trace names no GPU
-- reads: traces, devices
--
-- columns:
--   trace_id BIGINT - the trace
--   source_file VARCHAR - file name
--   source_format VARCHAR - its kind
--   workload VARCHAR - name given by the user
--   variant VARCHAR - name given by the user
--   rank BIGINT - rank of the process; NULL when unknown
--   nsys_version VARCHAR - of the profiler
--   driver_version VARCHAR - of the NVIDIA driver
--   cuda_version VARCHAR - of CUDA
--   graph_trace_mode VARCHAR - CUDA graphs as wholes or node by node
--   duration_ns BIGINT ns of the capture
--   device_id BIGINT - the physical GPU
--   device_name VARCHAR - as the driver reports it
--   sm_count BIGINT - streaming multiprocessors
--   clock_hz BIGINT Hz highest SM clock
--   memory_bandwidth_bytes_per_s BIGINT B/s as the driver reports it
--   peak_key VARCHAR - row of the peak table; NULL when the GPU is not in it
SELECT
    traces.trace_id,
    traces.source_file,
    traces.source_format,
    traces.workload,
    traces.variant,
    traces.rank,
    traces.nsys_version,
    traces.driver_version,
    traces.cuda_version,
    traces.graph_trace_mode,
    traces.duration_ns::BIGINT AS duration_ns,
    devices.device_id,
    devices.device_name,
    devices.sm_count,
    devices.clock_hz::BIGINT AS clock_hz,
    devices.memory_bandwidth_bytes_per_s::BIGINT AS memory_bandwidth_bytes_per_s,
    devices.peak_key
FROM traces
LEFT JOIN devices ON traces.trace_id = devices.trace_id
ORDER BY traces.trace_id, devices.device_id
