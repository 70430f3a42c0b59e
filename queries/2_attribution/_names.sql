-- _names: distinct range names, so that a path is a short list of numbers.
-- grain: one row per name
-- reads: _messages
-- stored: table
-- columns:
--   name_id INTEGER - key within the RUN
--   name VARCHAR - range name
SELECT
    (row_number() OVER ())::INTEGER AS name_id,
    name
FROM (SELECT DISTINCT name FROM _messages)
