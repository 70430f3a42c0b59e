-- _domains: NVTX domains by the process that made them: a domain id means nothing outside its process.
-- grain: one row per (trace, process, domain id)
-- reads: raw_nvtx_domains
-- columns:
--   trace_id BIGINT - capture
--   process_id BIGINT - process
--   domain_id BIGINT - id within the process
--   domain VARCHAR - name
--   is_library BOOLEAN - ranges are pushed by a CUDA library: labels, never operators or steps
SELECT
    trace_id,
    global_pid AS process_id,
    domain_id,
    min(name) AS domain,
    bool_or(
        regexp_matches(
            name,
            '(?i)^(nccl|cublas|cublaslt|cudnn|cufft|cusparse|cusparselt|cusolver|curand|cutensor|cccl|cub|thrust|nvshmem)$'
        )
    ) AS is_library
FROM raw_nvtx_domains
WHERE global_pid IS NOT NULL AND name IS NOT NULL
GROUP BY trace_id, global_pid, domain_id
ORDER BY trace_id, process_id, domain_id
