-- api_calls: CUDA runtime and driver calls.
-- grain: one row per API call of the capture
-- reads: _api, _launches, _anchor_operators
-- stored: view
-- columns:
--   trace_id BIGINT - capture
--   api_call_id BIGINT - key within the trace: row of the source
--   process_id BIGINT - process
--   thread_id BIGINT - calling thread
--   correlation_id BIGINT - CUPTI correlation id, unique within a process only
--   api_name VARCHAR - name as captured, with its version suffix
--   start_ns BIGINT ns start
--   end_ns BIGINT ns end
--   is_launch BOOLEAN - the call that stands for an execution; of several rows of one launch one only
--   is_synchronizing BOOLEAN - blocks until the GPU has finished something
--   range_id BIGINT - innermost range at the start of calls that launch or synchronize, NULL for others
SELECT
    _api.trace_id,
    _api.api_call_id,
    _api.process_id,
    _api.thread_id,
    _api.correlation_id,
    _api.api_name,
    _api.start_ns,
    _api.end_ns,
    launching.api_call_id IS NOT NULL AS is_launch,
    _api.is_synchronizing,
    _anchor_operators.range_id
FROM _api
LEFT JOIN (SELECT DISTINCT trace_id, api_call_id FROM _launches) AS launching
    ON _api.trace_id = launching.trace_id AND _api.api_call_id = launching.api_call_id
LEFT JOIN _anchor_operators
    ON _api.trace_id = _anchor_operators.trace_id AND _api.api_call_id = _anchor_operators.anchor_id
