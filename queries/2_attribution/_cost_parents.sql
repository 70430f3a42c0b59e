-- _cost_parents: ranges whose cost covers that of a costed range inside them: their cost is not the cost of the rest.
-- grain: one row per range
-- reads: _anchor_choices
-- columns:
--   trace_id BIGINT - capture
--   range_id BIGINT - range
SELECT DISTINCT
    trace_id,
    unnest(annotated_ids[:-2]) AS range_id
FROM _anchor_choices
WHERE len(annotated_ids) > 1
UNION
SELECT DISTINCT
    trace_id,
    unnest(shaped_flop_ids[:-2]) AS range_id
FROM _anchor_choices
WHERE len(shaped_flop_ids) > 1
