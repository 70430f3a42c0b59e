-- report_roofs: the ceilings of the GPUs of a trace, with their sources.
--
-- grain: one row per (trace_id, device_name, dtype, kind, condition)
-- reads: ceilings, devices, operators, run_summary
--
-- columns:
--   trace_id BIGINT - the trace
--   device_name VARCHAR - as the driver reports it
--   dtype VARCHAR - 'bytes' for bandwidth
--   kind VARCHAR - 'datasheet' or 'measured'
--   condition VARCHAR - '', 'burst', 'sustained', 'best in trace' or 'user'
--   flop_per_s DOUBLE FLOP/s dense; NULL for bandwidth
--   bytes_per_s DOUBLE B/s NULL for FLOP
--   source VARCHAR - where the number comes from
--   is_used BOOLEAN - an operator of the trace runs in this dtype, or it is the reference or the bandwidth
WITH gpus AS (
    SELECT DISTINCT
        trace_id,
        device_name
    FROM devices
),

dtypes AS (
    SELECT
        trace_id,
        dtype
    FROM operators
    WHERE dtype IS NOT NULL
    UNION DISTINCT
    SELECT
        trace_id,
        reference_dtype AS dtype
    FROM run_summary
    WHERE reference_dtype IS NOT NULL
)

SELECT
    gpus.trace_id,
    gpus.device_name,
    ceilings.dtype,
    ceilings.kind,
    coalesce(ceilings.condition, '') AS condition,
    ceilings.flop_per_s,
    ceilings.bytes_per_s,
    ceilings.source,
    ceilings.dtype = 'bytes' OR dtypes.dtype IS NOT NULL AS is_used
FROM ceilings
INNER JOIN gpus ON ceilings.device_name = gpus.device_name
LEFT JOIN dtypes ON gpus.trace_id = dtypes.trace_id AND ceilings.dtype = dtypes.dtype
ORDER BY
    gpus.trace_id, gpus.device_name, ceilings.dtype = 'bytes', ceilings.dtype, ceilings.kind,
    coalesce(ceilings.flop_per_s, ceilings.bytes_per_s) DESC, condition
