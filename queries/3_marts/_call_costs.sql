-- _call_costs: FLOP, bytes and type of each operator call. A cost counts once per range and launch: calls that share one divide it
-- by their GPU time.
-- grain: one row per operator call
-- reads: _call_works, _range_costs, _matrix_dtypes, _nvtx, _messages, _shape_costs
-- columns:
--   trace_id BIGINT - capture
--   operator_call_id BIGINT - operator call
--   shapes VARCHAR - sizes of the arguments
--   dtype VARCHAR - declared; else by kernel name; else that of most matrix work
--   flop DOUBLE FLOP model FLOP
--   extra_flop DOUBLE FLOP beyond the model
--   flop_min DOUBLE FLOP lower bound
--   bytes DOUBLE B fused bytes
--   cost_source VARCHAR - annotation, shapes or copied_bytes
--   cost_reason VARCHAR - what is unknown, or what a known value assumes
--   causal_unknown BOOLEAN - attention that may be causal, counted in full
WITH shared AS (
    SELECT
        _call_works.*,
        CASE
            WHEN sum(work_ns) OVER sharers > 0 THEN work_ns / sum(work_ns) OVER sharers
            ELSE 1.0 / count(*) OVER sharers
        END AS cost_share,
        if(cost_range_id IS NULL, innermost_range_id, NULL) AS uncosted_range_id
    FROM _call_works
    WINDOW sharers AS (PARTITION BY trace_id, cost_range_id, graph_launch_id)
),

typed AS (
    SELECT
        shared.*,
        _range_costs.* EXCLUDE (trace_id, range_id),
        coalesce(
            _range_costs.declared_dtype,
            if(shared.name_dtype = '16bit', coalesce(_matrix_dtypes.dtype_16bit, 'fp16'), shared.name_dtype),
            _matrix_dtypes.dtype
        ) AS dtype,
        inner_costs.reason AS inner_reason,
        inner_messages.shapes AS inner_shapes
    FROM shared
    LEFT JOIN _range_costs
        ON shared.trace_id = _range_costs.trace_id AND shared.cost_range_id = _range_costs.range_id
    LEFT JOIN _matrix_dtypes
        ON shared.trace_id = _matrix_dtypes.trace_id AND shared.process_id = _matrix_dtypes.process_id
    LEFT JOIN _nvtx AS inner_ranges
        ON shared.trace_id = inner_ranges.trace_id AND shared.uncosted_range_id = inner_ranges.range_id
    LEFT JOIN _messages AS inner_messages ON inner_ranges.message_id = inner_messages.message_id
    LEFT JOIN _shape_costs AS inner_costs
        ON inner_messages.name = inner_costs.operator AND inner_messages.shapes = inner_costs.shapes
),

sized AS (
    SELECT
        *,
        CASE
            WHEN dtype = 'fp64' THEN 8
            WHEN dtype IN ('fp32', 'tf32') THEN 4
            WHEN dtype IN ('bf16', 'fp16') THEN 2
            WHEN dtype IN ('fp8', 'int8') THEN 1
            WHEN dtype = 'fp4' THEN 0.5
        END AS element_bytes
    FROM typed
)

SELECT
    trace_id,
    operator_call_id,
    coalesce(shapes, inner_shapes) AS shapes,
    dtype,
    CASE
        WHEN cost_range_id IS NOT NULL THEN flop * cost_share
        WHEN moved_bytes IS NOT NULL THEN 0
    END AS flop,
    CASE WHEN cost_range_id IS NOT NULL THEN extra_flop * cost_share ELSE 0 END AS extra_flop,
    flop_min * cost_share AS flop_min,
    CASE
        WHEN cost_range_id IS NULL THEN moved_bytes
        WHEN cost_source = 'annotation' THEN bytes * cost_share
        ELSE (elements * element_bytes + index_bytes) * cost_share
    END AS bytes,
    CASE WHEN cost_range_id IS NOT NULL THEN cost_source WHEN moved_bytes IS NOT NULL THEN 'copied_bytes' END AS cost_source,
    CASE
        WHEN cost_range_id IS NULL AND moved_bytes IS NOT NULL THEN NULL
        WHEN is_covered THEN 'an enclosing cost covers its costed parts, not this rest'
        WHEN cost_range_id IS NULL THEN coalesce(inner_reason, 'no cost declared, and no sizes in the range names')
        WHEN cost_reason IS NOT NULL THEN cost_reason
        WHEN flop IS NULL THEN 'flop is not declared'
        WHEN cost_source = 'annotation' AND bytes IS NULL THEN 'bytes are not declared'
        WHEN cost_source = 'shapes' AND elements IS NOT NULL AND element_bytes IS NULL THEN 'element size unknown: no dtype'
    END AS cost_reason,
    coalesce(causal_unknown, false) AS causal_unknown
FROM sized
