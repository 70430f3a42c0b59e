-- _range_costs: what a costed range declares, or what the sizes of its arguments say.
-- grain: one row per range that covers an execution
-- reads: _call_works, _nvtx, _messages, _solved_sizes, _shape_costs
-- columns:
--   trace_id BIGINT - capture
--   range_id BIGINT - range
--   cost_source VARCHAR - annotation or shapes
--   shapes VARCHAR - sizes of the arguments
--   declared_dtype VARCHAR - type declared
--   flop DOUBLE FLOP model FLOP
--   extra_flop DOUBLE FLOP beyond the model
--   flop_min DOUBLE FLOP lower bound
--   bytes DOUBLE B declared bytes
--   elements DOUBLE - elements that cross the border, whose width is the type's
--   index_bytes DOUBLE B bytes whose width is fixed
--   cost_reason VARCHAR - what is unknown, or what a known value assumes
--   causal_unknown BOOLEAN - attention that may be causal, counted in full
WITH covering AS (
    SELECT DISTINCT trace_id, cost_range_id AS range_id
    FROM _call_works
    WHERE cost_range_id IS NOT NULL
)

SELECT
    covering.trace_id,
    covering.range_id,
    if(_messages.is_annotation, 'annotation', 'shapes') AS cost_source,
    _messages.shapes,
    _messages.dtype AS declared_dtype,
    if(_messages.is_annotation, _messages.flop, _shape_costs.flop) AS flop,
    coalesce(if(_messages.is_annotation, _messages.extra_flop, _shape_costs.extra_flop), 0) AS extra_flop,
    if(_messages.is_annotation, _messages.flop_min, _shape_costs.flop_min) AS flop_min,
    _messages.bytes,
    _shape_costs.elements,
    coalesce(_shape_costs.index_bytes, 0) AS index_bytes,
    coalesce(_shape_costs.reason, _shape_costs.note) AS cost_reason,
    coalesce(_shape_costs.causal_unknown, false) AS causal_unknown
FROM covering
INNER JOIN _nvtx ON covering.trace_id = _nvtx.trace_id AND covering.range_id = _nvtx.range_id
INNER JOIN _messages ON _nvtx.message_id = _messages.message_id
LEFT JOIN _solved_sizes ON _messages.message_id = _solved_sizes.message_id
LEFT JOIN _shape_costs
    ON _messages.name = _shape_costs.operator AND coalesce(_solved_sizes.sizes, _messages.shapes) = _shape_costs.shapes
