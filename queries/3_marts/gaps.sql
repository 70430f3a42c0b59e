-- gaps: intervals inside the windows in which a device executes nothing, and what the host did.
-- grain: one row per idle interval of a device inside a window
-- reads: _gap_launches, _gap_blocks
-- columns:
--   trace_id BIGINT - capture
--   device_id BIGINT - device
--   process_id BIGINT - process
--   start_ns BIGINT ns start
--   end_ns BIGINT ns end
--   gap_ns BIGINT ns length
--   phase VARCHAR - phase of the window
--   step BIGINT - step of the window, NULL without steps
--   previous_execution_id BIGINT - execution whose end made the device idle
--   next_execution_id BIGINT - execution that ends the idle time; a window may cut it at either end
--   cause VARCHAR - sync (a thread was in a synchronizing call, and launched next after it), launch (the next launch returned after the gap began), other (already queued, or unknown)
--   api_name VARCHAR - the synchronizing call, else the next launch
--   range_id BIGINT - innermost range at the next launch
SELECT
    launched.trace_id, launched.device_id, launched.process_id, launched.start_ns, launched.end_ns,
    launched.end_ns - launched.start_ns AS gap_ns,
    launched.phase, launched.step, launched.previous_execution_id, launched.next_execution_id,
    CASE
        WHEN blocked.start_ns IS NOT NULL THEN 'sync'
        WHEN launched.launch_end_ns > launched.idle_since_ns THEN 'launch'
        ELSE 'other'
    END AS cause,
    coalesce(blocked.api_name, launched.api_name) AS api_name,
    launched.range_id
FROM _gap_launches AS launched
LEFT JOIN _gap_blocks AS blocked USING (trace_id, process_id, device_id, start_ns)
