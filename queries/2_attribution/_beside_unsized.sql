-- _beside_unsized: ranges that may read an output whose size does not follow. A table of its own, since it is empty for most captures
-- and DuckDB then reads no text.
-- grain: one row per range of a process with unsized operators
-- reads: _nvtx, _unsized
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   start_ns BIGINT ns start
--   message_id BIGINT - message
SELECT
    _nvtx.trace_id,
    _nvtx.process_id,
    _nvtx.start_ns,
    _nvtx.message_id
FROM _nvtx
INNER JOIN (SELECT DISTINCT trace_id, process_id FROM _unsized) AS places
    ON _nvtx.trace_id = places.trace_id AND _nvtx.process_id = places.process_id
