-- coverage: how much of the busy time inside the windows has an operator, and how much a cost.
-- grain: one row per (trace, process, device, phase)
-- reads: _window_executions, _window_calls
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   device_id BIGINT - device
--   phase VARCHAR - phase, '' when there is one
--   busy_ns BIGINT ns union of all executions inside the windows
--   attributed_pct DOUBLE % of busy time in an operator or a library range; '(unattributed)' and '(step)' do not count
--   costed_pct DOUBLE % of busy time in calls whose FLOP and bytes are known
WITH executions AS (
    SELECT
        trace_id, process_id, device_id, phase,
        _window_executions.start_ns, _window_executions.end_ns,
        _window_calls.operator NOT IN ('(unattributed)', '(step)') AS is_attributed,
        _window_calls.is_costed
    FROM _window_executions
    INNER JOIN _window_calls USING (trace_id, process_id, device_id, phase, operator_call_id)
),

ordered AS (
    SELECT
        *,
        coalesce(max(end_ns) OVER before, start_ns) AS covered_ns,
        coalesce(max(if(is_attributed, end_ns, NULL)) OVER before, start_ns) AS attributed_covered_ns,
        coalesce(max(if(is_costed, end_ns, NULL)) OVER before, start_ns) AS costed_covered_ns
    FROM executions
    WINDOW before AS (
        PARTITION BY trace_id, process_id, device_id, phase
        ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),

unions AS (
    SELECT
        trace_id, process_id, device_id, phase,
        sum(greatest(end_ns - greatest(start_ns, covered_ns), 0))::BIGINT AS busy_ns,
        coalesce(sum(greatest(end_ns - greatest(start_ns, attributed_covered_ns), 0)) FILTER (WHERE is_attributed), 0) AS attributed_ns,
        coalesce(sum(greatest(end_ns - greatest(start_ns, costed_covered_ns), 0)) FILTER (WHERE is_costed), 0) AS costed_ns
    FROM ordered
    GROUP BY trace_id, process_id, device_id, phase
)

SELECT
    trace_id, process_id, device_id, phase, busy_ns,
    if(busy_ns > 0, 100 * attributed_ns / busy_ns, NULL) AS attributed_pct,
    if(busy_ns > 0, 100 * costed_ns / busy_ns, NULL) AS costed_pct
FROM unions
ORDER BY trace_id, process_id, device_id, phase
