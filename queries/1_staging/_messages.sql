-- _messages: what each distinct range message says: name, autograd fields, annotation.
-- grain: one row per message of _texts
-- reads: _texts, _annotations
-- stored: table
-- columns:
--   message_id BIGINT - message
--   in_mfupipe_domain BOOLEAN - pushed in the mfupipe domain, where unknown fields are ignored
--   name VARCHAR - text without annotation fields, seq, op_id and sizes
--   is_annotation BOOLEAN - read by the annotation grammar
--   is_autograd BOOLEAN - pushed by emit_nvtx: has seq, op_id or sizes
--   sequence BIGINT - autograd sequence number
--   op_id BIGINT - emit_nvtx operator number
--   shapes VARCHAR - sizes of the arguments as captured
--   is_evaluate_function BOOLEAN - autograd engine's wrapper around a backward node
--   is_backward_node BOOLEAN - autograd node of the backward pass
--   flop DOUBLE FLOP declared model FLOP
--   extra_flop DOUBLE FLOP declared FLOP beyond the model
--   flop_min DOUBLE FLOP declared lower bound
--   bytes DOUBLE B declared fused bytes
--   dtype VARCHAR - declared type
--   direction VARCHAR - declared direction
--   phase VARCHAR - declared phase
--   items DOUBLE - declared items
--   tokens DOUBLE - declared tokens
--   step_index DOUBLE - declared step number
--   bad_fields BIGINT - fields that repeat or do not parse
WITH readings AS (
    SELECT
        _texts.message_id,
        _texts.message,
        _texts.in_mfupipe_domain,
        _texts.in_mfupipe_domain OR _annotations.message_id IS NOT NULL AS is_annotation,
        _annotations.* EXCLUDE (message_id)
    FROM _texts
    LEFT JOIN _annotations ON _texts.message_id = _annotations.message_id
),

-- where emit_nvtx's fields begin (torch/csrc/profiler/util.cpp fixes their order); string functions, since most messages of a
-- capture are distinct and the regular expression with its lazy NAME takes ten times as long
placed AS (
    SELECT
        *,
        coalesce(
            nullif(strpos(message, ', seq = '), 0), nullif(strpos(message, ', op_id = '), 0), nullif(strpos(message, ', sizes = '), 0)
        ) AS fields_at
    FROM readings
),

cut AS (
    SELECT
        *,
        substr(message, fields_at) AS fields,
        regexp_full_match(
            substr(message, fields_at),
            '(, seq = \d+)?(, op_id = \d+)?(, sizes = \[[\[\]0-9, ]*\])?(, input_op_ids = \[[()0-9, ]*\])?'
        ) AS is_plain
    FROM placed
),

parsed AS (
    SELECT
        *,
        CASE
            WHEN is_annotation OR fields_at IS NULL THEN NULL
            WHEN is_plain THEN {
                'name': left(message, fields_at - 1),
                'sequence': split_part(split_part(fields, ', seq = ', 2), ',', 1),
                'op_id': split_part(split_part(fields, ', op_id = ', 2), ',', 1),
                'shapes': split_part(split_part(fields, ', sizes = ', 2), ', input_op_ids = ', 1)
            }
            ELSE regexp_extract(
                message,
                '^((?s:.*?))(?:, seq = (\d+))?(?:, op_id = (\d+))?(?:, sizes = (\[.*?\]))?(?:, input_op_ids = \[.*\])?$',
                ['name', 'sequence', 'op_id', 'shapes']
            )
        END AS autograd,
        if(is_annotation, string_split(message, '|')[1], NULL) AS head
    FROM cut
),

named AS (
    SELECT
        *,
        CASE
            WHEN is_annotation THEN coalesce(try(url_decode(head)), head)
            ELSE coalesce(autograd.name, message)
        END AS name
    FROM parsed
)

SELECT
    message_id,
    in_mfupipe_domain,
    name,
    is_annotation,
    coalesce(nullif(autograd.sequence, ''), nullif(autograd.op_id, ''), nullif(autograd.shapes, '')) IS NOT NULL
        AS is_autograd,
    try_cast(nullif(autograd.sequence, '') AS BIGINT) AS sequence,
    try_cast(nullif(autograd.op_id, '') AS BIGINT) AS op_id,
    nullif(autograd.shapes, '') AS shapes,
    starts_with(name, 'autograd::engine::evaluate_function: ') AS is_evaluate_function,
    (contains(name, 'Backward') AND nullif(autograd.sequence, '') IS NOT NULL OR ends_with(name, 'AccumulateGrad'))
    AND regexp_matches(name, '^([A-Za-z_][A-Za-z0-9_:]*Backward[0-9]*|(torch::autograd::)?AccumulateGrad)$') AS is_backward_node,
    flop, extra_flop, flop_min, bytes, dtype, direction, phase, items, tokens, step_index,
    coalesce(bad_fields, 0) AS bad_fields
FROM named
