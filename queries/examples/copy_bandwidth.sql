-- copy_bandwidth: copies and memsets by direction, with the bandwidth they reach and the operators that ask for them.
--
-- The whole capture counts. A copy within the device reads and writes: it moves twice the bytes shown.
--
-- grain: one row per (trace_id, device_id, name)
-- reads: gpu_executions
-- columns:
--   trace_id BIGINT - the trace
--   device_id BIGINT - GPU
--   name VARCHAR - memcpy HtoD, memcpy DtoH, memcpy DtoD, memset ..
--   count BIGINT - executions
--   copied_bytes BIGINT B bytes copied or set
--   median_bytes DOUBLE B median size: small copies are bound by latency
--   total_ns BIGINT ns sum of the executions
--   median_ns DOUBLE ns median execution
--   bytes_per_s DOUBLE B/s copied_bytes over total_ns
--   best_bytes_per_s DOUBLE B/s the fastest of them
--   operators VARCHAR[] - operators that ask for them, by name
SELECT
    trace_id,
    device_id,
    name,
    count(*) AS count,
    sum(copied_bytes)::BIGINT AS copied_bytes,
    median(copied_bytes)::DOUBLE AS median_bytes,
    sum(end_ns - start_ns)::BIGINT AS total_ns,
    median(end_ns - start_ns)::DOUBLE AS median_ns,
    1e9 * sum(copied_bytes) / nullif(sum(end_ns - start_ns), 0) AS bytes_per_s,
    max(1e9 * copied_bytes / nullif(end_ns - start_ns, 0)) AS best_bytes_per_s,
    list_sort(list(DISTINCT operator)) AS operators
FROM gpu_executions
WHERE kind IN ('memcpy', 'memset') AND is_valid
GROUP BY trace_id, device_id, name
ORDER BY trace_id, total_ns DESC, device_id, name
