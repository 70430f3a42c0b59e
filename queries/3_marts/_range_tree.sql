-- _range_tree: place of each range that has a launch beneath it, as the first of these launches saw it.
-- grain: one row per range with a launch beneath
-- reads: _anchor_paths
-- stored: view
-- columns:
--   trace_id BIGINT - capture
--   range_id BIGINT - range
--   depth BIGINT - enclosing ranges
--   parent_range_id BIGINT - innermost enclosing range
--   name_ids INTEGER[] - names from the outermost range to this one
WITH elements AS (
    SELECT
        trace_id,
        anchor_id,
        path,
        unnest(path).range_id AS range_id,
        generate_subscripts(path, 1) AS position
    FROM _anchor_paths
)

SELECT
    trace_id,
    range_id,
    arg_min(position, anchor_id) - 1 AS depth,
    arg_min(CASE WHEN position > 1 THEN path[position - 1].range_id END, anchor_id) AS parent_range_id,
    list_transform(arg_min(path[:position], anchor_id), lambda r: r.name_id) AS name_ids
FROM elements
GROUP BY trace_id, range_id
