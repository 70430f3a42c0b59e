-- _window_calls: operator calls inside the windows: FLOP, bytes and ideals in proportion to the compute time that falls inside.
-- grain: one row per (operator call, process, device, phase of the windows)
-- reads: _window_executions, _call_works, operator_calls, _device_rates, _device_dtypes, _clocks
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   device_id BIGINT - device
--   phase VARCHAR - phase of the windows
--   operator_call_id BIGINT - operator call
--   operator VARCHAR - operator
--   direction VARCHAR - forward, backward, update or ''
--   tau_ns DOUBLE ns exclusive compute time inside the windows
--   flop DOUBLE FLOP model FLOP inside
--   extra_flop DOUBLE FLOP beyond the model inside
--   bytes DOUBLE B bytes inside
--   ideal_ns DOUBLE ns T_SOL at the datasheet
--   ideal_measured_ns DOUBLE ns T_SOL at the measured ceilings
--   is_costed BOOLEAN - FLOP and bytes are known
--   cost_source VARCHAR - annotation, shapes or copied_bytes
--   model_ns DOUBLE ns FLOP at the reference peak
--   executed_ns DOUBLE ns model and extra FLOP at the reference peak
--   compute_ns DOUBLE ns model and extra FLOP at the peak of the dtype
--   memory_ns DOUBLE ns bytes at the datasheet bandwidth
--   clocked_ns DOUBLE ns compute_ns at the clock that was sampled; compute_ns without samples
WITH inside AS (
    SELECT
        trace_id, process_id, device_id, phase, operator_call_id,
        sum(exclusive_ns) AS tau_ns,
        sum(end_ns - start_ns) FILTER (WHERE execution_class = 'compute') AS compute_length_ns
    FROM _window_executions
    GROUP BY trace_id, process_id, device_id, phase, operator_call_id
),

shares AS (
    SELECT
        inside.*,
        CASE
            WHEN _call_works.work_ns > 0 THEN coalesce(inside.compute_length_ns, 0) / _call_works.work_ns
            ELSE 1
        END AS share,
        CASE
            WHEN _call_works.compute_work_ns > 0 THEN coalesce(inside.compute_length_ns, 0) / _call_works.compute_work_ns
            ELSE share
        END AS flop_share
    FROM inside
    INNER JOIN _call_works USING (trace_id, operator_call_id)
)

SELECT
    shares.trace_id, shares.process_id, shares.device_id, shares.phase, shares.operator_call_id,
    calls.operator, calls.direction, shares.tau_ns,
    calls.flop * flop_share AS flop,
    calls.extra_flop * flop_share AS extra_flop,
    calls.bytes * share AS bytes,
    calls.ideal_ns * flop_share AS ideal_ns,
    calls.ideal_measured_ns * flop_share AS ideal_measured_ns,
    calls.flop IS NOT NULL AND calls.bytes IS NOT NULL AS is_costed,
    calls.cost_source,
    1e9 * calls.flop * flop_share / _device_rates.reference_flop_per_s AS model_ns,
    1e9 * (calls.flop + calls.extra_flop) * flop_share / _device_rates.reference_flop_per_s AS executed_ns,
    if(
        calls.flop + calls.extra_flop = 0, 0,
        1e9 * (calls.flop + calls.extra_flop) * flop_share / _device_dtypes.flop_per_s
    ) AS compute_ns,
    1e9 * calls.bytes * share / _device_rates.bytes_per_s AS memory_ns,
    compute_ns * coalesce(_device_rates.peak_clock_hz / _clocks.sm_clock_hz, 1) AS clocked_ns
FROM shares
INNER JOIN operator_calls AS calls
    ON shares.trace_id = calls.trace_id AND shares.operator_call_id = calls.operator_call_id
LEFT JOIN _device_rates ON shares.trace_id = _device_rates.trace_id AND shares.device_id = _device_rates.device_id
LEFT JOIN _device_dtypes
    ON
        shares.trace_id = _device_dtypes.trace_id
        AND shares.device_id = _device_dtypes.device_id
        AND calls.dtype = _device_dtypes.dtype
LEFT JOIN _clocks ON shares.trace_id = _clocks.trace_id AND shares.device_id = _clocks.device_id
