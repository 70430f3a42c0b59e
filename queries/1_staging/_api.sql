-- _api: CUDA API calls with names; the public view api_calls adds the ranges.
-- grain: one row per call
-- reads: raw_api_calls, raw_strings
-- stored: table
-- columns:
--   trace_id BIGINT - capture
--   api_call_id BIGINT - order of the call in the source
--   process_id BIGINT - process
--   thread_id BIGINT - calling thread
--   correlation_id BIGINT - CUPTI correlation id, unique within a process only
--   api_name VARCHAR - name as captured, with its version suffix
--   is_launch_like BOOLEAN - named as a call that puts work on the GPU
--   is_synchronizing BOOLEAN - blocks the thread until the GPU has finished something
--   start_ns BIGINT ns start, NULL beyond 52 days
--   end_ns BIGINT ns end, NULL beyond 52 days
WITH names AS (
    SELECT
        trace_id,
        id,
        value,
        regexp_matches(value, '(?i)(launch|memcpy|memset|memprefetch)') AS is_launch_like,
        regexp_matches(
            value,
            '^(cuda(Device|Stream|Event|Thread)Synchronize|cu(Ctx|Stream|Event)Synchronize|cudaMemcpy(2D|3D)?|'
            || 'cuMemcpy(DtoH|HtoD))(_v[0-9]+|_ptsz|_ptds)*$'
        ) AS is_synchronizing
    FROM raw_strings
)

SELECT
    raw_api_calls.trace_id,
    raw_api_calls.row_id AS api_call_id,
    raw_api_calls.global_tid & -16777216 AS process_id,
    raw_api_calls.global_tid AS thread_id,
    raw_api_calls.correlation_id,
    names.value AS api_name,
    coalesce(names.is_launch_like, false) AS is_launch_like,
    coalesce(names.is_synchronizing, false) AS is_synchronizing,
    if(abs(raw_api_calls.start_ns::DOUBLE) < 1::BIGINT << 52, raw_api_calls.start_ns, NULL) AS start_ns,
    if(abs(raw_api_calls.end_ns::DOUBLE) < 1::BIGINT << 52, raw_api_calls.end_ns, NULL) AS end_ns
FROM raw_api_calls
LEFT JOIN names ON raw_api_calls.trace_id = names.trace_id AND raw_api_calls.name_id = names.id
