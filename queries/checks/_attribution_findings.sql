-- _attribution_findings: executions that could not be attributed in full.
-- grain: one row per (trace, code)
-- reads: gpu_executions, _launch_calls
-- columns:
--   trace_id BIGINT - capture
--   code VARCHAR - warning
--   count BIGINT - occurrences
--   detail VARCHAR - evidence
SELECT trace_id, 'kernels_without_api' AS code, count(*) AS count, NULL::VARCHAR AS detail
FROM gpu_executions
WHERE api_call_id IS NULL
GROUP BY trace_id
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
