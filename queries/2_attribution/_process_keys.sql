-- _process_keys: number of each process, folded into the time: at_ns + shift_ns orders the times of all processes on one axis.
-- grain: one row per (trace, process)
-- reads: _anchors, _nvtx, _executions
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   shift_ns BIGINT ns added to the times of the process
WITH bounds AS (
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
),

processes AS (
    SELECT DISTINCT trace_id, process_id FROM _anchors
    UNION
    SELECT DISTINCT trace_id, process_id FROM _executions
)

SELECT
    processes.trace_id,
    processes.process_id,
    (row_number() OVER (ORDER BY processes.trace_id, processes.process_id) - 1) * (bounds.last_ns - bounds.first_ns + 2)
    - bounds.first_ns AS shift_ns
FROM processes
CROSS JOIN bounds
