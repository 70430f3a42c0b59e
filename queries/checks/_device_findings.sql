-- _device_findings: what is wrong with the peaks of the devices that did work.
-- grain: one row per (trace, code, detail)
-- reads: _device_rates, _device_problems, _executions
-- columns:
--   trace_id BIGINT - capture
--   code VARCHAR - warning
--   count BIGINT - devices
--   detail VARCHAR - what contradicts, or the name
SELECT
    _device_rates.trace_id,
    _device_problems.code,
    count(DISTINCT _device_rates.device_id) AS count,
    _device_problems.detail
FROM _device_rates
INNER JOIN _device_problems
    ON _device_rates.trace_id = _device_problems.trace_id AND _device_rates.device_id = _device_problems.gpu_id
WHERE _device_rates.reference_flop_per_s IS NULL OR _device_problems.code != 'unknown_gpu_peak'
GROUP BY ALL
UNION ALL
SELECT
    trace_id,
    'no_device_info' AS code,
    count(*) AS count,
    NULL AS detail
FROM _device_rates
WHERE device_name IS NULL AND reference_flop_per_s IS NULL
GROUP BY trace_id
UNION ALL
SELECT
    trace_id,
    'shared_gpu' AS code,
    count(*) AS count,
    NULL AS detail
FROM (
    SELECT trace_id, device_id
    FROM _executions
    WHERE is_valid
    GROUP BY trace_id, device_id
    HAVING count(DISTINCT process_id) > 1
)
GROUP BY trace_id
