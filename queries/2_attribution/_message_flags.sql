-- _message_flags: what a message makes of its range, as bits that the attribution tests.
-- grain: one row per message
-- reads: _messages, _solved_sizes, _shape_costs, _step_messages, _names
-- columns:
--   message_id BIGINT - message
--   name_id INTEGER - name
--   flags INTEGER - 4 autograd, 8 has a seq, 16 annotated operator (one that only names a phase is a plain range), 32 backward node, 64 evaluate_function, 128 annotated cost, 256 cost by shapes, 512 optimizer step, 1024 FLOP by shapes
SELECT
    _messages.message_id,
    _names.name_id,
    _messages.is_autograd::INTEGER * 4
    + (_messages.sequence IS NOT NULL)::INTEGER * 8
    + (
        _messages.is_annotation AND step_marks.message_id IS NULL
        AND NOT (_messages.phase IS NOT NULL AND _messages.flop IS NULL AND _messages.bytes IS NULL)
    )::INTEGER * 16
    + _messages.is_backward_node::INTEGER * 32
    + _messages.is_evaluate_function::INTEGER * 64
    + (
        _messages.is_annotation AND step_marks.message_id IS NULL
        AND (_messages.flop IS NOT NULL OR _messages.bytes IS NOT NULL)
    )::INTEGER * 128
    + coalesce(_shape_costs.flop > 0 OR _shape_costs.elements IS NOT NULL, false)::INTEGER * 256
    + starts_with(_messages.name, 'Optimizer.step#')::INTEGER * 512
    + coalesce(_shape_costs.flop > 0, false)::INTEGER * 1024 AS flags
FROM _messages
INNER JOIN _names ON _messages.name = _names.name
LEFT JOIN _solved_sizes ON _messages.message_id = _solved_sizes.message_id
LEFT JOIN _shape_costs
    ON _messages.name = _shape_costs.operator AND coalesce(_solved_sizes.sizes, _messages.shapes) = _shape_costs.shapes
LEFT JOIN (SELECT DISTINCT message_id FROM _step_messages WHERE rule = 'mfupipe') AS step_marks
    ON _messages.message_id = step_marks.message_id
