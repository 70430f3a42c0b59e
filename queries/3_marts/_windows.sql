-- _windows: spans of GPU time that the metrics cover: the measured steps, else first to last execution of a process on a device.
-- grain: one row per (trace, process, device, window)
-- reads: _executions, _step_windows
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   device_id BIGINT - device
--   phase VARCHAR - phase
--   step BIGINT - step, NULL without steps
--   start_ns BIGINT ns start
--   end_ns BIGINT ns end
WITH used AS (
    SELECT
        trace_id,
        process_id,
        device_id,
        min(start_ns) AS first_ns,
        max(end_ns) AS last_ns
    FROM _executions
    WHERE is_valid
    GROUP BY trace_id, process_id, device_id
)

SELECT
    used.trace_id,
    used.process_id,
    used.device_id,
    _step_windows.phase,
    _step_windows.step,
    _step_windows.start_ns,
    _step_windows.end_ns
FROM used
INNER JOIN _step_windows USING (trace_id, process_id)
WHERE _step_windows.is_measured AND _step_windows.end_ns > _step_windows.start_ns
UNION ALL
SELECT
    used.trace_id,
    used.process_id,
    used.device_id,
    '' AS phase,
    NULL AS step,
    used.first_ns AS start_ns,
    used.last_ns AS end_ns
FROM used
ANTI JOIN _step_windows USING (trace_id)
WHERE used.last_ns > used.first_ns
