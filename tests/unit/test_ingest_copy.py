"""Rows arrive as they are in the export, whatever year and format it has and whatever its values are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from mfupipe.ingest import Finding, SourceFormat, engine, write_raw
from mfupipe.ingest.sources import Relation
from tests.oracle.source import unpack
from tests.runs import CAPTURES
from tests.unit.ingest_export import (
    KERNEL,
    PROCESS,
    RUNTIME,
    THREAD,
    Tables,
    ingest,
    integers,
    pairs,
    read_raw,
    small,
    write_parquet,
    write_sqlite,
)

UNSIGNED = ("globalTid", "globalPid", "domainId")
COUNTED = {
    KERNEL: "kernel_count",
    RUNTIME: "api_call_count",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "memcpy_count",
    "CUPTI_ACTIVITY_KIND_MEMSET": "memset_count",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "graph_count",
}


def count_of(connection: sqlite3.Connection, table: str) -> int:
    exists = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = ?", [table]).fetchone()[0]
    return int(connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]) if exists else 0


def single(rows: list[dict[str, Any]]) -> dict[str, Any]:
    (row,) = rows
    return row


@pytest.mark.parametrize("name", CAPTURES)
def test_every_execution_and_call_of_a_real_capture_is_copied(name: str, tmp_path: Path) -> None:
    info = write_raw(CAPTURES[name], tmp_path / "raw", trace_id=3)
    assert (info.trace_id, info.source_format) == (3, SourceFormat.SQLITE_GZ)
    with closing(sqlite3.connect(unpack(CAPTURES[name], tmp_path))) as connection:
        assert {table: getattr(info, count) for table, count in COUNTED.items()} == {
            table: count_of(connection, table) for table in COUNTED
        }


def test_the_only_kernel_of_a_small_trace_keeps_every_value(tmp_path: Path) -> None:
    info, raw = ingest(write_sqlite(tmp_path / "a.sqlite", small()), tmp_path)
    kernel = single(raw["kernels"])
    assert (kernel["start_ns"], kernel["end_ns"], kernel["global_pid"]) == (1000, 1100, PROCESS)
    assert (kernel["row_id"], kernel["stream_id"], kernel["correlation_id"]) == (1, 7, 4)
    assert kernel["grid_x"] is None
    assert single(raw["nvtx_ranges"])["text"] == "step 1"
    assert raw["memcpys"] == raw["gpus"] == raw["findings"] == []
    assert (info.kernel_count, info.range_count, info.findings) == (1, 1, ())


def test_only_strings_that_something_refers_to_are_copied(tmp_path: Path) -> None:
    _, raw = ingest(write_sqlite(tmp_path / "a.sqlite", small()), tmp_path)
    assert sorted(row["value"] for row in raw["strings"]) == ["cudaLaunchKernel", "gemm"]


def test_marks_and_thread_names_are_no_ranges(tmp_path: Path) -> None:
    tables = small()
    columns, rows = tables["NVTX_EVENTS"]
    others = [(-9, None, kind, None, 0, THREAD, "other") for kind in (33, 34, 39, 75, 76)]
    tables["NVTX_EVENTS"] = columns, [*rows, *others, (6, None, 60, 1, 2, THREAD, None)]
    _, raw = ingest(write_sqlite(tmp_path / "a.sqlite", tables), tmp_path)
    assert [(row["event_type"], row["end_ns"], row["row_id"]) for row in raw["nvtx_ranges"]] == [
        (59, 30, 1),
        (60, None, 7),
    ]


def test_a_domain_is_named_per_process_by_text_or_registered_string(tmp_path: Path) -> None:
    tables = small()
    columns, rows = tables["NVTX_EVENTS"]
    other = THREAD + (1 << 24)
    created = [
        (-5, None, 75, None, 1, THREAD, "old"),
        (-4, None, 75, None, 1, THREAD, "mfupipe"),
        (-3, None, 75, 3, 1, other, None),
    ]
    tables["NVTX_EVENTS"] = columns, [*rows, *created]
    _, raw = ingest(write_sqlite(tmp_path / "a.sqlite", tables), tmp_path)
    assert [(row["global_pid"], row["name"]) for row in raw["nvtx_domains"]] == [
        (PROCESS, "mfupipe"),
        (PROCESS + (1 << 24), "unused"),
    ]


def test_unsigned_parquet_and_signed_sqlite_give_the_same_tables(tmp_path: Path) -> None:
    tables = small()
    high = -144115188075855872  # 0xFE00... of session-level events: negative in SQLite, above 2^63 in Parquet
    columns, rows = tables[RUNTIME]
    tables[RUNTIME] = columns, [*rows, (1, 2, high + 9, 8, 2)]
    _, left = ingest(write_sqlite(tmp_path / "a.sqlite", tables), tmp_path / "sqlite")
    info, right = ingest(write_parquet(tmp_path / "a_pqtdir", tables, UNSIGNED), tmp_path / "parquet")
    assert info.source_format is SourceFormat.PARQUET_DIRECTORY
    assert [row["global_tid"] for row in right["api_calls"]] == [THREAD, high + 9]
    assert {name: rows for name, rows in left.items() if name != "trace"} == {
        name: rows for name, rows in right.items() if name != "trace"
    }


@pytest.fixture
def slow_path_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast way always fails."""
    original = engine.Engine._write

    def write(self: engine.Engine, target: Path, select: str) -> int:
        if "source." in select:
            raise duckdb.ConversionException("as if a value were odd")
        return original(self, target, select)

    monkeypatch.setattr(engine.Engine, "_write", write)


