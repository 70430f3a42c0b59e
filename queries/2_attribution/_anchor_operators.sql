-- _anchor_operators: operator, direction and cost range of each anchor.
-- grain: one row per anchor
-- reads: _anchors, _anchor_choices, _backward_links, _phase_ranges, _cost_parents, _nvtx, _messages
-- stored: table
-- columns:
--   trace_id BIGINT - capture
--   anchor_id BIGINT - anchor
--   at_ns BIGINT ns time of the anchor
--   process_id BIGINT - process
--   range_id BIGINT - innermost range, of another thread when its own has none
--   range_ids BIGINT[] - ranges open on its thread, outermost first
--   name_ids INTEGER[] - their names
--   operator_range_id BIGINT - range of the operator
--   operator VARCHAR - name, or '(step)', '(library)', '(unattributed)'
--   direction VARCHAR - forward, backward, update; '' for the '(..)' names
--   attribution VARCHAR - thread, sequence, phase or none
--   cost_range_id BIGINT - range whose cost the launches share
--   is_annotated BOOLEAN - that cost is an annotation
--   covered BOOLEAN - the innermost cost covers costed ranges inside it, so that none is left for this launch
WITH costed AS (
    SELECT
        *,
        coalesce(annotated_ids[-1], shaped_ids[-1]) AS innermost_cost_id
    FROM _anchor_choices
),

operator_ranges AS (
    SELECT
        _anchors.trace_id, _anchors.anchor_id, _anchors.at_ns, _anchors.process_id,
        costed.range_ids, costed.name_ids,
        coalesce(costed.range_id, _phase_ranges.range_id) AS range_id,
        coalesce(costed.operator_range_id, if(_phase_ranges.is_step, NULL, _phase_ranges.range_id)) AS operator_range_id,
        coalesce(costed.is_backward, false) AS is_backward,
        coalesce(costed.is_update, false) AS is_update,
        CASE
            WHEN costed.anchor_id IS NOT NULL THEN costed.placeholder
            WHEN _phase_ranges.is_step THEN '(step)'
            WHEN _phase_ranges.range_id IS NULL THEN '(unattributed)'
        END AS placeholder,
        costed.anchor_id IS NULL AND _phase_ranges.range_id IS NOT NULL AS is_phase,
        costed.innermost_cost_id,
        len(coalesce(costed.annotated_ids, [])) > 0 AS is_annotated
    FROM _anchors
    LEFT JOIN costed ON _anchors.trace_id = costed.trace_id AND _anchors.anchor_id = costed.anchor_id
    LEFT JOIN _phase_ranges
        ON _anchors.trace_id = _phase_ranges.trace_id AND _anchors.anchor_id = _phase_ranges.anchor_id
)

SELECT
    operator_ranges.trace_id,
    operator_ranges.anchor_id,
    operator_ranges.at_ns,
    operator_ranges.process_id,
    operator_ranges.range_id,
    operator_ranges.range_ids,
    operator_ranges.name_ids,
    operator_ranges.operator_range_id,
    coalesce(operator_ranges.placeholder, _backward_links.forward_name, _messages.name, '(unnamed)') AS operator,
    CASE
        WHEN operator_ranges.placeholder IS NOT NULL THEN ''
        WHEN _messages.direction IS NOT NULL THEN _messages.direction
        WHEN operator_ranges.is_backward THEN 'backward'
        WHEN operator_ranges.is_update THEN 'update'
        ELSE 'forward'
    END AS direction,
    CASE
        WHEN operator_ranges.placeholder = '(unattributed)' THEN 'none'
        WHEN operator_ranges.is_phase THEN 'phase'
        WHEN _backward_links.forward_range_id IS NOT NULL THEN 'sequence'
        ELSE 'thread'
    END AS attribution,
    if(_cost_parents.range_id IS NULL, operator_ranges.innermost_cost_id, NULL) AS cost_range_id,
    operator_ranges.is_annotated,
    _cost_parents.range_id IS NOT NULL AS covered
FROM operator_ranges
LEFT JOIN _nvtx
    ON operator_ranges.trace_id = _nvtx.trace_id AND operator_ranges.operator_range_id = _nvtx.range_id
LEFT JOIN _messages ON _nvtx.message_id = _messages.message_id
LEFT JOIN _backward_links
    ON
        operator_ranges.trace_id = _backward_links.trace_id
        AND operator_ranges.operator_range_id = _backward_links.range_id
LEFT JOIN _cost_parents
    ON operator_ranges.trace_id = _cost_parents.trace_id AND operator_ranges.innermost_cost_id = _cost_parents.range_id
