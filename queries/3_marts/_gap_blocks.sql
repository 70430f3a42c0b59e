-- _gap_blocks: idle intervals in whose beginning a thread of the process was in a synchronizing call, after which it launched next.
-- A query of its own: inside one with materialized CTEs DuckDB plans no IEJoin.
-- grain: one row per idle interval that began under a synchronizing call
-- reads: _gap_launches, _api, _process_keys
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   device_id BIGINT - device
--   start_ns BIGINT ns start of the interval
--   api_name VARCHAR - the call that began first
WITH synchronizing AS (
    SELECT
        _api.api_name,
        _api.start_ns,
        _api.end_ns,
        _api.start_ns + _process_keys.shift_ns AS start_key,
        _api.end_ns + _process_keys.shift_ns AS end_key
    FROM _api
    INNER JOIN _process_keys ON _api.trace_id = _process_keys.trace_id AND _api.process_id = _process_keys.process_id
    WHERE _api.is_synchronizing AND _api.end_ns > _api.start_ns
)

-- the third inequality stays out of the join: an IEJoin uses two, and might choose the two that most pairs meet
SELECT
    gaps.trace_id, gaps.process_id, gaps.device_id, gaps.start_ns,
    arg_min(synchronizing.api_name, synchronizing.start_ns)
        FILTER (WHERE gaps.launch_start_ns >= synchronizing.end_ns) AS api_name
FROM _gap_launches AS gaps
INNER JOIN synchronizing
    ON synchronizing.start_key <= gaps.at_key AND synchronizing.end_key > gaps.at_key
GROUP BY gaps.trace_id, gaps.process_id, gaps.device_id, gaps.start_ns
HAVING count(*) FILTER (WHERE gaps.launch_start_ns >= synchronizing.end_ns) > 0
