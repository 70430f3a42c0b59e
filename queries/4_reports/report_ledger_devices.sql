-- report_ledger_devices: the ledger of each GPU, where a trace has more than one.
--
-- grain: one row per (trace_id, phase, process_id, device_id, component)
-- reads: ledger, processes
--
-- columns:
--   trace_id BIGINT - the trace
--   phase VARCHAR - '' when the trace has one phase
--   process_id BIGINT - the process
--   pid BIGINT - its number in the operating system
--   device_id BIGINT - the physical GPU
--   position BIGINT - order in the ledger
--   component VARCHAR - name in the ledger
--   ns DOUBLE ns time of the component over all measured steps
--   pct DOUBLE % share of the step time, signed
WITH devices_of_view AS (
    SELECT
        trace_id,
        phase,
        count(DISTINCT concat_ws('/', process_id, device_id)) AS device_count
    FROM ledger
    GROUP BY trace_id, phase
)

SELECT
    ledger.trace_id,
    ledger.phase,
    ledger.process_id,
    processes.pid,
    ledger.device_id,
    ledger.position::BIGINT AS position,
    ledger.component,
    ledger.ns::DOUBLE AS ns,
    ledger.pct
FROM ledger
INNER JOIN devices_of_view ON ledger.trace_id = devices_of_view.trace_id AND ledger.phase = devices_of_view.phase
LEFT JOIN processes ON ledger.trace_id = processes.trace_id AND ledger.process_id = processes.process_id
WHERE devices_of_view.device_count > 1
ORDER BY ledger.trace_id, ledger.phase, processes.pid, ledger.process_id, ledger.device_id, ledger.position
