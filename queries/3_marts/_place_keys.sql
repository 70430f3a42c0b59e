-- _place_keys: number of each device of a process, folded into the time: start_ns + shift_ns orders the times of all on one axis.
-- grain: one row per (trace, process, device) with a window
-- reads: _windows, _time_bounds
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   device_id BIGINT - device
--   shift_ns BIGINT ns added to the times
SELECT
    places.trace_id,
    places.process_id,
    places.device_id,
    (row_number() OVER (ORDER BY places.trace_id, places.process_id, places.device_id) - 1)
    * (bounds.last_ns - bounds.first_ns + 2) - bounds.first_ns AS shift_ns
FROM (SELECT DISTINCT trace_id, process_id, device_id FROM _windows) AS places
CROSS JOIN _time_bounds AS bounds
