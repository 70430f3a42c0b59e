"""`mfupipe sql`: tables and units without a query, three forms of a result, several RUNs as one, and only reading."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from mfupipe.cli import main
from mfupipe.cli.adhoc import parse_parameters, split_words
from mfupipe.errors import UsageError
from mfupipe.paths import DEMO_CAPTURE

COUNT = "SELECT count(*) AS n FROM gpu_executions WHERE kind = $kind"


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "demo's run"
    assert run("ingest", str(DEMO_CAPTURE), "-o", str(path)) == 0
    return path


@pytest.fixture(scope="module")
def second_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "second"
    assert run("ingest", str(DEMO_CAPTURE), "-o", str(path)) == 0
    return path


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = run("sql", *arguments)
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


def test_without_a_query_tables_are_listed_with_columns_and_units(
    demo_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = answer(capsys, str(demo_run))
    assert "\noperators: " in shown
    assert any(line.startswith("busy_ns ") and "BIGINT" in line and "[ns]" in line for line in shown.splitlines())
    assert "_attributed" not in shown


def test_a_parameter_is_bound_and_never_pasted(demo_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(answer(capsys, str(demo_run), COUNT, "--param", "kind=kernel", "--json")) == [{"n": 174}]
    hostile = "kind=kernel' OR 1=1 --"
    assert json.loads(answer(capsys, str(demo_run), COUNT, "--param", hostile, "--json")) == [{"n": 0}]


def test_the_three_forms_hold_the_same(demo_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT 1.5::DOUBLE AS ratio, NULL::BIGINT AS unknown, 'a\nb,c' AS text"
    assert json.loads(answer(capsys, str(demo_run), query, "--json")) == [
        {"ratio": 1.5, "unknown": None, "text": "a\nb,c"}
    ]
    rows = list(csv.reader(io.StringIO(answer(capsys, str(demo_run), query, "--csv"))))
    assert rows == [["ratio", "unknown", "text"], ["1.5", "", "a\nb,c"]]
    lines = answer(capsys, str(demo_run), query).splitlines()
    assert lines[0].split() == ["ratio", "unknown", "text"] and lines[-1].split() == ["1.5", "NULL", "a", "b,c"]


def test_numbers_that_are_not_finite_are_null_in_json(demo_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(answer(capsys, str(demo_run), "SELECT 'nan'::DOUBLE AS x", "--json")) == [{"x": None}]


def test_text_of_a_trace_cannot_steer_the_terminal(demo_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = answer(capsys, str(demo_run), "SELECT chr(27) || '[31m' || chr(8238) || '[bold]x' AS name")
    assert "\x1b" not in shown and "\u202e" not in shown and "[bold]x" in shown


def test_a_query_comes_from_a_file_from_stdin_or_by_name(
    demo_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "two.sql"
    file.write_text("SELECT 2 AS two", encoding="utf-8")
    assert json.loads(answer(capsys, str(demo_run), str(file), "--json")) == [{"two": 2}]
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 3 AS three"))
    assert json.loads(answer(capsys, str(demo_run), "-", "--json")) == [{"three": 3}]
    assert len(json.loads(answer(capsys, str(demo_run), "report_headline", "--json"))) == 1


def test_several_runs_are_one_with_a_column_that_names_them(
    demo_run: Path, second_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT run, count(*) AS n FROM gpu_executions WHERE kind = 'kernel' GROUP BY run ORDER BY run"
    rows = json.loads(answer(capsys, str(demo_run), str(second_run), query, "--json"))
    assert rows == [{"run": str(path), "n": 174} for path in sorted((demo_run, second_run))]


def test_failing_sql_is_shown_with_the_words_of_the_engine(demo_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sql", str(demo_run), "SELECT buzy_ns FROM operators") == 2
    said = capsys.readouterr().err
    assert "SELECT buzy_ns FROM operators" in said and "busy_ns" in said and "Traceback" not in said


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE operators",
        "CREATE TABLE mine AS SELECT 1",
        "UPDATE traces SET workload = 'x'",
        "COPY (SELECT 1) TO 'out.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "ATTACH 'other.duckdb'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SELECT * FROM parameters",
    ],
)
def test_a_query_can_only_read_the_run(
    query: str, demo_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = (demo_run / "run.duckdb").read_bytes()
    assert run("sql", str(demo_run), query) == 2
    assert "the query failed" in capsys.readouterr().err
    assert (demo_run / "run.duckdb").read_bytes() == before and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "query", ["COPY (SELECT 1) TO 'out.csv'", "SELECT * FROM read_csv('/etc/passwd')", "DROP VIEW traces"]
)
def test_several_runs_can_only_be_read(
    query: str, demo_run: Path, second_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = (demo_run / "run.duckdb").read_bytes()
    run("sql", str(demo_run), str(second_run), query)
    assert (demo_run / "run.duckdb").read_bytes() == before and list(tmp_path.iterdir()) == []


def test_what_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sql", str(tmp_path)) == 2
    assert "is not a RUN" in capsys.readouterr().err


def test_two_forms_at_once_are_refused(demo_run: Path) -> None:
    assert run("sql", str(demo_run), "SELECT 1", "--csv", "--json") == 2


def test_parameters_have_the_type_they_look_like() -> None:
    assert parse_parameters(["a=1", "b=1.5", "c=x=y", "d="]) == {"a": 1, "b": 1.5, "c": "x=y", "d": ""}


@pytest.mark.parametrize("text", ["a", "=1", "1a=2"])
def test_a_parameter_without_a_name_or_value_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--param"):
        parse_parameters([text])


def test_a_word_that_is_no_run_before_the_query_is_refused(demo_run: Path) -> None:
    assert split_words((str(demo_run), "SELECT 1")) == ((demo_run,), "SELECT 1")
    with pytest.raises(UsageError, match="only the last word is a query"):
        split_words((str(demo_run), "nonsense", "SELECT 1"))


def test_a_parameter_that_is_not_given_is_named(demo_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sql", str(demo_run), COUNT) == 2
    said = capsys.readouterr().err
    assert "the query needs a value for $kind" in said and "--param kind=VALUE" in said and "Traceback" not in said


def test_a_parameter_that_the_query_does_not_take_is_named(demo_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sql", str(demo_run), COUNT, "--param", "kind=kernel", "--param", "knd=x") == 2
    said = capsys.readouterr().err
    assert "no parameter $knd" in said and "it takes $kind" in said


def test_a_default_in_a_header_stands_in_for_a_parameter(
    demo_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.sql"
    stated = "--   least BIGINT ns shortest to count; default 1000\n--   kind VARCHAR - kind of execution\n"
    rule = "WHERE kind = $kind AND end_ns - start_ns >= $least"
    file.write_text(f"-- params:\n{stated}SELECT count(*) AS n FROM gpu_executions {rule}", encoding="utf-8")
    asked = ("--json", "--param", "kind=kernel")
    (by_default,) = json.loads(answer(capsys, str(demo_run), str(file), *asked))
    (by_hand,) = json.loads(answer(capsys, str(demo_run), str(file), *asked, "--param", "least=0"))
    assert by_default["n"] < by_hand["n"] == 174
    assert run("sql", str(demo_run), str(file)) == 2
    assert "the query needs a value for $kind: kind of execution" in capsys.readouterr().err


def test_an_example_takes_a_parameter(demo_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(json.loads(answer(capsys, str(demo_run), "kernel_top", "--json"))) == 20
    assert len(json.loads(answer(capsys, str(demo_run), "kernel_top", "--param", "count=2", "--json"))) == 2


def test_a_parameter_of_another_type_is_refused(demo_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sql", str(demo_run), "kernel_top", "--param", "count=many") == 2
    assert "many" in capsys.readouterr().err


def test_a_query_that_mfupipe_ships_is_put_to_each_run_alone(
    demo_run: Path, second_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = json.loads(answer(capsys, str(demo_run), str(second_run), "kernel_top", "--param", "count=1", "--json"))
    assert [row["run"] for row in rows] == [str(demo_run), str(second_run)]
    assert [row["instances"] for row in rows] == [9, 9]


def test_sql_longer_than_a_file_name_is_sql(demo_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT " + " + ".join(["1"] * 300) + " AS n"
    assert json.loads(answer(capsys, str(demo_run), query, "--json")) == [{"n": 300}]
