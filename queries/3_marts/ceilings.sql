-- ceilings: peaks of the GPUs that the captures list, each with kind and source; bandwidth is dtype 'bytes'.
-- grain: one row per (device name, dtype, kind, condition)
-- reads: _peaks, _best_rates, _device_rates
-- columns:
--   device_name VARCHAR - GPU
--   dtype VARCHAR - type, or 'bytes' for memory bandwidth
--   kind VARCHAR - datasheet (dense) or measured
--   condition VARCHAR - of measured ones: burst (a few steps, before the power limit acts), sustained, or best in trace; user when stated with --peak
--   flop_per_s DOUBLE FLOP/s compute ceiling
--   bytes_per_s DOUBLE B/s bandwidth ceiling
--   source VARCHAR - where the number comes from
WITH known AS (
    SELECT
        device_name, dtype, kind, condition,
        max(flop_per_s) AS flop_per_s,
        max(bytes_per_s) AS bytes_per_s,
        min(source) AS source
    FROM _peaks
    GROUP BY device_name, dtype, kind, condition
),

best AS (
    SELECT
        _device_rates.peak_name AS device_name,
        _best_rates.dtype,
        max(_best_rates.rate_per_s) AS rate_per_s,
        arg_max(_best_rates.operator, _best_rates.rate_per_s) AS operator
    FROM _best_rates
    INNER JOIN _device_rates USING (trace_id, device_id)
    GROUP BY _device_rates.peak_name, _best_rates.dtype
)

SELECT device_name, dtype, kind, condition, flop_per_s, bytes_per_s, source
FROM known
UNION ALL
SELECT
    device_name,
    dtype,
    'measured' AS kind,
    'best in trace' AS condition,
    if(dtype = 'bytes', NULL, rate_per_s) AS flop_per_s,
    if(dtype = 'bytes', rate_per_s, NULL) AS bytes_per_s,
    'best class of calls in this capture: ' || operator AS source
FROM best
ORDER BY device_name, dtype, kind, condition
