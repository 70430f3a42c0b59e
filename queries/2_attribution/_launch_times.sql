-- _launch_times: GPU time that each launching call put on the GPU, with running sums along its thread.
-- grain: one row per launching call
-- reads: _anchors, _launches, _executions
-- columns:
--   trace_id BIGINT - capture
--   anchor_id BIGINT - launching API call
--   process_id BIGINT - process
--   thread_id BIGINT - thread
--   at_ns BIGINT ns start of the call
--   gpu_ns BIGINT ns sum of its executions
--   launches_so_far BIGINT - calls of the thread up to this one
--   gpu_so_far_ns BIGINT ns GPU time of these
WITH times AS (
    SELECT
        _launches.trace_id,
        _launches.api_call_id,
        sum(coalesce(_executions.end_ns - _executions.start_ns, 0))::BIGINT AS gpu_ns
    FROM _launches
    INNER JOIN _executions
        ON _launches.trace_id = _executions.trace_id AND _launches.gpu_execution_id = _executions.gpu_execution_id
    GROUP BY _launches.trace_id, _launches.api_call_id
)

SELECT
    _anchors.trace_id,
    _anchors.anchor_id,
    _anchors.process_id,
    _anchors.thread_id,
    _anchors.at_ns,
    times.gpu_ns,
    count(*) OVER running AS launches_so_far,
    (sum(times.gpu_ns) OVER running)::BIGINT AS gpu_so_far_ns
FROM _anchors
INNER JOIN times ON _anchors.trace_id = times.trace_id AND _anchors.anchor_id = times.api_call_id
WHERE _anchors.is_launch
WINDOW running AS (
    PARTITION BY _anchors.trace_id, _anchors.thread_id
    ORDER BY _anchors.at_ns, _anchors.anchor_id ROWS UNBOUNDED PRECEDING
)
