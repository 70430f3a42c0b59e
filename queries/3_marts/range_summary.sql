-- range_summary: GPU time beneath ranges: unions, so that recursion and overlap count once. Covers the whole capture.
-- grain: one row per (trace, process, domain, level, name or path) with an execution beneath
-- reads: gpu_executions, _nvtx, ranges, _device_rates, _device_dtypes
-- stored: view
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   domain VARCHAR - NVTX domain
--   level VARCHAR - name (wherever the range is) or path
--   name VARCHAR - range name
--   path VARCHAR[] - names from the outermost range to this one, NULL at level name
--   call_count BIGINT - ranges with an execution beneath
--   kernel_count BIGINT - kernels beneath
--   inclusive_busy_ns BIGINT ns union of the executions launched inside
--   exclusive_busy_ns BIGINT ns union of those whose innermost range it is
--   flop DOUBLE FLOP declared by its ranges, or by their shapes
--   bytes DOUBLE B declared by its ranges
--   ideal_ns DOUBLE ns T_SOL of the declared FLOP and bytes, from its own border; NULL unless all of its ranges declare them, with their dtype
WITH opened AS (
    SELECT
        trace_id, gpu_execution_id, kind, process_id, device_id, start_ns, end_ns, path,
        unnest(range_ids) AS range_id,
        generate_subscripts(range_ids, 1) AS position,
        len(range_ids) AS depth
    FROM gpu_executions
    WHERE is_valid
),

placed AS (
    SELECT
        opened.trace_id, opened.process_id, ranges.domain, opened.gpu_execution_id, opened.kind, opened.device_id,
        opened.start_ns, opened.end_ns, opened.range_id,
        opened.position = opened.depth AS is_innermost,
        unnest(['name', 'path']) AS level,
        opened.path[opened.position] AS name,
        unnest([NULL, opened.path[:opened.position]]) AS path
    FROM opened
    INNER JOIN _nvtx AS ranges ON opened.trace_id = ranges.trace_id AND opened.range_id = ranges.range_id
),

ordered AS (
    SELECT
        *,
        coalesce(max(end_ns) OVER before, start_ns) AS covered_ns,
        coalesce(max(if(is_innermost, end_ns, NULL)) OVER before, start_ns) AS innermost_covered_ns
    FROM placed
    WINDOW before AS (
        PARTITION BY trace_id, process_id, device_id, domain, level, name, path
        ORDER BY start_ns, end_ns, gpu_execution_id, is_innermost ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),

-- a range that uses several devices declares its cost once
once AS (
    SELECT trace_id, process_id, domain, level, name, path, range_id, min(device_id) AS device_id
    FROM placed
    GROUP BY ALL
),

declared AS (
    SELECT
        once.*, ranges.flop, ranges.bytes,
        greatest(
            if(ranges.flop = 0, 0, 1e9 * ranges.flop / _device_dtypes.flop_per_s), 1e9 * ranges.bytes / _device_rates.bytes_per_s
        ) AS ideal_ns,
        _device_dtypes.flop_per_s IS NOT NULL OR ranges.flop = 0 AS has_peak
    FROM once
    INNER JOIN ranges ON once.trace_id = ranges.trace_id AND once.range_id = ranges.range_id
    LEFT JOIN _device_rates ON once.trace_id = _device_rates.trace_id AND once.device_id = _device_rates.device_id
    LEFT JOIN _device_dtypes
        ON
            once.trace_id = _device_dtypes.trace_id
            AND once.device_id = _device_dtypes.device_id
            AND ranges.dtype = _device_dtypes.dtype
),

costs AS (
    SELECT
        trace_id, process_id, domain, level, name, path,
        count(DISTINCT range_id) AS call_count,
        sum(flop) AS flop,
        sum(bytes) AS bytes,
        if(count(*) FILTER (WHERE has_peak AND flop IS NOT NULL AND bytes IS NOT NULL) = count(*), sum(ideal_ns), NULL) AS ideal_ns
    FROM declared
    GROUP BY ALL
)

SELECT
    ordered.trace_id, ordered.process_id, ordered.domain, ordered.level, ordered.name, ordered.path,
    any_value(costs.call_count) AS call_count,
    count(DISTINCT if(ordered.kind = 'kernel', ordered.gpu_execution_id, NULL)) AS kernel_count,
    sum(greatest(ordered.end_ns - greatest(ordered.start_ns, ordered.covered_ns), 0))::BIGINT AS inclusive_busy_ns,
    coalesce(sum(greatest(ordered.end_ns - greatest(ordered.start_ns, ordered.innermost_covered_ns), 0))
        FILTER (WHERE ordered.is_innermost), 0)::BIGINT AS exclusive_busy_ns,
    any_value(costs.flop) AS flop,
    any_value(costs.bytes) AS bytes,
    any_value(costs.ideal_ns) AS ideal_ns
FROM ordered
INNER JOIN costs
    ON
        ordered.trace_id = costs.trace_id
        AND ordered.process_id = costs.process_id
        AND ordered.domain = costs.domain
        AND ordered.level = costs.level
        AND ordered.name = costs.name
        AND ordered.path IS NOT DISTINCT FROM costs.path
GROUP BY ordered.trace_id, ordered.process_id, ordered.domain, ordered.level, ordered.name, ordered.path
