-- host_in_longest_gaps: the longest times without GPU work, and what the host did meanwhile.
--
-- grain: one row per gap; the $count longest of each trace
-- reads: gaps, gpu_executions, ranges, api_calls
-- params:
--   count BIGINT - gaps to show; default 20
-- columns:
--   trace_id BIGINT - the trace
--   position BIGINT - 1 = longest
--   device_id BIGINT - GPU
--   step BIGINT - step; NULL without steps
--   start_ns BIGINT ns start on the clock of the trace
--   gap_ns BIGINT ns length
--   cause VARCHAR - launch (the host came late), sync (it waited for the GPU first) or other (the next work was queued)
--   api_name VARCHAR - synchronizing call, else the launch that ends the gap
--   path VARCHAR[] - ranges open at that launch, outermost first
--   cuda_name VARCHAR - CUDA call of the process that covers most of the gap; NULL: the host was outside CUDA
--   cuda_pct DOUBLE % of the gap that this one call covers
--   previous_name VARCHAR - execution that ends at the start
--   next_name VARCHAR - execution that starts at the end
WITH longest AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY trace_id ORDER BY gap_ns DESC, process_id, device_id, start_ns
        ) AS position
    FROM gaps
    QUALIFY position <= $count::BIGINT
),

host_calls AS (
    SELECT
        longest.trace_id,
        longest.position,
        arg_max(
            api_calls.api_name,
            (least(api_calls.end_ns, longest.end_ns) - greatest(api_calls.start_ns, longest.start_ns), -api_calls.api_call_id)
        ) AS cuda_name,
        max(least(api_calls.end_ns, longest.end_ns) - greatest(api_calls.start_ns, longest.start_ns)) AS cuda_ns
    FROM longest
    INNER JOIN api_calls
        ON
            longest.trace_id = api_calls.trace_id
            AND longest.process_id = api_calls.process_id
            AND longest.start_ns < api_calls.end_ns
            AND longest.end_ns > api_calls.start_ns
    GROUP BY longest.trace_id, longest.position
)

SELECT
    longest.trace_id,
    longest.position,
    longest.device_id,
    longest.step,
    longest.start_ns,
    longest.gap_ns,
    longest.cause,
    longest.api_name,
    ranges.path,
    host_calls.cuda_name,
    100.0 * coalesce(host_calls.cuda_ns, 0) / longest.gap_ns AS cuda_pct,
    previous.name AS previous_name,
    next.name AS next_name
FROM longest
LEFT JOIN host_calls ON longest.trace_id = host_calls.trace_id AND longest.position = host_calls.position
LEFT JOIN ranges ON longest.trace_id = ranges.trace_id AND longest.range_id = ranges.range_id
LEFT JOIN gpu_executions AS previous
    ON longest.trace_id = previous.trace_id AND longest.previous_execution_id = previous.gpu_execution_id
LEFT JOIN gpu_executions AS next
    ON longest.trace_id = next.trace_id AND longest.next_execution_id = next.gpu_execution_id
ORDER BY trace_id, position