@pytest.mark.parametrize(
    "name", ["2026.2.1_h100x2_megatron_1s", "h200_cuda_graph_node", "h200_transformer_layer_train_emit_nvtx"]
)
def test_the_slow_way_gives_the_tables_of_the_fast_one(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    fast = tmp_path / "fast"
    write_raw(CAPTURES[name], fast, trace_id=0)
    request.getfixturevalue("slow_path_only")
    slow = tmp_path / "slow"
    write_raw(CAPTURES[name], slow, trace_id=0)
    assert read_raw(slow) == read_raw(fast)


@pytest.mark.parametrize("form", ["sqlite", "parquet"])
def test_undecodable_names_are_replaced_and_counted_and_no_time_is_lost(form: str, tmp_path: Path) -> None:
    tables = small()
    source = write_sqlite(tmp_path / "a.sqlite", tables)
    if form == "parquet":
        source = parquet_with_bad_text(tmp_path)
    else:
        with closing(sqlite3.connect(source)) as connection, connection:
            connection.execute("UPDATE StringIds SET value = CAST(x'6765fffe' AS TEXT) WHERE id IN (1, 3)")
            connection.execute("UPDATE NVTX_EVENTS SET text = CAST(x'ff' AS TEXT)")
    info, raw = ingest(source, tmp_path)
    assert {row["id"]: row["value"] for row in raw["strings"]} == {1: "ge\ufffd\ufffd", 2: "cudaLaunchKernel"}
    assert single(raw["kernels"])["end_ns"] == 1100
    assert set(info.findings) == {
        Finding("undecodable_names", 1, "NVTX_EVENTS"),
        Finding("undecodable_names", 1, "StringIds"),
    }
    assert len(raw["findings"]) == 2


def parquet_with_bad_text(tmp_path: Path) -> Path:
    """A Parquet directory whose text columns hold bytes that are not UTF-8, which no honest writer makes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    directory = write_parquet(tmp_path / "bad_pqtdir", small(), UNSIGNED)
    for table, column, values in (
        ("StringIds", "value", [b"ge\xff\xfe", b"cudaLaunchKernel", b"ge\xff\xfe"]),
        ("NVTX_EVENTS", "text", [b"\xff"]),
    ):
        path = directory / f"{table}.parquet"
        content = pq.ParquetFile(path).read()
        text = pa.array(values, pa.binary()).view(pa.string())
        pq.write_table(content.set_column(content.schema.get_field_index(column), column, text), path)
    return directory


def test_values_of_the_wrong_type_become_null_and_are_counted(tmp_path: Path) -> None:
    tables = small()
    columns, rows = tables[KERNEL]
    odd = [("soon", 1200, 1.5, b"\x01", 5, PROCESS, 1, 1), (1300, 1400, 0, 7, 6, PROCESS, 1, 1)]
    tables[KERNEL] = columns, [*rows, *odd]
    info, raw = ingest(write_sqlite(tmp_path / "a.sqlite", tables), tmp_path)
    assert [(row["start_ns"], row["end_ns"], row["device_id"], row["stream_id"]) for row in raw["kernels"]] == [
        (1000, 1100, 0, 7),
        (None, 1200, None, None),
        (1300, 1400, 0, 7),
    ]
    assert info.findings == (Finding("bad_values", 1 + 1 + 1, KERNEL),)


@pytest.mark.parametrize("declared", ["REAL", "", "TEXT", "NUMERIC"])
def test_integers_in_a_column_of_another_type_are_exact(declared: str, tmp_path: Path) -> None:
    tables = small()
    columns, _ = tables[KERNEL]
    start = 2**53 + 1 if declared in {"", "TEXT", "NUMERIC"} else 2**53
    tables[KERNEL] = dict(columns) | {"start": declared}, [(start, start + 3, 0, 7, 4, PROCESS, 1, 1)]
    info, raw = ingest(write_sqlite(tmp_path / "a.sqlite", tables), tmp_path)
    assert single(raw["kernels"])["start_ns"] == start
    assert info.findings == ()


def test_a_name_with_a_nul_a_quote_and_a_newline_arrives_whole(tmp_path: Path) -> None:
    tables = small()
    name = "a\0b'\"\n|,<script>\u202e\U0001f600"
    tables["StringIds"] = tables["StringIds"][0], [(1, name), (2, "")]
    _, raw = ingest(write_sqlite(tmp_path / "a.sqlite", tables), tmp_path)
    assert {row["id"]: row["value"] for row in raw["strings"]} == {1: name, 2: ""}


def test_kernels_without_a_process_get_the_only_one_of_the_trace(tmp_path: Path) -> None:
    _, raw = ingest(write_sqlite(tmp_path / "a.sqlite", without(small(), KERNEL, "globalPid")), tmp_path)
    assert single(raw["kernels"])["global_pid"] == PROCESS


def test_kernels_without_a_process_get_none_when_there_are_two(tmp_path: Path) -> None:
    tables = without(small(), KERNEL, "globalPid")
    columns, rows = tables[RUNTIME]
    tables[RUNTIME] = columns, [*rows, (11, 21, THREAD + (1 << 24), 4, 2)]
    _, raw = ingest(write_sqlite(tmp_path / "a.sqlite", tables), tmp_path)
    assert single(raw["kernels"])["global_pid"] is None


def without(tables: Tables, table: str, column: str) -> Tables:
    columns, rows = tables[table]
    index = list(columns).index(column)
    kept = [tuple(value for place, value in enumerate(row) if place != index) for row in rows]
    return tables | {table: ({name: kind for name, kind in columns.items() if name != column}, kept)}


def test_graph_nodes_come_from_the_table_that_holds_nodes(tmp_path: Path) -> None:
    """CUDA_GRAPH_EVENTS held nodes up to 2023.4, and holds graphs since 2024.2."""
    nodes = integers("start end globalTid graphNodeId originalGraphNodeId"), [(1, 2, THREAD, 8, 9)]
    graphs = integers("start end globalTid graphId originalGraphId graphExecId"), [(1, 2, THREAD, 5, 6, 7)]
    layouts: tuple[Tables, ...] = (
        {"CUDA_GRAPH_EVENTS": nodes},
        {"CUDA_GRAPH_EVENTS": graphs, "CUDA_GRAPH_NODE_EVENTS": nodes},
        {"CUDA_GRAPH_EVENTS": graphs},
    )
    found = []
    for index, layout in enumerate(layouts):
        _, raw = ingest(write_sqlite(tmp_path / f"{index}.sqlite", small() | layout), tmp_path / str(index))
        found.append([row["graph_node_id"] for row in raw["graph_node_events"]])
    assert found == [[8], [8], []]


def test_the_gpu_table_of_2020_is_read_too(tmp_path: Path) -> None:
    """Its clock and bandwidth are in other units, and stay unknown."""
    columns = integers("deviceId numMultiprocessors coreClockRate") | {"name": "TEXT"}
    tables = small() | {"TARGET_INFO_CUDA_GPU": (columns, [(1, 80, 1530000, "Tesla V100-SXM2-16GB")])}
    _, raw = ingest(write_sqlite(tmp_path / "a.sqlite", tables), tmp_path)
    gpu = single(raw["gpus"])
    assert (gpu["name"], gpu["cuda_device"], gpu["sm_count"], gpu["clock_hz"]) == ("Tesla V100-SXM2-16GB", 1, 80, None)


def test_a_trace_without_any_event_gives_empty_tables(tmp_path: Path) -> None:
    _, raw = ingest(write_sqlite(tmp_path / "a.sqlite", {"META_DATA_EXPORT": pairs()}), tmp_path)
    assert {name for name, rows in raw.items() if rows} == {"trace", "findings"}


def test_only_processes_with_events_are_copied(tmp_path: Path) -> None:
    processes = integers("globalPid pid") | {"name": "TEXT"}, [(PROCESS, 77, "/usr/bin/python3"), (9 << 24, 9, "sshd")]
    _, raw = ingest(write_sqlite(tmp_path / "a.sqlite", small() | {"PROCESSES": processes}), tmp_path)
    assert raw["processes"] == [{"global_pid": PROCESS, "pid": 77, "name": "python3"}]


def test_relations_wrap_unsigned_ids_around() -> None:
    relation = Relation("t", "rowid", {"id": "UBIGINT"}, is_checked=True)
    value = relation.integer("id")
    found = duckdb.sql(f"SELECT {value} FROM (SELECT unnest([0, 18446744073709551615]::UBIGINT[]) AS id)").fetchall()
    assert found == [(0,), (-1,)]
