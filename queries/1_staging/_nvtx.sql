-- _nvtx: NVTX ranges with 64-bit keys; the public view ranges adds what the messages say.
-- grain: one row per range
-- reads: raw_nvtx_ranges, raw_strings, _texts, _domains, traces
-- stored: table
-- columns:
--   trace_id BIGINT - capture
--   range_id BIGINT - order of the range in the source
--   process_id BIGINT - process
--   thread_id BIGINT - thread that opened the range
--   domain VARCHAR - NVTX domain, '' for the default one
--   is_library BOOLEAN - domain of a CUDA library
--   message_id BIGINT - message, NULL when the range has none
--   start_ns BIGINT ns start
--   end_ns BIGINT ns end; of an unclosed range the end of the capture
--   is_unclosed BOOLEAN - never ended (nsys fills the end of the capture in), or times beyond 52 days
WITH named AS (
    SELECT
        raw_nvtx_ranges.trace_id,
        raw_nvtx_ranges.row_id,
        raw_nvtx_ranges.global_tid,
        raw_nvtx_ranges.global_tid & -16777216 AS process_id,
        raw_nvtx_ranges.domain_id,
        raw_nvtx_ranges.start_ns,
        raw_nvtx_ranges.end_ns,
        coalesce(raw_nvtx_ranges.text, raw_strings.value) AS message
    FROM raw_nvtx_ranges
    LEFT JOIN raw_strings
        ON raw_nvtx_ranges.trace_id = raw_strings.trace_id AND raw_nvtx_ranges.text_id = raw_strings.id
)

SELECT
    named.trace_id,
    named.row_id AS range_id,
    named.process_id,
    named.global_tid AS thread_id,
    coalesce(_domains.domain, '') AS domain,
    coalesce(_domains.is_library, false) AS is_library,
    _texts.message_id,
    named.start_ns,
    coalesce(named.end_ns, traces.duration_ns, named.start_ns) AS end_ns,
    named.end_ns IS NULL OR coalesce(named.end_ns = traces.duration_ns, false)
    OR named.start_ns < -(1::BIGINT << 52) OR named.end_ns > 1::BIGINT << 52 AS is_unclosed
FROM named
INNER JOIN traces ON named.trace_id = traces.trace_id
LEFT JOIN _domains
    ON
        named.trace_id = _domains.trace_id
        AND named.process_id = _domains.process_id
        AND named.domain_id = _domains.domain_id
LEFT JOIN _texts
    ON named.message = _texts.message AND coalesce(_domains.domain = 'mfupipe', false) = _texts.in_mfupipe_domain
