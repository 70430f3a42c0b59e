-- _clocks: SM clock and energy by NVML while the windows ran.
-- grain: one row per (trace, device) with at least one sample inside its windows
-- reads: raw_nvml_samples, traces, devices, _windows
-- columns:
--   trace_id BIGINT - capture
--   device_id BIGINT - device
--   sm_clock_hz DOUBLE Hz mean SM clock
--   sample_count BIGINT - samples
--   joule_per_ns DOUBLE W/1e9 mean rate of the energy counter, NULL with fewer than 20 samples
WITH spans AS (
    SELECT
        trace_id,
        device_id,
        min(start_ns) AS first_ns,
        max(end_ns) AS last_ns
    FROM _windows
    GROUP BY trace_id, device_id
),

samples AS (
    SELECT
        devices.trace_id,
        devices.device_id,
        raw_nvml_samples.utc_ns - traces.utc_epoch_ns AS at_ns,
        nullif(raw_nvml_samples.sm_clock_hz, 0) AS sm_clock_hz,
        raw_nvml_samples.energy_j
    FROM raw_nvml_samples
    INNER JOIN traces ON raw_nvml_samples.trace_id = traces.trace_id
    INNER JOIN devices
        ON
            raw_nvml_samples.trace_id = devices.trace_id
            AND replace(lower(raw_nvml_samples.gpu_uuid), 'gpu-', '') = replace(lower(devices.uuid), 'gpu-', '')
)

SELECT
    spans.trace_id,
    spans.device_id,
    avg(samples.sm_clock_hz) AS sm_clock_hz,
    count(*) AS sample_count,
    CASE
        WHEN count(samples.energy_j) >= 20 AND max(samples.at_ns) > min(samples.at_ns)
            THEN (max(samples.energy_j) - min(samples.energy_j)) / (max(samples.at_ns) - min(samples.at_ns))
    END AS joule_per_ns
FROM spans
INNER JOIN samples
    ON
        spans.trace_id = samples.trace_id
        AND spans.device_id = samples.device_id
        AND samples.at_ns BETWEEN spans.first_ns AND spans.last_ns
GROUP BY spans.trace_id, spans.device_id
