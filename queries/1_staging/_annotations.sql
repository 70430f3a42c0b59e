-- _annotations: messages read by the annotation grammar.
-- grain: one row per message with fields that the grammar reads: all in the mfupipe domain, elsewhere only those that state a cost
-- reads: _annotation_fields, _texts
-- columns:
--   message_id BIGINT - message
--   flop DOUBLE FLOP model FLOP of one execution
--   extra_flop DOUBLE FLOP executed beyond the model: recompute, padding
--   flop_min DOUBLE FLOP lower bound
--   bytes DOUBLE B fused bytes of one execution
--   dtype VARCHAR - type the operator computes in
--   direction VARCHAR - forward, backward or update
--   phase VARCHAR - phase of a step
--   items DOUBLE - items of a step
--   tokens DOUBLE - tokens of a step
--   step_index DOUBLE - number of a step
--   bad_fields BIGINT - fields that repeat or do not parse
SELECT
    message_id,
    max(number) FILTER (WHERE key = 'flop') AS flop,
    max(number) FILTER (WHERE key = 'extra_flop') AS extra_flop,
    max(number) FILTER (WHERE key = 'flop_min') AS flop_min,
    max(number) FILTER (WHERE key = 'bytes') AS bytes,
    max(lower(value)) FILTER (WHERE key = 'dtype') AS dtype,
    max(value) FILTER (
        WHERE key = 'direction' AND value IN ('forward', 'backward', 'update')
    ) AS direction,
    max(value) FILTER (WHERE key = 'phase') AS phase,
    max(number) FILTER (WHERE key = 'items') AS items,
    max(number) FILTER (WHERE key = 'tokens') AS tokens,
    max(number) FILTER (WHERE key = 'index') AS step_index,
    count(*) FILTER (
        WHERE
            is_known
            AND CASE
                WHEN key IN ('dtype', 'phase') THEN value IS NULL
                WHEN key = 'direction' THEN value IS NULL OR value NOT IN ('forward', 'backward', 'update')
                ELSE number IS NULL
            END
    ) AS bad_fields
FROM _annotation_fields
INNER JOIN _texts USING (message_id)
GROUP BY message_id
HAVING
    bool_or(in_mfupipe_domain)
    OR (bool_and(is_known) AND bool_or(is_known AND key IN ('flop', 'bytes', 'index')))
