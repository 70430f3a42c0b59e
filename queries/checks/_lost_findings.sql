-- _lost_findings: GPU work that the program launched and the capture lacks.
-- grain: one row per (trace, code)
-- reads: _executions, _api, _launches, _nvtx
-- columns:
--   trace_id BIGINT - capture
--   code VARCHAR - warning
--   count BIGINT - occurrences
--   detail VARCHAR - evidence
WITH launches AS (
    SELECT
        _api.trace_id,
        count(DISTINCT (_api.process_id, _api.correlation_id)) AS launches,
        count(DISTINCT (_api.process_id, _api.correlation_id)) FILTER (WHERE used.correlation_id IS NULL) AS lost
    FROM _api
    LEFT JOIN (SELECT DISTINCT trace_id, process_id, correlation_id FROM _executions) AS used
        USING (trace_id, process_id, correlation_id)
    WHERE regexp_matches(_api.api_name, '^cu(da)?LaunchKernel')
    GROUP BY _api.trace_id
),

kernels AS (
    SELECT
        _executions.trace_id,
        count(*) AS kernels,
        count(*) FILTER (WHERE _launches.api_call_id IS NULL) AS orphans
    FROM _executions
    LEFT JOIN _launches USING (trace_id, gpu_execution_id)
    WHERE _executions.kind = 'kernel'
    GROUP BY _executions.trace_id
),

calls AS (
    SELECT trace_id, count(*) AS calls, max(start_ns) AS last_ns FROM _api GROUP BY trace_id
),

ranges AS (
    SELECT
        _nvtx.trace_id,
        any_value(calls.calls) AS calls,
        count(*) AS ranges,
        count(*) FILTER (WHERE _nvtx.start_ns > calls.last_ns) AS late_ranges
    FROM _nvtx
    INNER JOIN calls USING (trace_id)
    WHERE NOT _nvtx.is_library
    GROUP BY _nvtx.trace_id
),

graphs AS (
    SELECT trace_id, gpu_execution_id AS id FROM _executions WHERE kind = 'graph'
    UNION ALL
    SELECT _api.trace_id, _api.api_call_id
    FROM _api
    ANTI JOIN _launches ON _api.trace_id = _launches.trace_id AND _api.api_call_id = _launches.api_call_id
    WHERE regexp_matches(_api.api_name, '^cu(da)?GraphLaunch')
)

SELECT
    launches.trace_id,
    if(coalesce(kernels.orphans, 0) > 0.05 * kernels.kernels, 'partial_export', 'importer_truncated') AS code,
    launches.lost AS count,
    printf(
        '%d of %d kernel launches have no kernel, %d kernels have no launch',
        launches.lost, launches.launches, coalesce(kernels.orphans, 0)
    ) AS detail
FROM launches
LEFT JOIN kernels USING (trace_id)
WHERE launches.lost > 10 AND launches.lost > 0.05 * launches.launches
UNION ALL
-- CUDA events that stop while the program goes on: the importer met a record that it does not know
SELECT trace_id, 'importer_truncated', calls, printf('%d of %d ranges start after the last CUDA call', late_ranges, ranges)
FROM ranges
WHERE 2 * late_ranges >= ranges
UNION ALL
SELECT trace_id, 'graph_kernels_not_traced', count(*), NULL
FROM graphs
GROUP BY trace_id
