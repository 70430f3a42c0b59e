-- launch_latency: what launching costs each operator: time in the call, way to the GPU, and GPU idle before its work starts.
--
-- A short latency means that the GPU waits for the host, a long one that work queues up, which is good. The whole capture
-- counts; idle time is that of the table `gaps`, inside measured steps.
--
-- grain: one row per (trace_id, operator, direction)
-- reads: gpu_executions, api_calls, gaps
-- columns:
--   trace_id BIGINT - the trace
--   operator VARCHAR - operator
--   direction VARCHAR - forward, backward, update or ''
--   execution_count BIGINT - executions whose launching call is known
--   launch_count BIGINT - launching calls; fewer than executions where a CUDA graph launches many
--   median_launch_ns DOUBLE ns median time in the launching call
--   median_execution_ns DOUBLE ns median execution; below median_launch_ns the host cannot keep up
--   median_latency_ns DOUBLE ns median from the start of the call to the start of the execution
--   p95_latency_ns DOUBLE ns 95th percentile
--   idle_before_ns BIGINT ns idle time of the GPU that ends with one of these executions
--   idle_launch_ns BIGINT ns of it, because the launch came late
WITH executions AS (
    SELECT
        executions.trace_id,
        executions.operator,
        executions.direction,
        calls.api_call_id,
        calls.end_ns - calls.start_ns AS launch_ns,
        executions.end_ns - executions.start_ns AS execution_ns,
        executions.start_ns - calls.start_ns AS latency_ns,
        gaps.gap_ns,
        gaps.cause
    FROM gpu_executions AS executions
    INNER JOIN api_calls AS calls USING (trace_id, api_call_id)
    LEFT JOIN gaps
        ON
            executions.trace_id = gaps.trace_id
            AND executions.process_id = gaps.process_id
            AND executions.device_id = gaps.device_id
            AND executions.gpu_execution_id = gaps.next_execution_id
    WHERE executions.is_valid
)

SELECT
    trace_id,
    operator,
    direction,
    count(*) AS execution_count,
    count(DISTINCT api_call_id) AS launch_count,
    median(launch_ns)::DOUBLE AS median_launch_ns,
    median(execution_ns)::DOUBLE AS median_execution_ns,
    median(latency_ns)::DOUBLE AS median_latency_ns,
    quantile_cont(latency_ns, 0.95)::DOUBLE AS p95_latency_ns,
    coalesce(sum(gap_ns), 0)::BIGINT AS idle_before_ns,
    coalesce(sum(gap_ns) FILTER (WHERE cause = 'launch'), 0)::BIGINT AS idle_launch_ns
FROM executions
GROUP BY trace_id, operator, direction
ORDER BY trace_id, idle_before_ns DESC, execution_count DESC, operator, direction
