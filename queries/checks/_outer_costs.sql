-- _outer_costs: FLOP that an outer annotated range declares beside those of its annotated parts.
-- grain: one row per outer range with FLOP whose parts state theirs
-- reads: _anchor_choices, _nvtx, _messages, _cost_parents
-- columns:
--   trace_id BIGINT - capture
--   range_id BIGINT - outer range
--   name VARCHAR - its name
--   declared_flop DOUBLE FLOP declared by it
--   parts_flop DOUBLE FLOP declared by the innermost ranges inside
WITH pairs AS (
    SELECT DISTINCT
        trace_id,
        unnest(annotated_ids[:-2]) AS outer_id,
        annotated_ids[-1] AS part_id
    FROM _anchor_choices
    WHERE len(annotated_ids) > 1
),

parts AS (
    SELECT
        pairs.trace_id,
        pairs.outer_id,
        sum(_messages.flop) AS parts_flop
    FROM pairs
    INNER JOIN _nvtx ON pairs.trace_id = _nvtx.trace_id AND pairs.part_id = _nvtx.range_id
    INNER JOIN _messages ON _nvtx.message_id = _messages.message_id
    ANTI JOIN _cost_parents ON pairs.trace_id = _cost_parents.trace_id AND pairs.part_id = _cost_parents.range_id
    GROUP BY pairs.trace_id, pairs.outer_id
    HAVING count(_messages.flop) = count(*)
)

SELECT
    parts.trace_id,
    parts.outer_id AS range_id,
    _messages.name,
    _messages.flop AS declared_flop,
    parts.parts_flop
FROM parts
INNER JOIN _nvtx ON parts.trace_id = _nvtx.trace_id AND parts.outer_id = _nvtx.range_id
INNER JOIN _messages ON _nvtx.message_id = _messages.message_id
WHERE _messages.flop IS NOT NULL
