-- warnings: findings about the data, from a closed set of codes.
-- grain: one row per (trace, code, message)
-- reads: _capture_findings, _lost_findings, _attribution_findings, _result_findings, _device_findings, _warning_codes
-- columns:
--   trace_id BIGINT - capture
--   code VARCHAR - short name of the finding
--   severity VARCHAR - error (numbers are wrong or missing), warning (numbers are limited) or info
--   count BIGINT - how often
--   message VARCHAR - what was found
--   hint VARCHAR - what to do
WITH findings AS (
    SELECT trace_id, code, count, detail FROM _capture_findings
    UNION ALL
    SELECT trace_id, code, count, detail FROM _lost_findings
    UNION ALL
    SELECT trace_id, code, count, detail FROM _attribution_findings
    UNION ALL
    SELECT trace_id, code, count, detail FROM _result_findings
    UNION ALL
    SELECT trace_id, code, count, detail FROM _device_findings
)

SELECT
    findings.trace_id,
    findings.code,
    coalesce(codes.severity, 'error') AS severity,
    findings.count,
    replace(
        replace(coalesce(codes.message, findings.code), '{count}', findings.count::VARCHAR),
        '{detail}', coalesce(findings.detail, 'no detail')
    ) AS message,
    codes.hint
FROM findings
LEFT JOIN _warning_codes AS codes ON findings.code = codes.code
ORDER BY
    findings.trace_id,
    CASE coalesce(codes.severity, 'error') WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END,
    findings.code,
    message
