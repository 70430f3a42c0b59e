-- report_uncovered: GPU time without an operator, and operators without a cost model, by time.
--
-- grain: one row per (trace_id, missing, name, direction, reason); the first 30 of each trace
-- reads: unattributed, uncosted
--
-- columns:
--   trace_id BIGINT - the trace
--   position BIGINT - 1 = most time
--   missing VARCHAR - 'operator' or 'cost'
--   name VARCHAR - kernel or operator
--   direction VARCHAR - of the operator; '' for kernels
--   busy_ns BIGINT ns GPU busy time
--   reason VARCHAR - why it is missing
WITH uncovered AS (
    SELECT
        trace_id,
        'operator' AS missing,
        name,
        '' AS direction,
        sum(busy_ns)::BIGINT AS busy_ns,
        reason
    FROM unattributed
    GROUP BY trace_id, name, reason
    UNION ALL
    SELECT
        trace_id,
        'cost' AS missing,
        operator AS name,
        coalesce(direction, '') AS direction,
        sum(busy_ns)::BIGINT AS busy_ns,
        reason
    FROM uncosted
    -- Of these the kernels are listed: they have no operator that could have a cost.
    WHERE busy_ns > 0 AND operator NOT IN ('(unattributed)', '(step)', '(library)')
    GROUP BY trace_id, operator, coalesce(direction, ''), reason
)

SELECT
    trace_id,
    row_number() OVER (
        PARTITION BY trace_id ORDER BY busy_ns DESC, missing, name, direction, reason
    ) AS position,
    missing,
    name,
    direction,
    busy_ns,
    reason
FROM uncovered
QUALIFY position <= 30
ORDER BY trace_id, position
