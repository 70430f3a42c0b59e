-- _anchors: points on a thread whose open ranges are wanted: launches, synchronizing calls, creations of graph nodes.
-- grain: one row per (trace, anchor)
-- reads: _api, _launches, _executions, _node_creations
-- columns:
--   trace_id BIGINT - capture
--   anchor_id BIGINT - API call; -1 - row of the creation event for graph nodes
--   process_id BIGINT - process
--   thread_id BIGINT - thread
--   at_ns BIGINT ns time of the point
--   is_launch BOOLEAN - launched an execution
WITH launching AS (
    SELECT DISTINCT trace_id, api_call_id FROM _launches
),

nodes AS (
    SELECT DISTINCT trace_id, process_id, graph_node_id
    FROM _executions
    WHERE graph_node_id IS NOT NULL
)

SELECT
    _api.trace_id,
    _api.api_call_id AS anchor_id,
    _api.process_id,
    _api.thread_id,
    _api.start_ns AS at_ns,
    launching.api_call_id IS NOT NULL AS is_launch
FROM _api
LEFT JOIN launching ON _api.trace_id = launching.trace_id AND _api.api_call_id = launching.api_call_id
WHERE launching.api_call_id IS NOT NULL OR _api.is_synchronizing
UNION ALL
SELECT DISTINCT
    _node_creations.trace_id,
    -1 - _node_creations.row_id AS anchor_id,
    _node_creations.process_id,
    _node_creations.thread_id,
    _node_creations.start_ns AS at_ns,
    false AS is_launch
FROM _node_creations
INNER JOIN nodes USING (trace_id, process_id, graph_node_id)
