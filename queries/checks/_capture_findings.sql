-- _capture_findings: what the capture does not hold, and what ingest found.
-- grain: one row per (trace, code)
-- reads: traces, _executions, _api, _nvtx, _domains, raw_findings
-- columns:
--   trace_id BIGINT - capture
--   code VARCHAR - warning
--   count BIGINT - occurrences
--   detail VARCHAR - evidence
WITH executions AS (
    SELECT
        trace_id,
        count(*) FILTER (WHERE kind IN ('kernel', 'graph')) AS kernels,
        count(*) FILTER (WHERE NOT is_valid) AS invalid
    FROM _executions
    GROUP BY trace_id
),

calls AS (
    SELECT trace_id, count(*) AS calls FROM _api GROUP BY trace_id
),

ranges AS (
    SELECT
        trace_id,
        count(*) FILTER (WHERE NOT is_library) AS ranges,
        count(*) FILTER (WHERE is_unclosed) AS unclosed
    FROM _nvtx
    GROUP BY trace_id
),

domains AS (
    SELECT
        trace_id,
        count(*) FILTER (WHERE NOT is_library) AS domains,
        min(domain) FILTER (WHERE NOT is_library) AS domain
    FROM _domains
    GROUP BY trace_id
),

counted AS (
    SELECT
        traces.trace_id,
        coalesce(executions.kernels, 0) AS kernels,
        coalesce(executions.invalid, 0) AS invalid,
        coalesce(calls.calls, 0) AS calls,
        coalesce(ranges.ranges, 0) AS ranges,
        coalesce(ranges.unclosed, 0) AS unclosed,
        coalesce(domains.domains, 0) AS domains,
        domains.domain
    FROM traces
    LEFT JOIN executions USING (trace_id)
    LEFT JOIN calls USING (trace_id)
    LEFT JOIN ranges USING (trace_id)
    LEFT JOIN domains USING (trace_id)
)

SELECT trace_id, code, sum(count)::BIGINT AS count, string_agg(DISTINCT detail, '; ' ORDER BY detail) AS detail
FROM raw_findings
GROUP BY trace_id, code
UNION ALL
SELECT trace_id, 'no_kernel_data', calls, NULL FROM counted WHERE kernels = 0
UNION ALL
SELECT trace_id, 'invalid_timestamps', invalid, NULL FROM counted WHERE invalid > 0
UNION ALL
SELECT trace_id, 'ranges_lost', domains, 'domain ' || domain FROM counted WHERE ranges = 0 AND domains > 0
UNION ALL
SELECT trace_id, 'no_nvtx_ranges', 0, NULL FROM counted WHERE ranges = 0 AND domains = 0 AND kernels > 0
UNION ALL
SELECT trace_id, 'unclosed_ranges', unclosed, NULL FROM counted WHERE unclosed > 0
