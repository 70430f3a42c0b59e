-- _phase_ranges: for launches outside every range of their thread, the innermost range open in the process at that time.
-- grain: one row per launching anchor without a range that has one elsewhere in the process
-- reads: _anchors, _anchor_paths, _nvtx, _messages, _step_ranges, _process_keys
-- columns:
--   trace_id BIGINT - capture
--   anchor_id BIGINT - anchor
--   range_id BIGINT - range on another thread
--   is_step BOOLEAN - the range is the step itself
WITH bare AS (
    SELECT _anchors.*
    FROM _anchors
    ANTI JOIN _anchor_paths
        ON _anchors.trace_id = _anchor_paths.trace_id AND _anchors.anchor_id = _anchor_paths.anchor_id
    WHERE _anchors.is_launch
),

points AS (
    SELECT
        bare.trace_id,
        bare.anchor_id,
        bare.thread_id,
        bare.at_ns + _process_keys.shift_ns AS at_key
    FROM bare
    INNER JOIN _process_keys USING (trace_id, process_id)
),

spans AS (
    SELECT
        _nvtx.range_id,
        _nvtx.thread_id,
        _nvtx.start_ns,
        _nvtx.end_ns,
        _step_ranges.range_id IS NOT NULL AS is_step,
        _nvtx.start_ns + _process_keys.shift_ns AS start_key,
        _nvtx.end_ns + _process_keys.shift_ns AS end_key
    FROM _nvtx
    INNER JOIN _process_keys USING (trace_id, process_id)
    LEFT JOIN _messages ON _nvtx.message_id = _messages.message_id
    LEFT JOIN _step_ranges
        ON
            _nvtx.trace_id = _step_ranges.trace_id
            AND _nvtx.range_id = _step_ranges.range_id
            AND _step_ranges.rule != 'optimizer'
    WHERE
        NOT _nvtx.is_unclosed
        AND NOT _nvtx.is_library
        AND NOT coalesce(_messages.is_autograd OR (_messages.is_annotation AND _messages.name != 'step'), false)
)

SELECT
    points.trace_id,
    points.anchor_id,
    arg_max(spans.range_id, (spans.start_ns, -spans.end_ns, spans.range_id)) AS range_id,
    arg_max(spans.is_step, (spans.start_ns, -spans.end_ns, spans.range_id)) AS is_step
FROM points
INNER JOIN spans ON spans.start_key <= points.at_key AND spans.end_key > points.at_key
WHERE spans.thread_id != points.thread_id
GROUP BY points.trace_id, points.anchor_id
