-- _attributed: operator, cost range, step and call of each execution. A graph node takes operator and cost from where it was
-- captured, and range, step and call from the launch of its graph.
-- grain: one row per execution
-- reads: _executions, _launches, _anchor_operators, _node_creations, _step_ranges
-- columns:
--   trace_id BIGINT - capture
--   gpu_execution_id BIGINT - execution
--   api_call_id BIGINT - launching call
--   range_id BIGINT - innermost range at the launch
--   range_ids BIGINT[] - ranges open at the launch, outermost first
--   name_ids INTEGER[] - their names
--   operator_range_id BIGINT - range of the operator
--   operator VARCHAR - operator
--   direction VARCHAR - forward, backward, update or ''
--   attribution VARCHAR - thread, sequence, phase, graph or none
--   cost_range_id BIGINT - range whose cost covers the execution
--   is_covered BOOLEAN - a cost encloses it, but covers costed ranges inside
--   step BIGINT - step, NULL outside steps
--   phase VARCHAR - phase of the step, '' outside steps
--   graph_launch_id BIGINT - launching call when operator and cost come from the capture of a graph
--   launched_ns BIGINT ns start of the launching call
WITH launched AS (
    SELECT
        _executions.trace_id, _executions.gpu_execution_id, _executions.kind, _executions.process_id,
        _launches.api_call_id,
        -1 - _node_creations.row_id AS creation_id
    FROM _executions
    LEFT JOIN _launches
        ON _executions.trace_id = _launches.trace_id AND _executions.gpu_execution_id = _launches.gpu_execution_id
    LEFT JOIN _node_creations
        ON
            _executions.trace_id = _node_creations.trace_id
            AND _executions.process_id = _node_creations.process_id
            AND _executions.graph_node_id = _node_creations.graph_node_id
),

joined AS (
    SELECT
        launched.trace_id, launched.gpu_execution_id, launched.kind, launched.process_id, launched.api_call_id,
        launch.at_ns, launch.range_id, launch.range_ids, launch.name_ids,
        coalesce(creation.operator_range_id IS NOT NULL, false) AS by_creation,
        if(by_creation, creation.operator_range_id, launch.operator_range_id) AS operator_range_id,
        if(by_creation, creation.operator, launch.operator) AS operator,
        if(by_creation, creation.direction, launch.direction) AS direction,
        if(by_creation, 'graph', launch.attribution) AS attribution,
        if(by_creation, creation.cost_range_id, launch.cost_range_id) AS cost_range_id,
        if(by_creation, creation.is_annotated, launch.is_annotated) AS is_annotated,
        if(by_creation, creation.covered, launch.covered) AS is_covered
    FROM launched
    LEFT JOIN _anchor_operators AS launch
        ON launched.trace_id = launch.trace_id AND launched.api_call_id = launch.anchor_id
    LEFT JOIN _anchor_operators AS creation
        ON launched.trace_id = creation.trace_id AND launched.creation_id = creation.anchor_id
)

SELECT
    joined.trace_id, joined.gpu_execution_id, joined.api_call_id, joined.range_id, joined.range_ids, joined.name_ids,
    joined.operator_range_id,
    coalesce(joined.operator, '(unattributed)') AS operator,
    coalesce(joined.direction, '') AS direction,
    coalesce(joined.attribution, 'none') AS attribution,
    if(joined.kind = 'graph' AND NOT joined.is_annotated, NULL, joined.cost_range_id) AS cost_range_id,
    coalesce(joined.is_covered, false) AS is_covered,
    if(joined.at_ns < _step_ranges.end_ns, _step_ranges.step, NULL) AS step,
    if(joined.at_ns < _step_ranges.end_ns, _step_ranges.phase, '') AS phase,
    if(joined.by_creation, joined.api_call_id, NULL) AS graph_launch_id,
    joined.at_ns AS launched_ns
FROM joined
ASOF LEFT JOIN _step_ranges
    ON
        joined.trace_id = _step_ranges.trace_id
        AND joined.process_id = _step_ranges.process_id
        AND joined.at_ns >= _step_ranges.start_ns
