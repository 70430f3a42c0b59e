-- _anchor_paths: the ranges open at each anchor as one list, outermost first: earlier start, then the longer, then the earlier row.
-- grain: one row per anchor inside at least one range
-- reads: _anchor_ranges, _message_flags, _step_ranges
-- stored: table
-- columns:
--   trace_id BIGINT - capture
--   anchor_id BIGINT - anchor
--   path STRUCT(start_ns BIGINT, before_end_ns BIGINT, range_id BIGINT, name_id INTEGER, flags INTEGER)[] - ranges in the order of their fields; flags of _message_flags with 1 library, 2 step
SELECT
    _anchor_ranges.trace_id,
    _anchor_ranges.anchor_id,
    list_sort(list({
        'start_ns': _anchor_ranges.start_ns,
        'before_end_ns': -_anchor_ranges.end_ns,
        'range_id': _anchor_ranges.range_id,
        'name_id': _message_flags.name_id,
        'flags': coalesce(_message_flags.flags, 0)
            | _anchor_ranges.is_library::INTEGER
            | if(_step_ranges.range_id IS NULL, 0, 2)
    })) AS path
FROM _anchor_ranges
LEFT JOIN _message_flags ON _anchor_ranges.message_id = _message_flags.message_id
LEFT JOIN _step_ranges
    ON
        _anchor_ranges.trace_id = _step_ranges.trace_id
        AND _anchor_ranges.range_id = _step_ranges.range_id
        AND _step_ranges.rule != 'optimizer'
GROUP BY _anchor_ranges.trace_id, _anchor_ranges.anchor_id
