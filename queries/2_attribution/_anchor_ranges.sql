-- _anchor_ranges: ranges open at each anchor on its thread, [start, end). Threads are numbered and the number is folded into the
-- time, so that two inequalities remain and DuckDB plans an IEJoin; with an equality it would hash and filter, which is quadratic.
-- grain: one row per (anchor, open range)
-- reads: _anchors, _nvtx, _thread_keys
-- columns:
--   trace_id BIGINT - capture
--   anchor_id BIGINT - anchor
--   range_id BIGINT - range
--   start_ns BIGINT ns start of the range
--   end_ns BIGINT ns end of the range
--   message_id BIGINT - message of the range
--   is_library BOOLEAN - of a library domain
WITH points AS (
    SELECT
        _anchors.trace_id,
        _anchors.anchor_id,
        _anchors.at_ns + _thread_keys.shift_ns AS at_key
    FROM _anchors
    INNER JOIN _thread_keys ON _anchors.trace_id = _thread_keys.trace_id AND _anchors.thread_id = _thread_keys.thread_id
),

spans AS (
    SELECT
        _nvtx.range_id,
        _nvtx.start_ns,
        _nvtx.end_ns,
        _nvtx.message_id,
        _nvtx.is_library,
        _nvtx.start_ns + _thread_keys.shift_ns AS start_key,
        _nvtx.end_ns + _thread_keys.shift_ns AS end_key
    FROM _nvtx
    INNER JOIN _thread_keys ON _nvtx.trace_id = _thread_keys.trace_id AND _nvtx.thread_id = _thread_keys.thread_id
    WHERE NOT _nvtx.is_unclosed AND _nvtx.end_ns > _nvtx.start_ns
)

SELECT
    points.trace_id,
    points.anchor_id,
    spans.range_id,
    spans.start_ns,
    spans.end_ns,
    spans.message_id,
    spans.is_library
FROM points
INNER JOIN spans ON spans.start_key <= points.at_key AND spans.end_key > points.at_key
