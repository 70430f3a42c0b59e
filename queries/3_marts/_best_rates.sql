-- _best_rates: where a class of calls beats the measured ceiling, the best rate of the trace: the ceiling was too low. Rates above
-- the datasheet are no evidence (a wrong count), nor are calls whose bytes may stay in L2, nor classes below 0.1 % of GPU time.
-- grain: one row per (trace, device, dtype) that beats its measured ceiling; dtype 'bytes' for bandwidth
-- reads: _call_works, _call_costs, _device_rates, _device_dtypes
-- columns:
--   trace_id BIGINT - capture
--   device_id BIGINT - device
--   dtype VARCHAR - type, or 'bytes'
--   rate_per_s DOUBLE - FLOP/s or B/s of the best class
--   ceiling_per_s DOUBLE - measured ceiling that it beats
--   operator VARCHAR - operator of the class
WITH classes AS (
    SELECT
        _call_works.trace_id, _call_works.device_id, operator, direction, shapes, dtype,
        sum(flop + extra_flop) AS flop,
        sum(bytes) AS bytes,
        min(bytes) AS least_bytes,
        sum(busy_ns) AS busy_ns
    FROM _call_works
    INNER JOIN _call_costs USING (trace_id, operator_call_id)
    GROUP BY ALL
),

large AS (
    SELECT *
    FROM classes
    QUALIFY busy_ns > 0.001 * sum(busy_ns) OVER (PARTITION BY trace_id, device_id)
),

rates AS (
    SELECT
        large.trace_id, large.device_id, large.operator, large.dtype,
        1e9 * flop / busy_ns AS rate_per_s,
        _device_dtypes.measured_flop_per_s AS ceiling_per_s,
        _device_dtypes.flop_per_s AS datasheet_per_s
    FROM large
    INNER JOIN _device_dtypes USING (trace_id, device_id, dtype)
    UNION ALL
    SELECT
        large.trace_id, large.device_id, large.operator, 'bytes' AS dtype,
        1e9 * bytes / busy_ns AS rate_per_s,
        _device_rates.measured_bytes_per_s AS ceiling_per_s,
        _device_rates.bytes_per_s AS datasheet_per_s
    FROM large
    INNER JOIN _device_rates USING (trace_id, device_id)
    WHERE least_bytes > 2 * _device_rates.l2_bytes
)

SELECT
    trace_id,
    device_id,
    dtype,
    max(rate_per_s) AS rate_per_s,
    any_value(ceiling_per_s) AS ceiling_per_s,
    arg_max(operator, (rate_per_s, operator)) AS operator
FROM rates
WHERE rate_per_s > ceiling_per_s AND rate_per_s <= datasheet_per_s
GROUP BY trace_id, device_id, dtype
