-- kernels_of_one_layer: what the GPU executes for one layer, forward and backward.
--
-- An execution belongs to the innermost range that matches, of those open at its launch; if none does, and autograd numbered
-- the ranges, of those around the forward operator that it is the backward of (a forward operator that launches nothing, as
-- a view, links nothing). The whole capture counts, warm-up included.
--
-- grain: one row per (trace_id, layer, direction, operator, name)
-- reads: gpu_executions, ranges
-- params:
--   layer VARCHAR - LIKE pattern on names of ranges: 'layer1%', 'aten::linear'; default %
-- columns:
--   trace_id BIGINT - the trace
--   layer VARCHAR - name of the range that matches
--   direction VARCHAR - forward, backward, update or ''
--   operator VARCHAR - operator
--   name VARCHAR - short name of the kernel, or the kind of copy
--   kernel_class VARCHAR - gemm, attention, elementwise ..; NULL for copies and memsets
--   execution_count BIGINT - executions
--   total_ns BIGINT ns sum of their times
--   median_ns DOUBLE ns median time
--   share_pct DOUBLE % of the time of the layer, both directions
WITH executions AS (
    SELECT
        *,
        list_filter(path, lambda name : name LIKE $layer::VARCHAR)[-1] AS layer_of_launch
    FROM gpu_executions
    WHERE is_valid
),

-- evaluate_function has no number: that of the autograd node inside
backward AS (
    SELECT
        wanted.trace_id, wanted.operator_range_id, wanted.operator, outer_ranges.process_id, outer_ranges.start_ns,
        max(coalesce(outer_ranges.sequence, nodes.sequence)) AS sequence
    FROM (
        SELECT DISTINCT trace_id, operator_range_id, operator
        FROM executions
        WHERE direction = 'backward' AND layer_of_launch IS NULL
    ) AS wanted
    INNER JOIN ranges AS outer_ranges
        ON wanted.trace_id = outer_ranges.trace_id AND wanted.operator_range_id = outer_ranges.range_id
    LEFT JOIN ranges AS nodes
        ON wanted.trace_id = nodes.trace_id AND wanted.operator_range_id = nodes.parent_range_id
    GROUP BY ALL
),

linked AS (
    SELECT
        backward.trace_id, backward.operator_range_id, backward.operator,
        list_filter(ranges.path, lambda name : name LIKE $layer::VARCHAR)[-1] AS layer_of_forward
    FROM backward
    ASOF INNER JOIN ranges
        ON
            backward.trace_id = ranges.trace_id
            AND backward.process_id = ranges.process_id
            AND backward.sequence = ranges.sequence
            AND backward.operator = ranges.name
            AND backward.start_ns >= ranges.start_ns
)

SELECT
    trace_id,
    coalesce(layer_of_launch, layer_of_forward) AS layer,
    direction, operator, name,
    any_value(kernel_class) AS kernel_class,
    count(*) AS execution_count,
    sum(end_ns - start_ns)::BIGINT AS total_ns,
    median(end_ns - start_ns)::DOUBLE AS median_ns,
    100.0 * total_ns / nullif(sum(sum(end_ns - start_ns)) OVER (PARTITION BY trace_id, layer), 0) AS share_pct
FROM executions
LEFT JOIN linked USING (trace_id, operator_range_id, operator)
WHERE coalesce(layer_of_launch, layer_of_forward) IS NOT NULL
GROUP BY trace_id, layer, direction, operator, name
ORDER BY trace_id, layer, total_ns DESC, direction, operator, name
