-- coverage: how much of the compute time inside the windows has an operator, and how much a cost.
-- grain: one row per (trace, process, device, phase)
-- reads: _window_calls, _slices
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   device_id BIGINT - device
--   phase VARCHAR - phase, '' when there is one
--   busy_ns BIGINT ns union of all executions inside the windows
--   attributed_pct DOUBLE % of compute time in an operator or a library range; '(unattributed)' and '(step)' do not count
--   costed_pct DOUBLE % of compute time in calls whose FLOP and bytes are known
WITH shares AS (
    SELECT
        trace_id, process_id, device_id, phase,
        sum(tau_ns) AS compute_ns,
        coalesce(sum(tau_ns) FILTER (WHERE operator NOT IN ('(unattributed)', '(step)')), 0) AS attributed_ns,
        coalesce(sum(tau_ns) FILTER (WHERE is_costed), 0) AS costed_ns
    FROM _window_calls
    GROUP BY trace_id, process_id, device_id, phase
),

busy AS (
    SELECT
        trace_id, process_id, device_id, phase,
        coalesce(sum(end_ns - start_ns) FILTER (WHERE slice_class != 'idle'), 0)::BIGINT AS busy_ns
    FROM _slices
    GROUP BY trace_id, process_id, device_id, phase
)

SELECT
    trace_id, process_id, device_id, phase, busy.busy_ns,
    if(shares.compute_ns > 0, 100 * shares.attributed_ns / shares.compute_ns, NULL) AS attributed_pct,
    if(shares.compute_ns > 0, 100 * shares.costed_ns / shares.compute_ns, NULL) AS costed_pct
FROM busy
LEFT JOIN shares USING (trace_id, process_id, device_id, phase)
ORDER BY trace_id, process_id, device_id, phase
