-- _time_bounds: first and last time of the RUN, for folding the number of a thread, process or device into its times.
-- grain: one row
-- reads: _anchors, _nvtx, _executions
-- columns:
--   first_ns BIGINT ns earliest time
--   last_ns BIGINT ns latest time
SELECT
    min(first_ns) AS first_ns,
    max(last_ns) AS last_ns
FROM (
    SELECT min(start_ns) AS first_ns, max(end_ns) AS last_ns FROM _nvtx WHERE NOT is_unclosed
    UNION ALL
    SELECT min(at_ns), max(at_ns) FROM _anchors
    UNION ALL
    SELECT min(start_ns), max(end_ns) FROM _executions
)
