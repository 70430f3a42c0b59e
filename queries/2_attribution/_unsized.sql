-- _unsized: convolutions, poolings and resamplings: stride and padding are no sizes, so their outputs' sizes do not follow.
-- grain: one row per range
-- reads: _nvtx, _messages
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   thread_id BIGINT - thread
--   range_id BIGINT - range
--   start_ns BIGINT ns start
--   end_ns BIGINT ns end
--   message_id BIGINT - message
--   op_id BIGINT - number of the operator
SELECT
    _nvtx.trace_id, _nvtx.process_id, _nvtx.thread_id, _nvtx.range_id, _nvtx.start_ns, _nvtx.end_ns, _nvtx.message_id,
    _messages.op_id
FROM _nvtx
INNER JOIN _messages ON _nvtx.message_id = _messages.message_id
WHERE
    _messages.op_id IS NOT NULL AND _messages.shapes IS NOT NULL
    AND (contains(_messages.name, 'conv') OR contains(_messages.name, 'pool') OR contains(_messages.name, 'upsample'))
    AND regexp_full_match(_messages.name, 'aten::[a-z0-9_]*(conv|pool|upsample)[a-z0-9_]*')
    AND NOT contains(_messages.name, 'backward')
