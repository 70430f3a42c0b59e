-- _kernel_names: class and type of kernels by their names. The rules are empirical: an unknown name stays unknown.
-- grain: one row per (trace, demangled name id, short name id)
-- reads: raw_kernels, raw_strings
-- columns:
--   trace_id BIGINT - capture
--   demangled_name_id BIGINT - key
--   short_name_id BIGINT - key
--   name VARCHAR - short name
--   demangled_name VARCHAR - name with template arguments
--   kernel_class VARCHAR - gemm, convolution, attention, communication, softmax, norm, optimizer, embedding, reduction, sort, copy, pooling, random, fused (a Triton kernel), elementwise or other
--   name_dtype VARCHAR - type in the name; '16bit' where the name has one mark for both 16-bit types
WITH names AS (
    SELECT
        kernels.trace_id,
        kernels.demangled_name_id,
        kernels.short_name_id,
        coalesce(short.value, demangled.value, '(unnamed)') AS name,
        coalesce(demangled.value, short.value, '(unnamed)') AS demangled_name
    FROM (SELECT DISTINCT trace_id, demangled_name_id, short_name_id FROM raw_kernels) AS kernels
    LEFT JOIN raw_strings AS demangled
        ON kernels.trace_id = demangled.trace_id AND kernels.demangled_name_id = demangled.id
    LEFT JOIN raw_strings AS short
        ON kernels.trace_id = short.trace_id AND kernels.short_name_id = short.id
)

SELECT
    *,
    CASE
        WHEN regexp_matches(
            demangled_name,
            '(?i)nccl|all_?reduce|cross_device_reduce|all_?gather|reduce_scatter|userbuffers|nvshmem|deep_ep'
        )
            THEN 'communication'
        WHEN regexp_matches(demangled_name, '(?i)sdpa|fmha|flash.?attn|flash_(fwd|bwd)|flashattn|attention|paged_attn|mha_(fwd|bwd)')
            THEN 'attention'
        WHEN regexp_matches(demangled_name, '(?i)fprop|dgrad|wgrad|convolve|winograd|conv(olution)?[0-9]?d|cudnn_infer.*conv|depthwise')
            THEN 'convolution'
        WHEN regexp_matches(demangled_name, '(?i)gemm|nvjet|gemv|cublas|matmul|triton_tem_fused.*mm|cutlass.*(tensorop|simt)|splitk')
            THEN 'gemm'
        WHEN regexp_matches(demangled_name, '^triton_') THEN 'fused'
        WHEN regexp_matches(demangled_name, '(?i)softmax') THEN 'softmax'
        WHEN regexp_matches(demangled_name, '(?i)(layer|batch|group|rms|instance).?norm|bn_(fw|bw)|GammaBeta') THEN 'norm'
        WHEN regexp_matches(demangled_name, '(?i)multi_tensor_apply|adam|sgd|optimizer') THEN 'optimizer'
        WHEN regexp_matches(demangled_name, '(?i)embedding|indexSelect|index_elementwise|scatter_gather|gather') THEN 'embedding'
        WHEN regexp_matches(demangled_name, '(?i)pool') THEN 'pooling'
        WHEN regexp_matches(demangled_name, '(?i)radixsort|bitonic|::sort|topk') THEN 'sort'
        WHEN regexp_matches(demangled_name, '(?i)distribution_elementwise|philox|dropout') THEN 'random'
        WHEN regexp_matches(
            demangled_name, '(?i)direct_copy|copy_kernel|nchwToNhwc|nhwcToNchw|transpose|CatArray|memcpy|AddPadding'
        ) THEN 'copy'
        WHEN regexp_matches(demangled_name, '(?i)reduce') THEN 'reduction'
        WHEN regexp_matches(demangled_name, '(?i)elementwise|fill') THEN 'elementwise'
        ELSE 'other'
    END AS kernel_class,
    CASE
        WHEN regexp_matches(demangled_name, '(?i)e4m3|e5m2|fp8|float8|nvjet_(sm[0-9]+_)?q[a-z]{2,}_') THEN 'fp8'
        WHEN regexp_matches(demangled_name, '(?i)nvfp4|mxfp4|e2m1|nvjet_(sm[0-9]+_)?o[a-z]{2,}_') THEN 'fp4'
        WHEN regexp_matches(demangled_name, '(?i)tf32|nvjet_(sm[0-9]+_)?s[a-z]{2,}_') THEN 'tf32'
        WHEN regexp_matches(demangled_name, '(?i)bf16|bfloat16|nvjet_(sm[0-9]+_)?t[a-z]{2,}_') THEN 'bf16'
        WHEN regexp_matches(demangled_name, '(?i)(sdpa|fmha|flash).*(f16|half)') THEN '16bit'
        WHEN regexp_matches(
            demangled_name,
            '(?i)c10::Half|__half|fp16|f16f16|h884|h16816|h1688|s16816|s884|hgemm|nvjet_(sm[0-9]+_)?h[a-z]{2,}_|cutlass::half_t'
        )
            THEN 'fp16'
        WHEN regexp_matches(demangled_name, '(?i)dgemm|f64f64|d884|\bdouble\b') THEN 'fp64'
        WHEN regexp_matches(demangled_name, '(?i)s1688|tensorop_s') THEN 'tf32'
        WHEN regexp_matches(demangled_name, '(?i)sgemm|f32f32|simt_s|\bfloat\b') THEN 'fp32'
        WHEN regexp_matches(demangled_name, '(?i)imma|i8i8|s8s8|int8') THEN 'int8'
    END AS name_dtype
FROM names
