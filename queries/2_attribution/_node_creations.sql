-- _node_creations: where each CUDA graph node was captured: instantiation and cloning give a node a new id and name its original.
-- grain: one row per (trace, process, graph node) with a creation event
-- reads: raw_graph_node_events
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   graph_node_id BIGINT - node as executed
--   row_id BIGINT - creation event
--   thread_id BIGINT - thread that captured it
--   start_ns BIGINT ns time of the capture, before 0 when the graph was built before the trace
WITH RECURSIVE events AS (
    SELECT
        *,
        global_tid & -16777216 AS process_id
    FROM raw_graph_node_events
),

originals AS (
    SELECT
        trace_id,
        process_id,
        graph_node_id,
        graph_node_id AS original_id,
        0 AS hops
    FROM events
    UNION
    SELECT
        originals.trace_id,
        originals.process_id,
        originals.graph_node_id,
        events.original_graph_node_id,
        originals.hops + 1
    FROM originals
    INNER JOIN events
        ON
            originals.trace_id = events.trace_id
            AND originals.process_id = events.process_id
            AND originals.original_id = events.graph_node_id
            AND events.original_graph_node_id != originals.original_id
    WHERE originals.hops < 8
),

roots AS (
    SELECT
        trace_id,
        process_id,
        graph_node_id,
        arg_max(original_id, hops) AS original_id
    FROM originals
    GROUP BY trace_id, process_id, graph_node_id
)

SELECT
    roots.trace_id,
    roots.process_id,
    roots.graph_node_id,
    arg_min(events.row_id, (events.start_ns, events.row_id)) AS row_id,
    arg_min(events.global_tid, (events.start_ns, events.row_id)) AS thread_id,
    min(events.start_ns) AS start_ns
FROM roots
INNER JOIN events
    ON
        roots.trace_id = events.trace_id
        AND roots.process_id = events.process_id
        AND roots.original_id = events.graph_node_id
GROUP BY roots.trace_id, roots.process_id, roots.graph_node_id
