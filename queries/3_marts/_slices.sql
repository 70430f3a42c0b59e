-- _slices: slices of the timeline inside the windows, by what is exposed: compute, else communication, else copy, else idle.
-- grain: one row per slice inside a window
-- reads: _sweep, _windows
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   device_id BIGINT - device
--   phase VARCHAR - phase of the window
--   step BIGINT - step of the window
--   slice_class VARCHAR - compute, communication, copy or idle
--   start_ns BIGINT ns start
--   end_ns BIGINT ns end
SELECT
    _sweep.trace_id,
    _sweep.process_id,
    _sweep.device_id,
    _windows.phase,
    _windows.step,
    CASE
        WHEN _sweep.compute_count > 0 THEN 'compute'
        WHEN _sweep.communication_count > 0 THEN 'communication'
        WHEN _sweep.copy_count > 0 THEN 'copy'
        ELSE 'idle'
    END AS slice_class,
    _sweep.at_ns AS start_ns,
    _sweep.next_ns AS end_ns
FROM _sweep
ASOF INNER JOIN _windows
    ON
        _sweep.trace_id = _windows.trace_id
        AND _sweep.process_id = _windows.process_id
        AND _sweep.device_id = _windows.device_id
        AND _sweep.at_ns >= _windows.start_ns
WHERE _sweep.at_ns < _windows.end_ns AND _sweep.next_ns > _sweep.at_ns
