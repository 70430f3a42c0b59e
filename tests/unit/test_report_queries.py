"""The report's queries: the header is a contract, the order is total, and the arithmetic can be checked by hand."""

from __future__ import annotations

import re
from collections.abc import Callable

import duckdb
import pytest

from mfupipe.errors import UnusableTrace
from mfupipe.paths import QUERIES
from mfupipe.report.reader import TABLE_NAMES, read_table, report_query
from tests.unit import report_database as fixtures

DATABASES = (
    fixtures.training,
    fixtures.serving,
    fixtures.without_steps,
    fixtures.unknown_gpu,
    fixtures.without_kernels,
)
Row = dict[str, object]


def rows(connection: duckdb.DuckDBPyConnection, table: str) -> list[Row]:
    found: list[Row] = read_table(connection, table).to_pylist()
    return found


def value(row: Row, column: str) -> float:
    found = row[column]
    assert isinstance(found, int | float)
    return found


def test_every_query_of_the_folder_is_part_of_the_report() -> None:
    assert {path.stem for path in (QUERIES / "4_reports").glob("report_*.sql")} == {f"report_{t}" for t in TABLE_NAMES}


@pytest.mark.parametrize("table", TABLE_NAMES)
def test_header_columns_are_what_the_query_returns(table: str) -> None:
    described = fixtures.empty().execute(f"DESCRIBE {report_query(table).sql}").fetchall()
    assert [(column.name, column.type) for column in report_query(table).columns] == [row[:2] for row in described]


@pytest.mark.parametrize("table", TABLE_NAMES)
def test_header_reads_are_what_the_query_reads(table: str) -> None:
    names = duckdb.connect().get_table_names(report_query(table).sql)
    assert names == set(report_query(table).reads)


@pytest.mark.parametrize("make", DATABASES)
@pytest.mark.parametrize("table", TABLE_NAMES)
def test_grain_is_unique(make: Callable[[], duckdb.DuckDBPyConnection], table: str) -> None:
    grain = re.search(r"\(([^)]*)\)", report_query(table).grain)
    assert grain
    keys = [key.strip() for key in grain[1].split(",")]
    found = rows(make(), table)
    assert len({tuple(str(row[key]) for key in keys) for row in found}) == len(found)


@pytest.mark.parametrize("table", TABLE_NAMES)
def test_order_does_not_depend_on_insertion(table: str) -> None:
    straight, shuffled = fixtures.serving(), fixtures.serving()
    for (name,) in shuffled.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        shuffled.execute(f"CREATE TABLE _copy AS SELECT * FROM {name} ORDER BY hash({name}::VARCHAR || 'x')")
        shuffled.execute(f"DELETE FROM {name}")
        shuffled.execute(f"INSERT INTO {name} SELECT * FROM _copy")
        shuffled.execute("DROP TABLE _copy")
    assert [str(row) for row in rows(straight, table)] == [str(row) for row in rows(shuffled, table)]


def test_ledger_bar_ends_at_one_hundred_and_gains_come_last() -> None:
    bar = rows(fixtures.training(), "ledger")
    assert value(bar[-1], "end_pct") == pytest.approx(100, abs=1e-9)
    assert value(bar[0], "sum_pct") == pytest.approx(100, abs=1e-9)
    assert [value(row, "pct") < 0 for row in bar] == sorted(value(row, "pct") < 0 for row in bar)
    assert max(value(row, "end_pct") for row in bar) == pytest.approx(100.42)


def test_ledger_time_is_that_of_one_step() -> None:
    bar = {row["component"]: value(row, "ns_per_step") for row in rows(fixtures.training(), "ledger")}
    assert bar["model_flop"] == pytest.approx(0.652 * 33.262e6)
    assert sum(bar.values()) == pytest.approx(33.262e6)


def test_model_flop_and_gains_are_no_losses() -> None:
    ranked = {row["component"]: row["loss_rank"] for row in rows(fixtures.training(), "ledger")}
    assert ranked["memory_bound"] == 1 and ranked["kernel_inefficiency"] == 2 and ranked["idle_launch"] == 3
    assert ranked["model_flop"] is None and ranked["clock"] is None


def test_two_gpus_do_not_double_the_time_of_a_step() -> None:
    bar = [row for row in rows(fixtures.serving(), "ledger") if row["phase"] == "decode"]
    assert sum(value(row, "ns_per_step") for row in bar) == pytest.approx(9.8e6)
    first = next(row for row in rows(fixtures.serving(), "operators") if row["phase"] == "decode")
    # 40 ms on each of two GPUs in 40 steps: 1 ms a step.
    assert value(first, "ns_per_step") == pytest.approx(1e6)
    assert first["call_count"] == 80


def test_operators_above_their_ceiling_sort_last_and_those_without_cost_before_them() -> None:
    names = [row["operator"] for row in rows(fixtures.training(), "operators")]
    assert names[:2] == ["aten::_scaled_dot_product_cudnn_attention", "aten::addmm"]
    assert names[-3:] == ["my_ext::rotary", "(unattributed)", "aten::embedding"]


