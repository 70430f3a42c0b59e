-- _paths: distinct paths of range names.
-- grain: one row per list of names
-- reads: _attributed, _names
-- columns:
--   name_ids INTEGER[] - names by number
--   path VARCHAR[] - names, outermost first
WITH lists AS (
    SELECT DISTINCT name_ids
    FROM _attributed
    WHERE name_ids IS NOT NULL
),

elements AS (
    SELECT
        name_ids,
        generate_subscripts(name_ids, 1) AS position,
        unnest(name_ids) AS name_id
    FROM lists
)

SELECT
    elements.name_ids,
    list(coalesce(_names.name, '(unnamed)') ORDER BY elements.position) AS path
FROM elements
LEFT JOIN _names ON elements.name_id = _names.name_id
GROUP BY elements.name_ids
