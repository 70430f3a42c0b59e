"""Commands on real captures and on damaged ones: what is written, what is said, and how they end."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from mfupipe.cli import main
from mfupipe.paths import DEMO_CAPTURE
from mfupipe.run import read_manifest

CASES = Path(__file__).parents[1] / "cases"
NODE_GRAPH = Path(__file__).parents[1] / "golden_traces" / "h200_cuda_graph_node.sqlite.gz"


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "config"))


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "demo-run"
    assert run("ingest", str(DEMO_CAPTURE), "-o", str(path), "--workload", "layer", "--variant", "bf16") == 0
    return path


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def names(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}


def test_demo_writes_the_page_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("demo") == 0
    said = capsys.readouterr().out
    assert "MFU 65." in said and "written: mfupipe-demo/report.html" in said
    assert {"report.html", "report.md", "report.json"} <= names(tmp_path / "mfupipe-demo")
    assert names(tmp_path) == {"mfupipe-demo"}


def test_demo_never_writes_over_anything(tmp_path: Path) -> None:
    assert run("demo", "-o", "out") == 0
    before = (tmp_path / "out" / "report.html").stat().st_mtime_ns
    assert run("demo", "-o", "out") == 2
    assert (tmp_path / "out" / "report.html").stat().st_mtime_ns == before


def test_ingest_makes_a_run_and_ends_with_the_headline_and_the_next_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("ingest", str(DEMO_CAPTURE), "-o", "run", "--workload", "layer", "--variant", "bf16") == 0
    said = capsys.readouterr()
    assert said.out.startswith("33.3 ms per step, MFU 65.2 %: ") and "n = 2 steps" in said.out
    assert said.out.endswith("next: mfupipe report run\n")
    assert "reading h200_transformer" in said.err
    assert {"manifest.json", "raw", "run.duckdb"} == names(tmp_path / "run")
    (entry,) = read_manifest(tmp_path / "run").traces
    assert (entry.workload, entry.variant, entry.source_file) == ("layer", "bf16", DEMO_CAPTURE.name)


def test_several_traces_become_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ingest", str(DEMO_CAPTURE), str(NODE_GRAPH), "-o", "run") == 0
    assert names(tmp_path / "run" / "raw") == {"trace_id=0", "trace_id=1"}
    assert [entry.trace_id for entry in read_manifest(tmp_path / "run").traces] == [0, 1]


@pytest.mark.parametrize("command", ["ingest", "report"])
@pytest.mark.parametrize(("case", "words"), [("lfs_pointer", "Git LFS"), ("truncated_file", "damaged")])
def test_an_unusable_trace_exits_with_5_and_leaves_nothing(
    command: str, case: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, str(CASES / case / "trace.sqlite"), "-o", "out") == 5
    said = capsys.readouterr()
    assert words in said.err and "Traceback" not in said.err
    assert said.out == "" and names(tmp_path) == set()


def test_one_unusable_trace_among_several_leaves_nothing(tmp_path: Path) -> None:
    assert run("ingest", str(DEMO_CAPTURE), str(CASES / "truncated_file" / "trace.sqlite"), "-o", "run") == 5
    assert names(tmp_path) == set()


def test_a_run_is_never_written_over(demo_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ingest", str(DEMO_CAPTURE), "-o", str(demo_run)) == 2
    assert "never overwritten" in capsys.readouterr().err


def test_a_trace_without_gpu_work_gets_its_page_and_exits_with_5(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("report", str(CASES / "no_kernel_table" / "trace.sqlite"), "-o", "out") == 5
    assert "no_kernel_data" in capsys.readouterr().err
    assert "report.html" in names(tmp_path / "out")


def test_report_of_a_trace_leaves_only_the_report(tmp_path: Path) -> None:
    shutil.copy(DEMO_CAPTURE, "layer.sqlite.gz")
    assert run("report", "layer.sqlite.gz") == 0
    assert names(tmp_path) == {"layer.sqlite.gz", "layer-report"}


def test_a_newer_report_takes_the_place_of_an_older_one(demo_run: Path, tmp_path: Path) -> None:
    assert run("report", str(demo_run), "-o", "out") == 0
    (tmp_path / "out" / "report.md").write_text("old")
    assert run("report", str(demo_run), "-o", "out") == 0
    assert (tmp_path / "out" / "report.md").read_text() != "old"
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert run("report", str(demo_run), "-o", "out") == 2
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_a_peak_given_by_hand_changes_the_mfu_of_the_report_and_not_the_run(
    demo_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (demo_run / "run.duckdb").stat().st_mtime_ns
    assert run("report", str(demo_run), "-o", "out", "--peak", f"bf16={2 * 989.4e12}") == 0
    assert "MFU 32." in capsys.readouterr().out
    assert (demo_run / "run.duckdb").stat().st_mtime_ns == before


def test_a_stated_step_flop_is_the_numerator_of_mfu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report", str(DEMO_CAPTURE), "-o", "out", "--step-flop", "1e12") == 0
    # 1e12 FLOP in 33.26 ms at 989.4e12 FLOP/s
    assert "MFU 3.0 %" in capsys.readouterr().out


def test_a_step_range_that_matches_nothing_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report", str(DEMO_CAPTURE), "-o", "out", "--step-range", "no such step") == 0
    said = capsys.readouterr()
    assert "step_range_unmatched" in said.err and "no such step" in said.err


def test_a_gzip_of_something_else_is_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with gzip.open("noise.sqlite.gz", "wb") as stream:
        stream.write(b"not a database" * 100)
    assert run("ingest", "noise.sqlite.gz", "-o", "run") == 5
    assert names(tmp_path) == {"noise.sqlite.gz"}


def test_the_report_in_json_is_json(tmp_path: Path) -> None:
    assert run("demo", "-o", "out") == 0
    assert isinstance(json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8")), dict)
