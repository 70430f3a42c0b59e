-- processes: processes with events in the capture.
-- grain: one row per (trace, process)
-- reads: raw_processes
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - Nsight's global process id: thread bits zero, signed
--   pid BIGINT - process id of the operating system
--   process_name VARCHAR - base name of the program
SELECT
    trace_id,
    global_pid AS process_id,
    min(coalesce(pid, (global_pid >> 24) & 16777215)) AS pid,
    min(name) AS process_name
FROM raw_processes
WHERE global_pid IS NOT NULL
GROUP BY trace_id, global_pid
ORDER BY trace_id, process_id
