-- _messages: what each distinct range message says: name, autograd fields, annotation.
-- grain: one row per message of _texts
-- reads: _texts, _annotations
-- stored: table
-- columns:
--   message_id BIGINT - message
--   in_mfupipe_domain BOOLEAN - pushed in the mfupipe domain, where unknown fields are ignored
--   message VARCHAR - text as captured
--   name VARCHAR - text without annotation fields, seq, op_id and sizes
--   is_annotation BOOLEAN - read by the annotation grammar
--   is_autograd BOOLEAN - pushed by emit_nvtx: has seq, op_id or sizes
--   sequence BIGINT - autograd sequence number
--   op_id BIGINT - emit_nvtx operator number
--   shapes VARCHAR - sizes of the arguments as captured
--   input_op_ids VARCHAR - operators that produced the arguments
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
        _texts.in_mfupipe_domain OR coalesce(_annotations.is_annotation, false) AS is_annotation,
        _annotations.* EXCLUDE (message_id, is_annotation)
    FROM _texts
    LEFT JOIN _annotations ON _texts.message_id = _annotations.message_id
),

-- RE2 runs in linear time; the text after NAME has a fixed order (torch/csrc/profiler/util.cpp)
parsed AS (
    SELECT
        *,
        CASE
            WHEN NOT is_annotation AND regexp_matches(message, ', (seq|op_id|sizes) = ')
                THEN regexp_extract(
                    message,
                    '^((?s:.*?))(?:, seq = (\d+))?(?:, op_id = (\d+))?(?:, sizes = (\[.*?\]))?(?:, input_op_ids = (\[.*\]))?$',
                    ['name', 'sequence', 'op_id', 'shapes', 'input_op_ids']
                )
        END AS autograd,
        string_split(message, '|')[1] AS head
    FROM readings
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
    message,
    name,
    is_annotation,
    coalesce(nullif(autograd.sequence, ''), nullif(autograd.op_id, ''), nullif(autograd.shapes, '')) IS NOT NULL
        AS is_autograd,
    try_cast(nullif(autograd.sequence, '') AS BIGINT) AS sequence,
    try_cast(nullif(autograd.op_id, '') AS BIGINT) AS op_id,
    nullif(autograd.shapes, '') AS shapes,
    nullif(autograd.input_op_ids, '') AS input_op_ids,
    starts_with(name, 'autograd::engine::evaluate_function: ') AS is_evaluate_function,
    regexp_matches(name, '^([A-Za-z_][A-Za-z0-9_:]*Backward[0-9]*|(torch::autograd::)?AccumulateGrad)$') AS is_backward_node,
    CASE WHEN is_annotation THEN flop END AS flop,
    CASE WHEN is_annotation THEN extra_flop END AS extra_flop,
    CASE WHEN is_annotation THEN flop_min END AS flop_min,
    CASE WHEN is_annotation THEN bytes END AS bytes,
    CASE WHEN is_annotation THEN dtype END AS dtype,
    CASE WHEN is_annotation THEN direction END AS direction,
    CASE WHEN is_annotation THEN phase END AS phase,
    CASE WHEN is_annotation THEN items END AS items,
    CASE WHEN is_annotation THEN tokens END AS tokens,
    CASE WHEN is_annotation THEN step_index END AS step_index,
    CASE WHEN is_annotation THEN bad_fields ELSE 0 END AS bad_fields
FROM named
