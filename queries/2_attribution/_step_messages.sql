-- _step_messages: messages that mark a step in a known dialect, or by the user's regular expression.
-- grain: one row per (message, rule)
-- reads: _messages, _texts, _options
-- columns:
--   message_id BIGINT - message
--   rule VARCHAR - user, mfupipe, profiler_step, step_number, vllm, sglang or optimizer
--   priority INTEGER - the smallest present in a capture is used
--   phase VARCHAR - phase named by the message, '' when none
--   items DOUBLE - items named by the message
--   tokens DOUBLE - tokens named by the message
--   flop DOUBLE FLOP model FLOP of the step, declared
SELECT
    message_id, 'user' AS rule, 1 AS priority,
    coalesce(nullif(try(regexp_extract(name, '^(?:' || step_regex || ')$', 1)), ''), phase, '') AS phase,
    items, tokens, flop
FROM _messages
INNER JOIN _texts USING (message_id)
CROSS JOIN _options
WHERE step_regex IS NOT NULL AND (regexp_full_match(name, step_regex) OR regexp_full_match(message, step_regex))
UNION ALL
SELECT message_id, 'mfupipe', 2, coalesce(phase, ''), items, tokens, flop
FROM _messages
WHERE is_annotation AND name = 'step' AND (in_mfupipe_domain OR step_index IS NOT NULL)
UNION ALL
SELECT message_id, 'profiler_step', 3, '', NULL, NULL, NULL
FROM _messages
WHERE regexp_full_match(name, 'ProfilerStep#[0-9]+')
UNION ALL
SELECT message_id, 'step_number', 4, '', NULL, NULL, NULL
FROM _messages
WHERE NOT is_autograd AND regexp_full_match(name, '(?i)(step|iteration|iter)[ _#:]*[0-9]+')
UNION ALL
-- vLLM: execute_context_REQUESTS(TOKENS)_generation_REQUESTS(TOKENS)
SELECT
    message_id, 'vllm', 5,
    CASE
        WHEN vllm.context_tokens = '0' THEN 'decode'
        WHEN vllm.generation_tokens = '0' THEN 'prefill'
        ELSE 'mixed'
    END,
    try_cast(vllm.contexts AS DOUBLE) + try_cast(vllm.generations AS DOUBLE),
    try_cast(vllm.context_tokens AS DOUBLE) + try_cast(vllm.generation_tokens AS DOUBLE),
    NULL
FROM (
    SELECT
        message_id,
        regexp_extract(
            name, '^execute_context_(\d+)\((\d+)\)_generation_(\d+)\((\d+)\)$',
            ['contexts', 'context_tokens', 'generations', 'generation_tokens']
        ) AS vllm
    FROM _messages
)
WHERE vllm.contexts != ''
UNION ALL
-- SGLang: step[DECODE bs=4], step[EXTEND bs=2 toks=1024]
SELECT
    message_id, 'sglang', 6,
    CASE lower(sglang.phase) WHEN 'extend' THEN 'prefill' ELSE lower(sglang.phase) END,
    try_cast(nullif(sglang.batch, '') AS DOUBLE),
    coalesce(
        try_cast(nullif(sglang.tokens, '') AS DOUBLE),
        if(lower(sglang.phase) = 'decode', try_cast(nullif(sglang.batch, '') AS DOUBLE), NULL)
    ),
    NULL
FROM (
    SELECT
        message_id,
        regexp_extract(name, '^step\[([A-Za-z_]+)(?: bs=(\d+))?(?: toks=(\d+))?[^\]]*\]$', ['phase', 'batch', 'tokens']) AS sglang
    FROM _messages
)
WHERE sglang.phase != ''
UNION ALL
SELECT message_id, 'optimizer', 7, '', NULL, NULL, NULL
FROM _messages
WHERE regexp_matches(name, '^Optimizer\.step#')
