-- _step_ranges: spans of CPU time whose launches make up a step, by the first rule that applies to the capture.
-- grain: one row per (trace, process, step)
-- reads: _nvtx, _texts, _step_messages, _repeating_ranges
-- stored: table
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   step BIGINT - number from 0 in start order
--   range_id BIGINT - range that marks the step; of optimizer markers the one that ends it
--   rule VARCHAR - rule that found it
--   step_label VARCHAR - text as captured
--   phase VARCHAR - phase, '' when there is one only
--   items DOUBLE - items of the step
--   tokens DOUBLE - tokens of the step
--   flop DOUBLE FLOP declared model FLOP
--   start_ns BIGINT ns start on the CPU
--   end_ns BIGINT ns end on the CPU
WITH marked AS (
    SELECT
        _nvtx.trace_id, _nvtx.process_id, _nvtx.thread_id, _nvtx.range_id, _nvtx.start_ns, _nvtx.end_ns, _nvtx.message_id,
        _step_messages.rule, _step_messages.priority, _step_messages.phase, _step_messages.items, _step_messages.tokens,
        _step_messages.flop
    FROM _nvtx
    INNER JOIN _step_messages ON _nvtx.message_id = _step_messages.message_id
    WHERE NOT _nvtx.is_unclosed AND NOT _nvtx.is_library
    UNION ALL
    SELECT
        _nvtx.trace_id, _nvtx.process_id, _nvtx.thread_id, _nvtx.range_id, _nvtx.start_ns, _nvtx.end_ns, _nvtx.message_id,
        'repetition', 8, '', NULL, NULL, NULL
    FROM _repeating_ranges
    INNER JOIN _nvtx ON _repeating_ranges.trace_id = _nvtx.trace_id AND _repeating_ranges.range_id = _nvtx.range_id
),

by_rule AS (
    SELECT *
    FROM marked
    QUALIFY priority = min(priority) OVER (PARTITION BY trace_id)
),

timed AS (
    SELECT
        *,
        sum(end_ns - start_ns) OVER (PARTITION BY trace_id, process_id, thread_id) AS length_ns
    FROM by_rule
),

by_thread AS (
    SELECT *
    FROM timed
    QUALIFY thread_id = first_value(thread_id) OVER (PARTITION BY trace_id, process_id ORDER BY length_ns DESC, thread_id)
),

outermost AS (
    SELECT *
    FROM by_thread
    QUALIFY start_ns >= coalesce(max(end_ns) OVER (
        PARTITION BY trace_id, process_id
        ORDER BY start_ns, end_ns DESC, range_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), start_ns)
),

-- an optimizer marker ends a step: what was launched before the first one belongs to a step that began before the capture
spans AS (
    SELECT
        *,
        CASE WHEN rule = 'optimizer' THEN lag(end_ns) OVER by_time ELSE start_ns END AS first_ns
    FROM outermost
    WINDOW by_time AS (PARTITION BY trace_id, process_id ORDER BY start_ns, range_id)
)

SELECT
    spans.trace_id,
    spans.process_id,
    row_number() OVER (PARTITION BY spans.trace_id, spans.process_id ORDER BY spans.first_ns, spans.range_id) - 1 AS step,
    spans.range_id,
    spans.rule,
    coalesce(_texts.message, '') AS step_label,
    spans.phase,
    spans.items,
    spans.tokens,
    spans.flop,
    spans.first_ns AS start_ns,
    spans.end_ns
FROM spans
LEFT JOIN _texts ON spans.message_id = _texts.message_id
WHERE spans.first_ns IS NOT NULL
