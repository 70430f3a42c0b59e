-- _thread_keys: number of each thread with anchors, folded into the time: at_ns + shift_ns orders the times of all threads on one axis.
-- grain: one row per (trace, thread)
-- reads: _anchors, _nvtx
-- columns:
--   trace_id BIGINT - capture
--   thread_id BIGINT - thread
--   shift_ns BIGINT ns added to the times of the thread
WITH bounds AS (
    SELECT
        min(first_ns) AS first_ns,
        max(last_ns) AS last_ns
    FROM (
        SELECT min(start_ns) AS first_ns, max(end_ns) AS last_ns FROM _nvtx WHERE NOT is_unclosed
        UNION ALL
        SELECT min(at_ns), max(at_ns) FROM _anchors
    )
)

SELECT
    threads.trace_id,
    threads.thread_id,
    (row_number() OVER (ORDER BY threads.trace_id, threads.thread_id) - 1) * (bounds.last_ns - bounds.first_ns + 2)
    - bounds.first_ns AS shift_ns
FROM (SELECT DISTINCT trace_id, thread_id FROM _anchors) AS threads
CROSS JOIN bounds
