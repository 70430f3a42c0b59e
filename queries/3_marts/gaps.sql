-- gaps: intervals inside the windows in which a device executes nothing, and what the host did.
-- grain: one row per idle interval of a device inside a window
-- reads: _slices, gpu_executions, _api, _process_keys
-- columns:
--   trace_id BIGINT - capture
--   device_id BIGINT - device
--   process_id BIGINT - process
--   start_ns BIGINT ns start
--   end_ns BIGINT ns end
--   gap_ns BIGINT ns length
--   phase VARCHAR - phase of the window
--   step BIGINT - step of the window, NULL without steps
--   previous_execution_id BIGINT - execution that ends at the start
--   next_execution_id BIGINT - execution that starts at the end
--   cause VARCHAR - sync (a thread was in a synchronizing call, and launched next after it), launch (the next launch returned after the gap began), other (already queued, or unknown)
--   api_name VARCHAR - the synchronizing call, else the next launch
--   range_id BIGINT - innermost range at the next launch
WITH idle AS (
    SELECT
        _slices.*,
        min(starting.gpu_execution_id) AS next_execution_id
    FROM _slices
    LEFT JOIN gpu_executions AS starting
        ON
            _slices.trace_id = starting.trace_id
            AND _slices.process_id = starting.process_id
            AND _slices.device_id = starting.device_id
            AND _slices.end_ns = starting.start_ns
    WHERE _slices.slice_class = 'idle'
    GROUP BY ALL
),

ending AS (
    SELECT
        trace_id, process_id, device_id, end_ns,
        max(gpu_execution_id) AS previous_execution_id
    FROM gpu_executions
    WHERE is_valid
    GROUP BY trace_id, process_id, device_id, end_ns
),

launched AS (
    SELECT
        idle.trace_id, idle.device_id, idle.process_id, idle.start_ns, idle.end_ns, idle.phase, idle.step,
        idle.next_execution_id, ending.previous_execution_id,
        following.range_id,
        launches.api_name, launches.start_ns AS launch_start_ns, launches.end_ns AS launch_end_ns,
        idle.start_ns + _process_keys.shift_ns AS at_key
    FROM idle
    INNER JOIN _process_keys ON idle.trace_id = _process_keys.trace_id AND idle.process_id = _process_keys.process_id
    LEFT JOIN ending
        ON
            idle.trace_id = ending.trace_id
            AND idle.process_id = ending.process_id
            AND idle.device_id = ending.device_id
            AND idle.start_ns = ending.end_ns
    LEFT JOIN gpu_executions AS following
        ON idle.trace_id = following.trace_id AND idle.next_execution_id = following.gpu_execution_id
    LEFT JOIN _api AS launches
        ON following.trace_id = launches.trace_id AND following.api_call_id = launches.api_call_id
),

synchronizing AS (
    SELECT
        _api.api_name,
        _api.start_ns,
        _api.end_ns,
        _api.start_ns + _process_keys.shift_ns AS start_key,
        _api.end_ns + _process_keys.shift_ns AS end_key
    FROM _api
    INNER JOIN _process_keys ON _api.trace_id = _process_keys.trace_id AND _api.process_id = _process_keys.process_id
    WHERE _api.is_synchronizing AND _api.end_ns > _api.start_ns
),

blocked AS (
    SELECT
        launched.trace_id, launched.process_id, launched.device_id, launched.start_ns,
        arg_min(synchronizing.api_name, synchronizing.start_ns) AS api_name
    FROM launched
    INNER JOIN synchronizing
        ON synchronizing.start_key <= launched.at_key AND synchronizing.end_key > launched.at_key
    WHERE launched.launch_start_ns >= synchronizing.end_ns
    GROUP BY launched.trace_id, launched.process_id, launched.device_id, launched.start_ns
)

SELECT
    launched.trace_id, launched.device_id, launched.process_id, launched.start_ns, launched.end_ns,
    launched.end_ns - launched.start_ns AS gap_ns,
    launched.phase, launched.step, launched.previous_execution_id, launched.next_execution_id,
    CASE
        WHEN blocked.start_ns IS NOT NULL THEN 'sync'
        WHEN launched.launch_end_ns > launched.start_ns THEN 'launch'
        ELSE 'other'
    END AS cause,
    coalesce(blocked.api_name, launched.api_name) AS api_name,
    launched.range_id
FROM launched
LEFT JOIN blocked USING (trace_id, process_id, device_id, start_ns)
