-- _anchor_choices: of the ranges open at an anchor, the one that names the operator and the one that declares the cost.
-- The operator is the innermost annotated range; else, on a backward path, the innermost autograd node; else, where the innermost
-- range is autograd's, the innermost with a seq (without any: the innermost); else the innermost that is no library's and no step.
-- grain: one row per anchor inside at least one range
-- reads: _anchor_paths
-- columns:
--   trace_id BIGINT - capture
--   anchor_id BIGINT - anchor
--   range_id BIGINT - innermost range over all domains
--   range_ids BIGINT[] - open ranges, outermost first
--   name_ids INTEGER[] - their names
--   operator_range_id BIGINT - range of the operator, NULL when only steps or libraries are open
--   operator_flags INTEGER - its flags
--   evaluate_range_id BIGINT - evaluate_function range, when no node is open inside it
--   is_backward BOOLEAN - an autograd node or its wrapper is open
--   is_update BOOLEAN - inside Optimizer.step
--   placeholder VARCHAR - '(step)' or '(library)' when nothing else is open
--   annotated_ids BIGINT[] - ranges with an annotated cost, outermost first
--   shaped_ids BIGINT[] - ranges with a cost by shapes
--   shaped_flop_ids BIGINT[] - those of them that have FLOP
WITH filtered AS (
    SELECT
        trace_id,
        anchor_id,
        path,
        list_filter(path, lambda r: (r.flags & 3) = 0) AS named,
        list_filter(path, lambda r: (r.flags & 18) = 16) AS annotated,
        list_filter(path, lambda r: (r.flags & 32) > 0) AS nodes,
        list_filter(path, lambda r: (r.flags & 64) > 0) AS wrappers
    FROM _anchor_paths
),

chosen AS (
    SELECT
        *,
        CASE
            WHEN len(annotated) > 0 THEN annotated[-1]
            WHEN len(nodes) > 0 THEN nodes[-1]
            WHEN len(wrappers) > 0 THEN wrappers[-1]
            WHEN (named[-1].flags & 4) = 0 THEN named[-1]
            ELSE coalesce(
                list_filter(named, lambda r: (r.flags & 8) > 0)[-1],
                named[-1]
            )
        END AS operator_range
    FROM filtered
)

SELECT
    trace_id,
    anchor_id,
    path[-1].range_id AS range_id,
    list_transform(path, lambda r: r.range_id) AS range_ids,
    list_transform(path, lambda r: r.name_id) AS name_ids,
    operator_range.range_id AS operator_range_id,
    operator_range.flags AS operator_flags,
    CASE WHEN len(nodes) = 0 THEN wrappers[-1].range_id END AS evaluate_range_id,
    len(nodes) + len(wrappers) > 0 AS is_backward,
    len(list_filter(path, lambda r: (r.flags & 512) > 0)) > 0 AS is_update,
    CASE
        WHEN len(named) > 0 THEN NULL
        WHEN len(list_filter(path, lambda r: (r.flags & 1) > 0)) > 0 THEN '(library)'
        ELSE '(step)'
    END AS placeholder,
    list_transform(list_filter(path, lambda r: (r.flags & 130) = 128), lambda r: r.range_id) AS annotated_ids,
    list_transform(list_filter(path, lambda r: (r.flags & 256) > 0), lambda r: r.range_id) AS shaped_ids,
    list_transform(list_filter(path, lambda r: (r.flags & 1024) > 0), lambda r: r.range_id) AS shaped_flop_ids
FROM chosen
