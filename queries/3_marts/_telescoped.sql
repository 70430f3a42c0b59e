-- _telescoped: compute time of the windows from FLOP at the reference peak to the time it took, each term minus the one before.
-- A call without a full cost, or without a peak, keeps its FLOP in model_ns and the rest of its time in uncosted_ns.
-- grain: one row per (trace, process, device, phase) with compute in its windows
-- reads: _window_calls
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   device_id BIGINT - device
--   phase VARCHAR - phase of the windows
--   model_ns DOUBLE ns model FLOP at the reference peak
--   extra_ns DOUBLE ns extra FLOP at the reference peak
--   precision_ns DOUBLE ns added by the peak of the dtype
--   memory_ns DOUBLE ns added by the bandwidth
--   clock_ns DOUBLE ns added by the clock
--   kernel_ns DOUBLE ns added by the kernels
--   uncosted_ns DOUBLE ns calls without a full cost
WITH lines AS (
    SELECT
        trace_id, process_id, device_id, phase, tau_ns,
        compute_ns IS NOT NULL AND memory_ns IS NOT NULL AND model_ns IS NOT NULL AS has_ideal,
        coalesce(model_ns, 0) AS model_ns,
        coalesce(executed_ns, 0) AS executed_ns,
        compute_ns,
        greatest(compute_ns, memory_ns) AS ideal_ns,
        greatest(clocked_ns, memory_ns) AS clocked_ns
    FROM _window_calls
)

SELECT
    trace_id, process_id, device_id, phase,
    sum(model_ns) AS model_ns,
    sum(executed_ns - model_ns) AS extra_ns,
    coalesce(sum(compute_ns - executed_ns) FILTER (WHERE has_ideal), 0) AS precision_ns,
    coalesce(sum(ideal_ns - compute_ns) FILTER (WHERE has_ideal), 0) AS memory_ns,
    coalesce(sum(clocked_ns - ideal_ns) FILTER (WHERE has_ideal), 0) AS clock_ns,
    coalesce(sum(tau_ns - clocked_ns) FILTER (WHERE has_ideal), 0) AS kernel_ns,
    coalesce(sum(tau_ns - executed_ns) FILTER (WHERE NOT has_ideal), 0) AS uncosted_ns
FROM lines
GROUP BY ALL
