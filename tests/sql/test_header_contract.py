"""Every SQL file states its grain, its inputs and its columns, and the statement keeps to it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from mfupipe import paths
from tests.runs import RealRun

FILES = {str(path.relative_to(paths.QUERIES)): path for path in sorted(paths.QUERIES.rglob("*.sql"))}
BUILT = {name: path for name, path in FILES.items() if not name.startswith(("4_reports", "examples"))}
ASKED = {name: path for name, path in FILES.items() if name not in BUILT}
COLUMN = re.compile(
    r"^--\s{2,}(?P<name>\w+)\s+(?P<type>(?:STRUCT\(.*?\)|[A-Z]+)(?:\[\])?)\s+(?P<unit>\S+)\s+(?P<comment>\S.*)$"
)
PARAMETER = re.compile(r"\$([a-z_]+)")


@dataclass(frozen=True)
class Header:
    """What a file says of itself. columns: name -> (type, unit, comment)."""

    name: str
    summary: str
    grain: str
    reads: frozenset[str]
    columns: dict[str, tuple[str, str, str]]


def comment_lines(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    end = next(index for index, line in enumerate(lines) if not line.startswith("--"))
    return lines[:end]


def header(path: Path) -> Header:
    lines = comment_lines(path)
    name, _, summary = lines[0].removeprefix("--").strip().partition(":")
    fields = {key: _field(lines, key) for key in ("grain", "reads")}
    matches = [match for match in map(COLUMN.match, _below(lines, "columns")) if match]
    columns = {match["name"]: (match["type"], match["unit"], match["comment"]) for match in matches}
    return Header(name, summary.strip(), fields["grain"], frozenset(re.findall(r"\w+", fields["reads"])), columns)


def _field(lines: list[str], key: str) -> str:
    start = next((index for index, line in enumerate(lines) if re.match(rf"--\s*{key}:", line)), None)
    assert start is not None, f"no {key}:"
    text = [lines[start].partition(":")[2]]
    for line in lines[start + 1 :]:
        if not re.match(r"--\s{3,}\S", line):
            break
        text.append(line.removeprefix("--").strip())
    return " ".join(text).strip()


def _below(lines: list[str], key: str) -> list[str]:
    start = next((index for index, line in enumerate(lines) if re.match(rf"--\s*{key}:", line)), None)
    assert start is not None, f"no {key}:"
    return lines[start + 1 :]


def statement(path: Path) -> str:
    return path.read_text(encoding="utf-8").split("\n", len(comment_lines(path)))[-1]


def tables_of(sql: str) -> set[str]:
    """Tables that a statement reads: those in its syntax tree that are no CTE of its own."""
    with duckdb.connect() as connection:
        ((serialized,),) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    tree = json.loads(serialized)
    assert not tree["error"], tree.get("error_message")
    nodes = list(_nodes(tree))
    common = {entry["key"] for node in nodes for entry in (node.get("cte_map") or {}).get("map", [])}
    return {node["table_name"] for node in nodes if node.get("type") == "BASE_TABLE"} - common


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(child)


@pytest.fixture(scope="module")
def database(real_run: Callable[[str], RealRun]) -> duckdb.DuckDBPyConnection:
    return real_run("h200_transformer_layer_train_emit_nvtx").connection


def test_there_are_files_in_each_layer() -> None:
    layers = {name.partition("/")[0] for name in FILES}
    assert layers >= {"1_staging", "2_attribution", "3_marts", "4_reports", "checks", "examples"}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_named_like_its_table_and_says_what_a_row_is(name: str) -> None:
    found = header(FILES[name])
    assert found.name == FILES[name].stem
    assert found.summary
    assert found.grain.startswith(("one row", "at most one row", "no row"))
    assert found.columns


@pytest.mark.parametrize("name", FILES)
def test_every_column_is_listed_with_unit_and_meaning(name: str) -> None:
    for column, (_, unit, comment) in header(FILES[name]).columns.items():
        assert comment.strip(), column
        if column.endswith("_ns") and not column.endswith("_per_ns"):
            assert unit == "ns", column
        if column.endswith("_pct"):
            assert unit == "%", column


@pytest.mark.parametrize("name", FILES)
def test_reads_names_exactly_the_tables_in_the_statement(name: str) -> None:
    assert header(FILES[name]).reads == tables_of(statement(FILES[name]))


@pytest.mark.parametrize("name", BUILT)
def test_tables_of_the_build_take_no_parameters(name: str) -> None:
    assert not PARAMETER.findall(statement(BUILT[name]))


@pytest.mark.parametrize("name", BUILT)
def test_reads_only_names_earlier_layers_or_its_own(name: str) -> None:
    layer = {path.stem: file.partition("/")[0] for file, path in BUILT.items()}
    order = ["1_staging", "2_attribution", "3_marts", "checks"]
    mine = order.index(layer[BUILT[name].stem])
    for table in header(BUILT[name]).reads:
        assert table in layer or table.startswith("raw_") or table in GIVEN, table
        if table in layer:
            assert order.index(layer[table]) <= mine, table


GIVEN = {
    "_device_peaks",
    "_device_problems",
    "_peaks",
    "_warning_codes",
    "_manifest_traces",
    "_options",
    "_shape_costs",
}
"""Tables that Python lays before the build."""


def private_is_kept(database: duckdb.DuckDBPyConnection, table: str) -> bool:
    known = database.execute("SELECT count(*) FROM duckdb_columns() WHERE table_name = ?", [table]).fetchall()
    return bool(known[0][0])


def test_every_public_table_is_in_the_database(database: duckdb.DuckDBPyConnection) -> None:
    public = {path.stem for name, path in BUILT.items() if not path.stem.startswith("_") and name[0].isdigit()}
    assert {table for table in public if not private_is_kept(database, table)} == set()


@pytest.mark.parametrize("name", BUILT)
def test_a_built_table_has_the_columns_types_and_comments_of_its_header(
    name: str, database: duckdb.DuckDBPyConnection
) -> None:
    table = BUILT[name].stem
    found = database.execute(
        "SELECT column_name, data_type, comment FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index",
        [table],
    ).fetchall()
    if not found:
        assert table.startswith("_") or name.startswith("checks"), f"{table} is public and was not built"
        return
    listed = header(BUILT[name]).columns
    assert [(column, kind) for column, kind, _ in found] == [(column, kind) for column, (kind, _, _) in listed.items()]
    for column, _, comment in found:
        assert comment, f"{table}.{column} has no comment"
        assert listed[column][2].strip() in comment


def default_parameters(path: Path) -> dict[str, object]:
    """A value for each parameter: its type does not change the columns."""
    return dict.fromkeys(PARAMETER.findall(statement(path)), None)


@pytest.mark.parametrize("name", ASKED)
def test_a_report_query_returns_the_columns_of_its_header(name: str, database: duckdb.DuckDBPyConnection) -> None:
    parameters = default_parameters(ASKED[name])
    found = database.execute(f"DESCRIBE {statement(ASKED[name])}", parameters or None).fetchall()
    listed = header(ASKED[name]).columns
    assert [row[:2] for row in found] == [(column, kind) for column, (kind, _, _) in listed.items()]


@pytest.mark.parametrize("name", ASKED)
def test_a_report_query_has_a_total_order(name: str, database: duckdb.DuckDBPyConnection) -> None:
    """Sorted by its ORDER BY alone, no two rows tie: equal sort keys would let the engine choose."""
    text = statement(ASKED[name]).rstrip().rstrip(";")
    order = text[text.rindex("ORDER BY") :]
    assert not re.search(r"[()]{1}\s*(AS|FROM)\b", order), f"no ORDER BY at the end of {name}"
    keys = [key.strip() for key in re.split(r",(?![^(]*\))", order.removeprefix("ORDER BY").partition("LIMIT")[0])]
    columns = [re.sub(r"^\w+\.|\s+(ASC|DESC|NULLS|FIRST|LAST)\b", "", key) for key in keys]
    if columns == ["ALL"]:
        return
    body = text[: text.rindex("ORDER BY")]
    listed = set(header(ASKED[name]).columns)
    usable = ", ".join(column for column in columns if column in listed)
    assert usable, f"{name} sorts by no column of its own"
    parameters = default_parameters(ASKED[name])
    ties = database.execute(
        f"SELECT {usable}, count(*) FROM ({body}) GROUP BY {usable} HAVING count(*) > 1", parameters or None
    ).fetchall()
    assert ties == []


def test_the_data_dictionary_is_the_one_that_the_headers_give() -> None:
    program = Path(__file__).resolve().parents[2] / "tools" / "docs.py"
    found = subprocess.run([sys.executable, program, "--check"], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_short_and_holds_one_statement(name: str) -> None:
    text = FILES[name].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 110
    assert len(duckdb.extract_statements(text)) == 1
