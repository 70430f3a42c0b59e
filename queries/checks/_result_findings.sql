-- _result_findings: what limits the numbers that were computed.
-- grain: one row per (trace, code)
-- reads: run_summary, raw_untraced_steps, operators, ledger, _best_rates, _nvtx, _messages, _texts, _call_costs, _options, _outer_costs
-- columns:
--   trace_id BIGINT - capture
--   code VARCHAR - warning
--   count BIGINT - occurrences
--   detail VARCHAR - evidence
SELECT trace_id, 'no_step_rule' AS code, 0 AS count, NULL AS detail
FROM run_summary
WHERE step_rule = 'none'
UNION ALL
SELECT trace_id, 'step_range_unmatched', 0, any_value(_options.step_regex)
FROM run_summary, _options
WHERE _options.step_regex IS NOT NULL
GROUP BY trace_id
HAVING bool_and(step_rule != 'user')
UNION ALL
SELECT trace_id, 'few_steps', min(step_count), NULL
FROM run_summary
WHERE step_count BETWEEN 1 AND 2
GROUP BY trace_id
UNION ALL
SELECT trace_id, 'step_spread', count(*), printf('%.1f %%', max(step_spread_pct))
FROM run_summary
WHERE step_spread_pct > 5 AND step_count > 1
GROUP BY trace_id
UNION ALL
SELECT trace_id, 'profiler_overhead', count(*), printf('%.1f %%', max(profiler_overhead_pct))
FROM run_summary
WHERE profiler_overhead_pct > 5
GROUP BY trace_id
UNION ALL
SELECT _nvtx.trace_id, 'bad_annotation', sum(_messages.bad_fields)::BIGINT, min(left(_texts.message, 120))
FROM _nvtx
INNER JOIN _messages ON _nvtx.message_id = _messages.message_id
INNER JOIN _texts ON _nvtx.message_id = _texts.message_id
WHERE _messages.bad_fields > 0
GROUP BY _nvtx.trace_id
UNION ALL
SELECT trace_id, 'causal_unknown', count(*), NULL
FROM _call_costs
WHERE causal_unknown
GROUP BY trace_id
UNION ALL
SELECT trace_id, 'dtype_unknown', count(*), NULL
FROM _call_costs
WHERE cost_source = 'shapes' AND dtype IS NULL
GROUP BY trace_id
UNION ALL
SELECT
    trace_id, 'ceiling_exceeded', count(*),
    string_agg(
        printf(
            '%s at %.1f %s, ceiling %.1f', operator, rate_per_s / 1e12, if(dtype = 'bytes', 'TB/s', 'TFLOP/s ' || dtype),
            ceiling_per_s / 1e12
        ), '; ' ORDER BY dtype
    )
FROM _best_rates
GROUP BY trace_id
UNION ALL
SELECT
    trace_id, 'sol_above_100', count(*),
    string_agg(printf('%s %s at %.0f %%', operator, direction, sol_pct), '; ' ORDER BY sol_pct DESC, operator, direction)
FROM operators
WHERE sol_pct > 102
GROUP BY trace_id
UNION ALL
SELECT trace_id, 'unattributed_flop', count(*), printf('%.1f %% of the step time', arg_max(pct, abs(pct)))
FROM ledger
WHERE component = 'unattributed_flop' AND abs(pct) > 2
GROUP BY trace_id
UNION ALL
SELECT
    trace_id, 'declared_cost_differs', count(*),
    arg_max(printf('%s declares %g FLOP, its parts %g', name, declared_flop, parts_flop), abs(declared_flop - parts_flop))
FROM _outer_costs
WHERE abs(declared_flop - parts_flop) > 0.01 * declared_flop
GROUP BY trace_id
UNION ALL
SELECT run_summary.trace_id, 'untraced_not_used', count(*), NULL
FROM run_summary
SEMI JOIN raw_untraced_steps ON run_summary.trace_id = raw_untraced_steps.trace_id
WHERE run_summary.untraced_n = 0
GROUP BY run_summary.trace_id
