-- _thread_keys: number of each thread with anchors, folded into the time: at_ns + shift_ns orders the times of all threads on one axis.
-- grain: one row per (trace, thread)
-- reads: _anchors, _time_bounds
-- columns:
--   trace_id BIGINT - capture
--   thread_id BIGINT - thread
--   shift_ns BIGINT ns added to the times of the thread
SELECT
    threads.trace_id,
    threads.thread_id,
    (row_number() OVER (ORDER BY threads.trace_id, threads.thread_id) - 1) * (bounds.last_ns - bounds.first_ns + 2)
    - bounds.first_ns AS shift_ns
FROM (SELECT DISTINCT trace_id, thread_id FROM _anchors) AS threads
CROSS JOIN _time_bounds AS bounds
