-- _repeating_ranges: ranges that repeat back to back, for captures whose steps no dialect names. On the thread that launches most
-- GPU time, among ranges of neither autograd nor a library: the shallowest name (digits ignored) with at least three instances,
-- never more than 5 % of the launches between two of them, and at least 80 % of the GPU time from the first to the last.
-- grain: one row per range of the name that was found
-- reads: _anchor_ranges, _launch_times, _nvtx, _messages, _step_messages
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   range_id BIGINT - range
WITH named_traces AS (
    SELECT DISTINCT _nvtx.trace_id
    FROM _nvtx
    INNER JOIN _step_messages ON _nvtx.message_id = _step_messages.message_id
    WHERE NOT _nvtx.is_unclosed AND NOT _nvtx.is_library
),

threads AS (
    SELECT trace_id, process_id, thread_id
    FROM _launch_times
    ANTI JOIN named_traces USING (trace_id)
    GROUP BY trace_id, process_id, thread_id
    QUALIFY row_number() OVER (PARTITION BY trace_id, process_id ORDER BY sum(gpu_ns) DESC, thread_id) = 1
),

enclosing AS (
    SELECT
        _launch_times.trace_id, _launch_times.process_id, _launch_times.thread_id, _launch_times.anchor_id, _launch_times.gpu_ns,
        _launch_times.launches_so_far,
        _anchor_ranges.range_id, _anchor_ranges.start_ns, _anchor_ranges.end_ns,
        regexp_replace(_messages.name, '[0-9]+', '#', 'g') AS pattern,
        row_number() OVER (
            PARTITION BY _launch_times.trace_id, _launch_times.anchor_id
            ORDER BY _anchor_ranges.start_ns, _anchor_ranges.end_ns DESC, _anchor_ranges.range_id
        ) AS depth
    FROM threads
    INNER JOIN _launch_times USING (trace_id, process_id, thread_id)
    INNER JOIN _anchor_ranges
        ON _launch_times.trace_id = _anchor_ranges.trace_id AND _launch_times.anchor_id = _anchor_ranges.anchor_id
    INNER JOIN _nvtx ON _anchor_ranges.trace_id = _nvtx.trace_id AND _anchor_ranges.range_id = _nvtx.range_id
    INNER JOIN _messages ON _nvtx.message_id = _messages.message_id
    WHERE
        NOT _nvtx.is_library AND NOT _messages.is_autograd
        AND NOT (_messages.is_annotation AND (_messages.flop IS NOT NULL OR _messages.bytes IS NOT NULL))
),

outermost AS (
    SELECT *
    FROM enclosing
    QUALIFY row_number() OVER (PARTITION BY trace_id, anchor_id, pattern ORDER BY depth) = 1
),

instances AS (
    SELECT
        trace_id, process_id, thread_id, pattern, range_id,
        min(launches_so_far) - 1 - lag(max(launches_so_far)) OVER (
            PARTITION BY trace_id, process_id, thread_id, pattern ORDER BY min(launches_so_far)
        ) AS launches_before
    FROM outermost
    GROUP BY trace_id, process_id, thread_id, pattern, range_id
),

widest AS (
    SELECT trace_id, process_id, thread_id, pattern, max(launches_before) AS launches_between
    FROM instances
    GROUP BY trace_id, process_id, thread_id, pattern
),

candidates AS (
    SELECT
        trace_id, process_id, thread_id, pattern,
        min(depth) AS depth,
        sum(gpu_ns) AS gpu_ns,
        min(start_ns) AS first_ns,
        max(end_ns) AS last_ns
    FROM outermost
    GROUP BY trace_id, process_id, thread_id, pattern
    HAVING count(DISTINCT range_id) >= 3
),

windows AS (
    SELECT
        candidates.*,
        last.launches_so_far - coalesce(before.launches_so_far, 0) AS window_launches,
        last.gpu_so_far_ns - coalesce(before.gpu_so_far_ns, 0) AS window_gpu_ns
    FROM candidates
    ASOF INNER JOIN _launch_times AS last
        ON
            candidates.trace_id = last.trace_id
            AND candidates.thread_id = last.thread_id
            AND candidates.last_ns > last.at_ns
    ASOF LEFT JOIN _launch_times AS before
        ON
            candidates.trace_id = before.trace_id
            AND candidates.thread_id = before.thread_id
            AND candidates.first_ns > before.at_ns
),

found AS (
    SELECT *
    FROM windows
    INNER JOIN widest USING (trace_id, process_id, thread_id, pattern)
    WHERE
        launches_between <= 0.05 * window_launches
        AND gpu_ns >= 0.8 * window_gpu_ns
    QUALIFY row_number() OVER (PARTITION BY trace_id, process_id ORDER BY depth, gpu_ns DESC, pattern) = 1
)

SELECT DISTINCT outermost.trace_id, outermost.process_id, outermost.range_id
FROM found
INNER JOIN outermost USING (trace_id, process_id, thread_id, pattern)
