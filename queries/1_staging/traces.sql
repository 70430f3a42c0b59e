-- traces: the ingested captures.
-- grain: one row per trace
-- reads: raw_trace, _manifest_traces
-- columns:
--   trace_id BIGINT - number of the capture within the RUN
--   workload VARCHAR - name given by the user, NULL when none was
--   variant VARCHAR - variant given by the user, NULL when none was
--   rank BIGINT - rank of the process in a distributed job, NULL when unknown
--   source_file VARCHAR - base name of the file that was ingested
--   source_format VARCHAR - nsys-rep, sqlite, sqlite.gz or parquetdir
--   nsys_version VARCHAR - Nsight Systems that exported the file, NULL when it does not say
--   schema_version VARCHAR - export schema, NULL when the file does not say
--   utc_epoch_ns BIGINT ns UTC of time 0 of the capture
--   duration_ns BIGINT ns length of the capture
--   driver_version VARCHAR - NVIDIA driver
--   cuda_version VARCHAR - CUDA version of the driver
--   graph_trace_mode VARCHAR - granularity of CUDA graphs: graph or node, NULL when the file does not say
--   flop_convention VARCHAR - FLOP convention stated by the user or the workload
SELECT
    raw_trace.trace_id,
    _manifest_traces.workload,
    _manifest_traces.variant,
    coalesce(_manifest_traces.rank, raw_trace.rank) AS rank,
    raw_trace.source_file,
    raw_trace.source_format,
    raw_trace.nsys_version,
    raw_trace.schema_version,
    raw_trace.utc_epoch_ns,
    raw_trace.duration_ns,
    raw_trace.driver_version,
    raw_trace.cuda_version,
    raw_trace.graph_trace_mode,
    _manifest_traces.flop_convention
FROM raw_trace
LEFT JOIN _manifest_traces USING (trace_id)
ORDER BY raw_trace.trace_id
