-- _capture_findings: what the capture lost or cannot know.
-- grain: one row per (trace, code)
-- reads: traces, _executions, _api, _launches, _launch_calls, _nvtx, _domains, gpu_executions, _node_creations, raw_findings
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
    SELECT
        trace_id,
        count(*) AS calls,
        count(*) FILTER (WHERE regexp_matches(api_name, 'GraphLaunch')) AS graph_launches
    FROM _api
    GROUP BY trace_id
),

kernel_launches AS (
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

lost_graphs AS (
    SELECT
        _api.trace_id,
        count(*) AS lost
    FROM _api
    ANTI JOIN _launches ON _api.trace_id = _launches.trace_id AND _api.api_call_id = _launches.api_call_id
    WHERE regexp_matches(_api.api_name, '^cu(da)?GraphLaunch')
    GROUP BY _api.trace_id
),

graphs AS (
    SELECT trace_id, count(*) AS whole FROM _executions WHERE kind = 'graph' GROUP BY trace_id
),

ranges AS (
    SELECT trace_id, count(*) AS ranges, count(*) FILTER (WHERE is_unclosed) AS unclosed FROM _nvtx GROUP BY trace_id
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
        coalesce(executions.kernels, 0) AS kernels, coalesce(executions.invalid, 0) AS invalid, coalesce(calls.calls, 0) AS calls,
        coalesce(kernel_launches.launches, 0) AS launches, coalesce(kernel_launches.lost, 0) AS lost,
        coalesce(graphs.whole, 0) + coalesce(lost_graphs.lost, 0) AS graphs,
        coalesce(ranges.ranges, 0) AS ranges, coalesce(ranges.unclosed, 0) AS unclosed,
        coalesce(domains.domains, 0) AS domains, domains.domain
    FROM traces
    LEFT JOIN executions USING (trace_id)
    LEFT JOIN calls USING (trace_id)
    LEFT JOIN kernel_launches USING (trace_id)
    LEFT JOIN lost_graphs USING (trace_id)
    LEFT JOIN graphs USING (trace_id)
    LEFT JOIN ranges USING (trace_id)
    LEFT JOIN domains USING (trace_id)
)

SELECT trace_id, code, sum(count)::BIGINT AS count, string_agg(DISTINCT detail, '; ' ORDER BY detail) AS detail
FROM raw_findings
GROUP BY trace_id, code
UNION ALL
SELECT trace_id, 'no_kernel_data', calls, NULL FROM counted WHERE kernels = 0
UNION ALL
SELECT trace_id, 'importer_truncated', lost, NULL FROM counted WHERE lost > 10 AND lost > 0.05 * launches
UNION ALL
SELECT trace_id, 'invalid_timestamps', invalid, NULL FROM counted WHERE invalid > 0
UNION ALL
SELECT trace_id, 'graph_kernels_not_traced', graphs, NULL FROM counted WHERE graphs > 0
UNION ALL
SELECT trace_id, 'ranges_lost', domains, 'domain ' || domain FROM counted WHERE ranges = 0 AND domains > 0
UNION ALL
SELECT trace_id, 'no_nvtx_ranges', 0, NULL FROM counted WHERE ranges = 0 AND domains = 0 AND kernels > 0
UNION ALL
SELECT trace_id, 'unclosed_ranges', unclosed, NULL FROM counted WHERE unclosed > 0
UNION ALL
SELECT trace_id, 'kernels_without_api', count(*), NULL FROM gpu_executions WHERE api_call_id IS NULL GROUP BY trace_id
UNION ALL
SELECT trace_id, 'dup_correlation', count(*), NULL FROM _launch_calls WHERE duplicates > 0 GROUP BY trace_id
UNION ALL
SELECT
    trace_id, 'unattributed_kernels', count(*),
    printf('%.1f %% of kernel time', 100.0 * sum(end_ns - start_ns) / any_value(all_ns))
FROM (
    SELECT *, sum(end_ns - start_ns) OVER (PARTITION BY trace_id) AS all_ns
    FROM gpu_executions
    WHERE kind IN ('kernel', 'graph') AND is_valid
)
WHERE operator = '(unattributed)'
GROUP BY trace_id
UNION ALL
SELECT trace_id, 'graph_constructed_before_capture', count(*), NULL
FROM gpu_executions
WHERE graph_node_id IS NOT NULL AND attribution != 'graph'
GROUP BY trace_id
