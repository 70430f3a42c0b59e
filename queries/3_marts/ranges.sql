-- ranges: NVTX ranges with what their messages say.
-- grain: one row per push/pop or start/end range of the capture
-- reads: _nvtx, _texts, _messages, _solved_sizes, _shape_costs, _range_tree, _names, _step_ranges
-- stored: view
-- columns:
--   trace_id BIGINT - capture
--   range_id BIGINT - key within the trace: row of the source
--   process_id BIGINT - process
--   thread_id BIGINT - thread that opened it
--   domain VARCHAR - NVTX domain, '' for the default one
--   name VARCHAR - message without annotation fields, seq, op_id and sizes
--   message VARCHAR - message as captured, NULL when it has none
--   start_ns BIGINT ns start
--   end_ns BIGINT ns end; of an unclosed range the end of the capture
--   depth BIGINT - enclosing ranges; NULL when nothing was launched beneath
--   parent_range_id BIGINT - innermost enclosing range
--   path VARCHAR[] - names from the outermost range to this one
--   is_unclosed BOOLEAN - never ended: in no attribution
--   is_library BOOLEAN - of a CUDA library: a label
--   is_step BOOLEAN - marks a step
--   flop DOUBLE FLOP model FLOP, declared or by shapes
--   extra_flop DOUBLE FLOP beyond the model
--   bytes DOUBLE B declared bytes; those by shapes need a dtype and are in operator_calls
--   dtype VARCHAR - declared type
--   direction VARCHAR - declared direction
--   phase VARCHAR - declared phase
--   items DOUBLE - declared items
--   shapes VARCHAR - sizes of the arguments as captured
--   sequence BIGINT - autograd sequence number
--   op_id BIGINT - emit_nvtx operator number
--   cost_source VARCHAR - annotation or shapes, NULL without a cost
--   cost_reason VARCHAR - why a cost by shapes is unknown, or what it assumes
SELECT
    _nvtx.trace_id, _nvtx.range_id, _nvtx.process_id, _nvtx.thread_id, _nvtx.domain,
    coalesce(_messages.name, '(unnamed)') AS name,
    _texts.message, _nvtx.start_ns, _nvtx.end_ns, _range_tree.depth, _range_tree.parent_range_id,
    list_transform(_range_tree.name_ids, lambda id: names.by_id[id]) AS path,
    _nvtx.is_unclosed, _nvtx.is_library,
    _step_ranges.range_id IS NOT NULL AS is_step,
    coalesce(_messages.flop, _shape_costs.flop) AS flop,
    coalesce(_messages.extra_flop, _shape_costs.extra_flop) AS extra_flop,
    _messages.bytes, _messages.dtype, _messages.direction, _messages.phase, _messages.items, _messages.shapes,
    _messages.sequence, _messages.op_id,
    CASE
        WHEN _messages.flop IS NOT NULL OR _messages.bytes IS NOT NULL THEN 'annotation'
        WHEN _shape_costs.flop > 0 OR _shape_costs.elements IS NOT NULL THEN 'shapes'
    END AS cost_source,
    coalesce(_shape_costs.reason, _shape_costs.note) AS cost_reason
FROM _nvtx
CROSS JOIN (SELECT map(list(name_id), list(name)) AS by_id FROM _names) AS names
LEFT JOIN _texts ON _nvtx.message_id = _texts.message_id
LEFT JOIN _messages ON _nvtx.message_id = _messages.message_id
LEFT JOIN _solved_sizes ON _messages.message_id = _solved_sizes.message_id
LEFT JOIN _shape_costs
    ON _messages.name = _shape_costs.operator AND coalesce(_solved_sizes.sizes, _messages.shapes) = _shape_costs.shapes
LEFT JOIN _range_tree ON _nvtx.trace_id = _range_tree.trace_id AND _nvtx.range_id = _range_tree.range_id
LEFT JOIN _step_ranges
    ON
        _nvtx.trace_id = _step_ranges.trace_id
        AND _nvtx.range_id = _step_ranges.range_id
        AND _step_ranges.rule != 'optimizer'
