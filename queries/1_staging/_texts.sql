-- _texts: distinct range messages of the RUN, so that each is read once however often it was pushed.
-- grain: one row per (message, whether it was pushed in the mfupipe domain)
-- reads: raw_nvtx_ranges, raw_strings, _domains
-- stored: table
-- columns:
--   message_id BIGINT - key within the RUN
--   message VARCHAR - text as captured
--   in_mfupipe_domain BOOLEAN - the annotation grammar holds whatever the fields are
SELECT
    row_number() OVER () AS message_id,
    message,
    in_mfupipe_domain
FROM (
    SELECT DISTINCT
        coalesce(raw_nvtx_ranges.text, raw_strings.value) AS message,
        coalesce(_domains.domain = 'mfupipe', false) AS in_mfupipe_domain
    FROM raw_nvtx_ranges
    LEFT JOIN raw_strings
        ON raw_nvtx_ranges.trace_id = raw_strings.trace_id AND raw_nvtx_ranges.text_id = raw_strings.id
    LEFT JOIN _domains
        ON
            raw_nvtx_ranges.trace_id = _domains.trace_id
            AND (raw_nvtx_ranges.global_tid & -16777216) = _domains.process_id
            AND raw_nvtx_ranges.domain_id = _domains.domain_id
)
WHERE message IS NOT NULL
