-- uncosted: operators with calls whose FLOP or bytes are unknown, inside the windows.
-- grain: one row per (trace, operator, direction, reason)
-- reads: _window_calls, operator_calls
-- columns:
--   trace_id BIGINT - capture
--   operator VARCHAR - operator
--   direction VARCHAR - forward, backward, update; '' for the '(..)' names
--   busy_ns DOUBLE ns compute time of these calls
--   reason VARCHAR - why the cost is unknown
SELECT
    inside.trace_id,
    inside.operator,
    inside.direction,
    sum(inside.tau_ns) AS busy_ns,
    coalesce(calls.cost_reason, 'no cost declared, and no sizes in the range names') AS reason
FROM _window_calls AS inside
INNER JOIN operator_calls AS calls
    ON inside.trace_id = calls.trace_id AND inside.operator_call_id = calls.operator_call_id
WHERE NOT inside.is_costed
GROUP BY ALL
ORDER BY inside.trace_id, busy_ns DESC, inside.operator, inside.direction, reason
