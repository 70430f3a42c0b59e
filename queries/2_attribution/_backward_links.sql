-- _backward_links: the forward range whose autograd node a backward range executes. Sequence numbers restart per thread and name
-- several forward ranges (linear and t, or matmul and reshape): the last one started before the backward range made the node.
-- grain: one row per backward range that names an operator
-- reads: _anchor_choices, _nvtx, _messages
-- columns:
--   trace_id BIGINT - capture
--   range_id BIGINT - backward node, or evaluate_function without one
--   forward_range_id BIGINT - forward range, NULL when none matches
--   forward_name VARCHAR - its name
WITH wanted AS (
    SELECT DISTINCT trace_id, operator_range_id AS range_id
    FROM _anchor_choices
    WHERE is_backward AND (operator_flags & 96) > 0
),

backward AS (
    SELECT
        _nvtx.trace_id, _nvtx.range_id, _nvtx.process_id, _nvtx.thread_id, _nvtx.start_ns, _nvtx.end_ns,
        _messages.sequence, _messages.name, _messages.is_evaluate_function
    FROM wanted
    INNER JOIN _nvtx ON wanted.trace_id = _nvtx.trace_id AND wanted.range_id = _nvtx.range_id
    INNER JOIN _messages ON _nvtx.message_id = _messages.message_id
),

nodes AS (
    SELECT
        _nvtx.trace_id, _nvtx.thread_id, _nvtx.start_ns, _messages.sequence,
        'autograd::engine::evaluate_function: ' || _messages.name AS wrapper_name
    FROM _nvtx
    INNER JOIN _messages ON _nvtx.message_id = _messages.message_id
    WHERE _messages.is_backward_node
),

wrapped AS (
    SELECT
        backward.trace_id, backward.range_id,
        CASE WHEN nodes.start_ns < backward.end_ns THEN nodes.sequence END AS sequence
    FROM (SELECT * FROM backward WHERE is_evaluate_function) AS backward
    ASOF INNER JOIN nodes
        ON
            backward.trace_id = nodes.trace_id
            AND backward.thread_id = nodes.thread_id
            AND backward.name = nodes.wrapper_name
            AND backward.start_ns <= nodes.start_ns
),

numbered AS (
    SELECT
        backward.trace_id, backward.range_id, backward.process_id, backward.start_ns,
        coalesce(backward.sequence, wrapped.sequence) AS sequence
    FROM backward
    LEFT JOIN wrapped ON backward.trace_id = wrapped.trace_id AND backward.range_id = wrapped.range_id
    WHERE NOT ends_with(backward.name, 'AccumulateGrad')
),

forwards AS (
    SELECT _nvtx.trace_id, _nvtx.process_id, _nvtx.range_id, _nvtx.start_ns, _messages.sequence, _messages.name
    FROM _nvtx
    INNER JOIN _messages ON _nvtx.message_id = _messages.message_id
    WHERE
        _messages.sequence IS NOT NULL
        AND NOT _messages.is_backward_node
        AND NOT _messages.is_evaluate_function
)

SELECT
    numbered.trace_id,
    numbered.range_id,
    forwards.range_id AS forward_range_id,
    forwards.name AS forward_name
FROM numbered
ASOF INNER JOIN forwards
    ON
        numbered.trace_id = forwards.trace_id
        AND numbered.process_id = forwards.process_id
        AND numbered.sequence = forwards.sequence
        AND numbered.start_ns >= forwards.start_ns
