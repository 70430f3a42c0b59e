-- _gap_launches: idle intervals inside the windows with the execution and the launch that end them.
-- grain: one row per idle interval of a device inside a window
-- reads: _slices, gpu_executions, _api, _process_keys
-- columns:
--   trace_id BIGINT - capture
--   device_id BIGINT - device
--   process_id BIGINT - process
--   start_ns BIGINT ns start
--   end_ns BIGINT ns end
--   phase VARCHAR - phase of the window
--   step BIGINT - step of the window
--   next_execution_id BIGINT - execution that ends the idle time
--   previous_execution_id BIGINT - execution whose end made the device idle
--   range_id BIGINT - innermost range at the next launch
--   api_name VARCHAR - next launch
--   launch_start_ns BIGINT ns start of the next launch
--   launch_end_ns BIGINT ns end of the next launch
--   idle_since_ns BIGINT ns when the device fell idle, before the start where a window cuts the interval
--   at_key BIGINT ns the same on the axis of all processes
WITH starting AS (
    SELECT
        trace_id, process_id, device_id, start_ns,
        arg_min(gpu_execution_id, (api_call_id IS NULL, gpu_execution_id)) AS next_execution_id
    FROM gpu_executions
    WHERE is_valid
    GROUP BY trace_id, process_id, device_id, start_ns
),

-- a step border may cut an interval: the execution that ends it may start later than the piece ends
idle AS (
    SELECT
        _slices.*,
        starting.next_execution_id
    FROM (SELECT * FROM _slices WHERE slice_class = 'idle') AS _slices
    ASOF LEFT JOIN starting
        ON
            _slices.trace_id = starting.trace_id
            AND _slices.process_id = starting.process_id
            AND _slices.device_id = starting.device_id
            AND _slices.end_ns <= starting.start_ns
),

ending AS (
    SELECT
        trace_id, process_id, device_id, end_ns,
        max(gpu_execution_id) AS previous_execution_id
    FROM gpu_executions
    WHERE is_valid
    GROUP BY trace_id, process_id, device_id, end_ns
)

SELECT
    idle.trace_id, idle.device_id, idle.process_id, idle.start_ns, idle.end_ns, idle.phase, idle.step,
    idle.next_execution_id, ending.previous_execution_id,
    following.range_id,
    launches.api_name, launches.start_ns AS launch_start_ns, launches.end_ns AS launch_end_ns,
    coalesce(ending.end_ns, idle.start_ns) AS idle_since_ns,
    coalesce(ending.end_ns, idle.start_ns) + _process_keys.shift_ns AS at_key
FROM idle
INNER JOIN _process_keys ON idle.trace_id = _process_keys.trace_id AND idle.process_id = _process_keys.process_id
ASOF LEFT JOIN ending
    ON
        idle.trace_id = ending.trace_id
        AND idle.process_id = ending.process_id
        AND idle.device_id = ending.device_id
        AND idle.start_ns >= ending.end_ns
LEFT JOIN gpu_executions AS following
    ON idle.trace_id = following.trace_id AND idle.next_execution_id = following.gpu_execution_id
LEFT JOIN _api AS launches
    ON following.trace_id = launches.trace_id AND following.api_call_id = launches.api_call_id
