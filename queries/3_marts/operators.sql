-- operators: time, cost and speed of light of each operator inside the measured steps (without steps: in the whole capture).
-- grain: one row per (trace, process, device, phase, operator, direction)
-- reads: _window_calls, operator_calls, _operator_busy, _device_rates, _step_works, _windows, _options
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   device_id BIGINT - device
--   phase VARCHAR - phase, '' when there is one
--   operator VARCHAR - operator; '(unattributed)', '(library)' or '(step)' when no range names one
--   direction VARCHAR - forward, backward, update; '' for the '(..)' names
--   call_count BIGINT - ranges of the operator, times the launches of a graph that holds them
--   kernel_count BIGINT - kernels
--   busy_ns BIGINT ns union of execution intervals
--   exclusive_ns DOUBLE ns share of compute time: the rows add up to it
--   share_pct DOUBLE % of the compute time of the device and phase
--   flop DOUBLE FLOP model FLOP, NULL when no call states them
--   bytes DOUBLE B fused bytes, NULL when no call states them
--   dtype VARCHAR - type that all calls share, else NULL
--   dtype_count BIGINT - types
--   shapes VARCHAR - sizes that all calls share, else NULL
--   shape_count BIGINT - different sizes; each is in operator_calls
--   cost_source VARCHAR - sources of the costs, NULL without any
--   cost_reason VARCHAR - why a cost is unknown, or what it assumes
--   costed_busy_ns BIGINT ns union over the calls whose FLOP and bytes are known
--   ideal_ns DOUBLE ns T_SOL at the datasheet, of these calls
--   ideal_measured_ns DOUBLE ns T_SOL at the measured ceilings, of these calls
--   flop_per_s DOUBLE FLOP/s flop over the union of the calls that state them
--   bytes_per_s DOUBLE B/s bytes over costed_busy_ns
--   mfu_pct DOUBLE % flop_per_s of the dense datasheet peak of the reference dtype
--   mfu_points DOUBLE % its FLOP at that peak, of the wall time of the steps: its part of the model's MFU; NULL without steps
--   sol_pct DOUBLE % ideal_ns of costed_busy_ns; above 100 is a flag, never clipped
--   sol_measured_pct DOUBLE % ideal_measured_ns of costed_busy_ns
--   bound VARCHAR - what T_SOL of all costed calls is made of: compute or memory, NULL when they differ or are unknown
--   recoverable_ns DOUBLE ns costed_busy_ns - ideal at the ceiling used for ranking: measured where known, else datasheet
WITH sums AS (
    SELECT
        inside.trace_id, inside.process_id, inside.device_id, inside.phase, inside.operator, inside.direction,
        count(DISTINCT (coalesce(calls.range_id, -1 - calls.operator_call_id), coalesce(calls.api_call_id, -1))) AS call_count,
        sum(inside.tau_ns) AS exclusive_ns,
        sum(inside.flop) AS flop,
        sum(inside.bytes) AS bytes,
        sum(inside.bytes) FILTER (WHERE inside.is_costed) AS costed_bytes,
        sum(inside.model_ns) AS model_ns,
        if(count(DISTINCT calls.dtype) = 1 AND count(calls.dtype) = count(*), min(calls.dtype), NULL) AS dtype,
        count(DISTINCT calls.dtype) AS dtype_count,
        if(count(DISTINCT calls.shapes) = 1 AND count(calls.shapes) = count(*), min(calls.shapes), NULL) AS shapes,
        count(DISTINCT calls.shapes) AS shape_count,
        string_agg(DISTINCT calls.cost_source, ', ' ORDER BY calls.cost_source) AS cost_source,
        arg_max(calls.cost_reason, calls.busy_ns) FILTER (WHERE calls.cost_reason IS NOT NULL) AS cost_reason,
        if(count(inside.ideal_ns) = count(*) FILTER (WHERE inside.is_costed), sum(inside.ideal_ns), NULL) AS ideal_ns,
        if(
            count(inside.ideal_measured_ns) = count(*) FILTER (WHERE inside.is_costed), sum(inside.ideal_measured_ns), NULL
        ) AS ideal_measured_ns,
        CASE
            WHEN bool_and(inside.compute_ns >= inside.memory_ns) FILTER (WHERE inside.ideal_ns > 0) THEN 'compute'
            WHEN bool_and(inside.compute_ns < inside.memory_ns) FILTER (WHERE inside.ideal_ns > 0) THEN 'memory'
        END AS bound
    FROM _window_calls AS inside
    INNER JOIN operator_calls AS calls
        ON inside.trace_id = calls.trace_id AND inside.operator_call_id = calls.operator_call_id
    GROUP BY inside.trace_id, inside.process_id, inside.device_id, inside.phase, inside.operator, inside.direction
),

walls AS (
    SELECT
        trace_id, process_id, device_id, phase,
        coalesce(any_value(_step_works.untraced_step_ns * _step_works.step_count), sum(end_ns - start_ns)) AS wall_ns
    FROM _windows
    LEFT JOIN _step_works USING (trace_id, process_id, phase)
    WHERE _windows.step IS NOT NULL
    GROUP BY trace_id, process_id, device_id, phase
)

SELECT
    trace_id, process_id, device_id, phase, operator, direction, call_count, kernel_count, busy_ns, exclusive_ns,
    CASE
        WHEN sum(exclusive_ns) OVER of_device > 0 THEN 100 * exclusive_ns / sum(exclusive_ns) OVER of_device
    END AS share_pct,
    flop, bytes, dtype, dtype_count, shapes, shape_count, cost_source, cost_reason, costed_busy_ns, ideal_ns, ideal_measured_ns,
    if(flop_busy_ns > 0, 1e9 * flop / flop_busy_ns, NULL) AS flop_per_s,
    if(costed_busy_ns > 0, 1e9 * costed_bytes / costed_busy_ns, NULL) AS bytes_per_s,
    if(flop_busy_ns > 0, 100 * 1e9 * flop / flop_busy_ns / reference_flop_per_s, NULL) AS mfu_pct,
    100 * model_ns / wall_ns AS mfu_points,
    if(costed_busy_ns > 0, 100 * ideal_ns / costed_busy_ns, NULL) AS sol_pct,
    if(costed_busy_ns > 0, 100 * ideal_measured_ns / costed_busy_ns, NULL) AS sol_measured_pct,
    bound,
    if(
        costed_busy_ns > 0,
        costed_busy_ns - if(_options.ceiling = 'datasheet', ideal_ns, coalesce(ideal_measured_ns, ideal_ns)), NULL
    ) AS recoverable_ns
FROM sums
INNER JOIN _operator_busy USING (trace_id, process_id, device_id, phase, operator, direction)
LEFT JOIN _device_rates USING (trace_id, device_id)
LEFT JOIN walls USING (trace_id, process_id, device_id, phase)
CROSS JOIN _options
WINDOW of_device AS (PARTITION BY trace_id, process_id, device_id, phase)
ORDER BY trace_id, process_id, device_id, phase, recoverable_ns DESC NULLS LAST, exclusive_ns DESC, operator, direction
