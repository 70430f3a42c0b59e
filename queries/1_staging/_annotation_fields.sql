-- _annotation_fields: key=value parts of messages that may be in the annotation grammar NAME|key=value|...
-- grain: one row per (message, key)
-- reads: _texts
-- columns:
--   message_id BIGINT - message
--   key VARCHAR - text before the first '='; the whole part when there is none
--   is_known BOOLEAN - the grammar knows the key
--   occurrences BIGINT - parts with this key; more than one leaves the field unknown
--   value VARCHAR - decoded text after the '=', NULL when repeated
--   number DOUBLE - value as a finite number that is not negative, NULL otherwise
WITH parts AS (
    SELECT
        message_id,
        unnest(string_split(message, '|')[2:]) AS part
    FROM _texts
    WHERE contains(message, '|')
),

fields AS (
    SELECT
        message_id,
        CASE WHEN contains(part, '=') THEN split_part(part, '=', 1) ELSE part END AS key,
        contains(part, '=') AS has_value,
        substr(part, strpos(part, '=') + 1) AS text
    FROM parts
)

SELECT
    message_id,
    key,
    has_value AND key IN (
        'flop', 'extra_flop', 'bytes', 'dtype', 'direction', 'phase', 'items', 'tokens', 'index',
        'flop_min', 'flop_max', 'bytes_min', 'bytes_max'
    ) AS is_known,
    count(*) AS occurrences,
    CASE WHEN count(*) = 1 THEN coalesce(min(try(url_decode(text))), min(text)) END AS value,
    CASE
        WHEN count(*) = 1 AND isfinite(min(try_cast(text AS DOUBLE))) AND min(try_cast(text AS DOUBLE)) >= 0
            THEN min(try_cast(text AS DOUBLE))
    END AS number
FROM fields
GROUP BY message_id, key, has_value