def test_a_cost_for_a_sliver_of_the_time_neither_ranks_nor_explains_an_operator() -> None:
    connection = fixtures.training()
    fixtures.add_operator(connection, "conv1:Conv2d", 20.0, flop=1.0, bytes=4.0)
    connection.execute(
        "UPDATE operators SET costed_busy_ns = 0.4e6, recoverable_ns = 0.4e6 WHERE operator LIKE 'conv%'"
    )
    found = rows(connection, "operators")
    names = [row["operator"] for row in found]
    assert names[6:8] == ["conv1:Conv2d", "my_ext::rotary"]  # among those without a cost, by time
    assert found[6]["why"] == "98 % of its time has no cost model"
    unknown = ("flop_per_s", "bytes_per_s", "flop_per_byte", "sol_pct", "sol_measured_pct", "recoverable_per_step_ns")
    assert {found[6][column] for column in unknown} == {None}


def test_what_has_no_operator_is_not_listed_again_as_without_cost() -> None:
    connection = fixtures.training()
    for name in ("(unattributed)", "(step)", "(library)"):
        fixtures.insert(connection, "uncosted", trace_id=0, operator=name, direction="", busy_ns=5, reason="no shapes")
    fixtures.insert(connection, "uncosted", trace_id=0, operator="copies only", direction="", busy_ns=0, reason="none")
    assert [row["name"] for row in rows(connection, "uncovered")] == ["my_ext::rotary", "memset"]


def test_every_row_says_why() -> None:
    found = {(row["operator"], row["direction"]): row["why"] for row in rows(fixtures.training(), "operators")}
    assert found == {
        ("aten::_scaled_dot_product_cudnn_attention", "forward"): "compute bound, below the FLOP roof",
        ("aten::addmm", "forward"): "compute bound, below the FLOP roof",
        ("aten::addmm", "backward"): "within a tenth of the roof",
        ("aten::native_layer_norm", "backward"): "memory bound, 4 kernels a call: fuse",
        ("aten::relu", "forward"): "memory bound, below the bandwidth roof",
        ("aten::add_", "forward"): "latency floor: 0.1 us or less a kernel",
        ("my_ext::rotary", "forward"): "no cost model: no formula for this operator",
        ("(unattributed)", ""): "no range at the launch",
        ("aten::embedding", "forward"): "SOL above 100: data in L2, or a wrong count",
    }


def test_sol_is_a_ratio_of_sums_over_gpus() -> None:
    connection = fixtures.empty()
    fixtures.add_operator(connection, "a", 1.0, flop=0.45e12, bytes=1.0, device_id=0)
    fixtures.add_operator(connection, "a", 3.0, flop=0.45e12, bytes=1.0, device_id=1)
    (row,) = rows(connection, "operators")
    assert value(row, "sol_measured_pct") == pytest.approx(100 * (0.5 + 0.5) / 4)
    assert value(row, "flop_per_s") == pytest.approx(0.9e12 / 4e-3)


def test_calls_that_differ_have_no_single_dtype() -> None:
    connection = fixtures.empty()
    fixtures.add_operator(connection, "a", 1.0, dtype="bf16", device_id=0)
    fixtures.add_operator(connection, "a", 1.0, dtype="fp32", device_id=1)
    (row,) = rows(connection, "operators")
    assert row["dtype"] is None and row["dtype_count"] == 2


@pytest.mark.parametrize(
    ("make", "leads"),
    [
        (fixtures.training, ["mfu"]),
        (fixtures.serving, ["mbu", "mfu", "mfu"]),
        (fixtures.without_steps, ["no_step"]),
        (fixtures.unknown_gpu, ["no_peak"]),
        (fixtures.without_kernels, []),
    ],
)
def test_what_leads_the_page(make: Callable[[], duckdb.DuckDBPyConnection], leads: list[str]) -> None:
    assert [row["lead"] for row in rows(make(), "headline")] == leads


def test_without_flop_and_without_executions_have_their_own_lead() -> None:
    connection = fixtures.training()
    connection.execute("UPDATE run_summary SET mfu_pct = 0, mbu_pct = NULL")
    assert rows(connection, "headline")[0]["lead"] == "no_flop"
    connection.execute("DELETE FROM gpu_executions")
    assert rows(connection, "headline")[0]["lead"] == "no_gpu_work"


def test_gaps_are_summed_by_cause_and_call_and_keep_their_phase() -> None:
    first = rows(fixtures.training(), "gaps")[0]
    assert (first["cause"], first["api_name"], first["gap_count"]) == ("launch", "cudaLaunchKernel", 2)
    assert (first["total_ns"], first["longest_ns"], first["median_ns"]) == (2_794_000, 1_894_000, 1_397_000.0)
    assert {row["phase"] for row in rows(fixtures.serving(), "gaps")} == {"decode"}


def test_versions_of_a_cuda_call_are_one_call() -> None:
    connection = fixtures.training()
    connection.execute("UPDATE gaps SET api_name = 'cudaLaunchKernel_v7000' WHERE gap_ns = 900000")
    assert rows(connection, "gaps")[0]["gap_count"] == 2


def test_only_roofs_of_dtypes_in_use_are_marked() -> None:
    used = {(row["dtype"], row["is_used"]) for row in rows(fixtures.training(), "roofs")}
    assert used == {("bf16", True), ("fp32", True), ("tf32", False), ("bytes", True)}


def test_a_database_of_another_version_is_refused_with_the_table_named() -> None:
    connection = fixtures.training()
    connection.execute("DROP TABLE gaps")
    with pytest.raises(UnusableTrace, match=r"report_gaps .*Table with name gaps"):
        read_table(connection, "gaps")
    connection.execute("ALTER TABLE run_summary DROP mbu_pct")
    with pytest.raises(UnusableTrace, match="report_headline"):
        read_table(connection, "headline")
