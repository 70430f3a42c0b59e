-- _process_keys: number of each process, folded into the time: at_ns + shift_ns orders the times of all processes on one axis.
-- grain: one row per (trace, process)
-- reads: _anchors, _executions, _time_bounds
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   shift_ns BIGINT ns added to the times of the process
WITH processes AS (
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
CROSS JOIN _time_bounds AS bounds
