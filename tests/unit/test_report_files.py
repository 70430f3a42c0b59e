"""The written report: complete, self-contained, escaped, and never half there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pytest
from markdown_it import MarkdownIt

from mfupipe import phrases, report
from mfupipe.errors import EnvironmentProblem
from mfupipe.paths import QUERIES
from mfupipe.report import grids, markdown
from mfupipe.report.context import Condition, ReportContext
from mfupipe.report.reader import TABLE_NAMES
from mfupipe.units import plain
from tests.unit import report_database as fixtures

Make = Callable[[], duckdb.DuckDBPyConnection]
CONTEXT = ReportContext("layer <b>", "0.1.0", "mfupipe profile layer -o run", (Condition("git commit", "1f3c9e2"),))
VOID = {"meta", "img", "br", "wbr"}
EVERY = [fixtures.training, fixtures.serving, fixtures.without_steps, fixtures.unknown_gpu, fixtures.without_kernels]


class Reader(HTMLParser):
    """Tags, references and visible text of a page; fails on tags that do not nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.ids: set[str] = set()
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]
        self.ids |= {value or "" for name, value in attrs if name == "id"}
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@dataclass(frozen=True)
class Written:
    """One report as a reader meets it."""

    folder: Path
    page: Reader
    markdown: str
    document: dict[str, Any]

    @property
    def pictures(self) -> set[str]:
        return {path.name for path in self.folder.glob("*.png")}


Write = Callable[[Make], Written]


def write(make: Make, out_dir: Path) -> None:
    report.write_report(make(), out_dir, context=CONTEXT)


def markdown_of(connection: duckdb.DuckDBPyConnection, out_dir: Path) -> str:
    return report.write_report(connection, out_dir, context=CONTEXT).markdown.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Write:
    @cache
    def write(make: Make) -> Written:
        files = report.write_report(make(), tmp_path_factory.mktemp("report"), context=CONTEXT)
        page = Reader(files.html.read_text(encoding="utf-8"))
        text = files.markdown.read_text(encoding="utf-8")
        return Written(files.html.parent, page, text, json.loads(files.json.read_bytes()))

    return write


@pytest.mark.parametrize("make", EVERY)
def test_page_is_one_file_without_script_or_request(make: Make, written: Write) -> None:
    page = written(make).page
    assert "script" not in page.tags and "link" not in page.tags
    assert all(re.match(r"#|data:image/png;base64,", reference) for reference in page.references)
    assert {reference[1:] for reference in page.references if reference.startswith("#")} <= page.ids
    assert "url(" not in page.text.split("The SQL behind")[0]


@pytest.mark.parametrize("make", EVERY)
def test_every_table_of_the_page_shows_its_sql(make: Make, written: Write) -> None:
    page = written(make).page
    assert page.text.count("-- grain:") == 11


def test_first_screen_holds_finding_basis_numbers_ledger_and_operators_in_this_order(written: Write) -> None:
    page = written(fixtures.training).page
    body = page.text[page.text.rindex("layer <b>", 0, page.text.index("Step time")) :]
    wanted = [
        "33.3 ms per step, MFU 65.2 %: 15.4 points lost to memory-bound operators, 9.9 to kernel inefficiency",
        "bf16 dense datasheet peak 989 TFLOP/s, bandwidth 4.80 TB/s",
        "n = 2 steps, spread 0.8 %",
        "steps by rule dialect: step N step 0..step 2",
        "Step time",
        "HFU 66.3 %",
        "of busy time; 96.8 % has a cost",
        "model FLOP at peak",
        "the sum is 100.0",
        "aten::_scaled_dot_product_cudnn_attention",
        "SOL above 100: data in L2, or a wrong count",
        "GPU idle 5.8 % of one step; 72.2 % of that waiting for a launch during cudaLaunchKernel",
        "profile more steps: --steps 20",
        "1f3c9e2",
        "-- report_headline",
    ]
    places = [body.find(part) for part in wanted]
    assert -1 not in places and places == sorted(places)


def test_bytes_bind_means_mbu_leads_and_phases_stay_apart(written: Write) -> None:
    shown = written(fixtures.serving)
    page, text, document = shown.page, shown.markdown, shown.document
    assert "9.80 ms per step, MBU 58.4 % (MFU 3.1 %): 14.0 points lost to launch gaps" in page.text
    assert "phase prefill" in page.text and "51.0 ms per step, MFU 65.2 %" in text
    assert shown.pictures == {
        f"{name}{suffix}.png" for name in ("ledger", "operators", "roofline", "steps") for suffix in ("", "_2", "_3")
    }
    assert [view["phase"] for view in document["views"]] == ["decode", "prefill", ""]


def test_without_steps_the_page_shows_operators_and_the_window_but_no_mfu(written: Write) -> None:
    shown = written(fixtures.without_steps)
    page, text = shown.page, shown.markdown
    assert "No step was found, so there is no MFU" in page.text and "step rule" not in text
    assert "Points of the busy window" in page.text and "aten::addmm" in page.text
    assert "MFU" not in text.splitlines()[1]
    assert shown.pictures == {"ledger.png", "operators.png", "roofline.png"}


def test_a_number_that_missing_costs_could_change_is_called_a_lower_bound(tmp_path: Path) -> None:
    connection = fixtures.training()
    connection.execute("UPDATE run_summary SET costed_pct = 88.0")
    assert report.headline(connection)[0].startswith("33.3 ms per step, MFU at least 65.2 %: 15.4 points lost")
    assert "Only 88.0 % of the busy time has a cost" in markdown_of(connection, tmp_path)
    connection.execute("UPDATE run_summary SET cost_source = 'user'")
    assert report.headline(connection)[0].startswith("33.3 ms per step, MFU 65.2 %")
    connection.execute("UPDATE run_summary SET mfu_pct = 0, cost_source = NULL")
    assert report.headline(connection)[0].startswith("33.3 ms per step, MFU unknown: no FLOP known; 15.4 points lost")


def test_time_without_a_cost_is_not_called_lost() -> None:
    connection = fixtures.training()
    connection.execute("UPDATE ledger SET ns = ns * 10 WHERE component = 'no_cost_model'")
    assert "points in operators without cost, " in report.headline(connection)[0]
    assert report.headline(connection)[0].endswith(" lost to memory-bound operators")


def test_unknown_gpu_shows_rates_and_no_percentage_of_a_peak(written: Write) -> None:
    shown = written(fixtures.unknown_gpu)
    page, text = shown.page, shown.markdown
    assert "500 TFLOP/s achieved; no peak is known for NVIDIA GB999 Prototype" in page.text
    assert "no SOL: no peak known for this GPU and dtype" in page.text
    assert not re.search(r"(MFU|MBU|HFU|SOL)[^.|]{0,12}\d+\.\d %", page.text.split("The SQL behind")[0] + text)


def test_without_kernels_the_page_says_what_is_missing(written: Write) -> None:
    shown = written(fixtures.without_kernels)
    page, text = shown.page, shown.markdown
    assert "No GPU work in this trace" in page.text and "capture with --trace=cuda,nvtx" in page.text
    assert not shown.pictures and "no_kernel_data" in text.replace("\\", "")


def test_errors_in_the_data_stand_above_the_headline_with_what_to_do(written: Write, tmp_path: Path) -> None:
    connection = fixtures.training()
    fixtures.insert(connection, "warnings", trace_id=0, code="events_dropped", severity="error", count=3,
                    message="nsys dropped <3> events", hint="capture fewer steps")  # fmt: skip
    files = report.write_report(connection, tmp_path, context=CONTEXT)
    page = Reader(files.html.read_text(encoding="utf-8")).text
    shown = page[page.index("1 error, 1 warning") :]
    assert shown.index("nsys dropped <3> events") < shown.index("capture fewer steps") < shown.index("33.3 ms per step")
    lines = files.markdown.read_text(encoding="utf-8").splitlines()
    assert lines[1].startswith("**Error: nsys dropped &lt;3&gt; events** capture fewer steps<br>**33.3 ms per step")
    assert "Error: " not in written(fixtures.training).markdown


def test_sections_and_columns_that_would_say_nothing_are_left_out(written: Write) -> None:
    empty, unknown = written(fixtures.without_kernels).page.text, written(fixtures.unknown_gpu)
    for head in ("What has no operator or no cost", "Ceilings", "Kernels", "Idle time"):
        assert head not in empty.split("The SQL behind")[0]
    tables = unknown.markdown.split("## Warnings")[0]
    assert " TFLOP/s |" in tables and "SOL %" not in tables
    assert "recoverable ms" not in tables


def test_titles_state_where_the_time_is_when_nothing_can_be_rated(written: Write) -> None:
    text = written(fixtures.unknown_gpu).page.text
    assert "aten::mm takes 27.0 ms of one step, 100.0 % of the operators' time; no peak is known to rate any" in text
    connection = fixtures.training()
    connection.execute("UPDATE operators SET costed_busy_ns = costed_busy_ns / 100, recoverable_ns = 5")
    lines = report.headline(connection)
    assert not any("recoverable" in line for line in lines)


def test_shapes_are_written_as_products() -> None:
    assert grids._shapes("[[8, 32, 2048, 128], [8, 32, 2048, 128], [], []]") == "2 of 8x32x2048x128"
    assert grids._shapes("[[16384, 4096], [4096], []]") == "16384x4096, 4096"
    assert grids._shapes("[[8], <b>]") == "[[8], <b>]"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("step_number", "steps by range names step0..step2"),
        ("none", "no step found"),
        ("new", "steps by rule new step0..step2"),
    ],
)
def test_a_step_rule_reads_as_words(rule: str, words: str) -> None:
    assert phrases.step_rule(rule, "step0", "step2") == words


def test_every_step_rule_of_the_queries_has_words() -> None:
    marks = (QUERIES / "2_attribution" / "_step_messages.sql").read_text(encoding="utf-8")
    named = re.search(r"--   rule VARCHAR - (.*)", marks)
    assert named and set(re.split(r", | or ", named[1])) | {"repetition"} == set(phrases.STEP_RULES)


def test_hostile_names_arrive_as_text(written: Write) -> None:
    page = written(fixtures.serving).page
    assert "<script>alert(1)</script>" in page.text and "pipe | in name" in page.text
    assert "\x1b" not in page.text and "\u202e" not in page.text and "\x00" not in page.text


@pytest.mark.parametrize("make", EVERY)
def test_markdown_tables_keep_their_columns_and_hold_no_markup_of_a_name(make: Make, written: Write) -> None:
    shown = written(make)
    text = shown.markdown
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
    width, cells = 0, 0
    for token in tokens:
        if token.type == "thead_open":
            width = 0
        width += token.type == "th_open"
        cells = 0 if token.type == "tr_open" else cells + (token.type in ("th_open", "td_open"))
        assert token.type != "tr_close" or cells == width
    inline = [child for token in tokens for child in token.children or []]
    tags = {child.content for child in inline if child.type == "html_inline"}
    assert tags <= {"<code>", "</code>", "<br>", "<span>", "</span>"}
    assert not any(child.type in ("link_open", "em_open") for child in inline)
    images = {str(child.attrs["src"]) for child in inline if child.type == "image"}
    assert images == shown.pictures
    headings = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    assert "heading" not in headings and len(text) < markdown.LENGTH_LIMIT


@pytest.mark.parametrize(
    "name", [*fixtures.HOSTILE, "`", "\\|", "a\\", " b ", "``x``", "&lt;", "www.a.b @c $1$ https://d"]
)
def test_a_name_survives_a_markdown_table_cell(name: str) -> None:
    shown = plain(name)
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    for escaped in (markdown.code(shown), markdown.text(shown)):
        rendered = Reader(parser.render(f"| a | b |\n| --- | --- |\n| {escaped} | end |\n"))
        assert rendered.text.replace("\u200c", "").split() == ["a", "b", *shown.split(), "end"]
        assert "script" not in rendered.tags and "a" not in rendered.tags


@pytest.mark.parametrize("make", EVERY)
def test_markdown_begins_with_a_marker_and_twelve_lines_that_say_it_all(make: Make) -> None:
    lines = report.markdown_summary(make(), CONTEXT).splitlines()
    assert lines[0] == markdown.MARKER and len(lines) <= 12
    assert lines[1].startswith("**") and lines[-1].startswith("Data: ")


def test_markdown_beyond_what_github_takes_is_cut_at_a_block() -> None:
    text = markdown._within_limit(["x" * 40_000, "y" * 40_000, "z"])
    assert (
        text.startswith("xxx")
        and "yyy" not in text
        and "rest is in report.html" in text
        and len(text) < markdown.LENGTH_LIMIT
    )


def test_json_holds_every_table_with_units_and_raw_values(written: Write) -> None:
    document = written(fixtures.training).document
    tables = document["tables"]
    assert set(tables) == set(TABLE_NAMES)
    operators = tables["operators"]
    names = [column["name"] for column in operators["columns"]]
    assert {"name": "exclusive_ns", "type": "DOUBLE", "unit": "ns", "meaning": "GPU time, overlap shared"} in operators[
        "columns"
    ]
    row = dict(zip(names, operators["rows"][0], strict=True))
    assert row["exclusive_ns"] == 5.1e6 and row["bound"] == "compute"
    unknown = dict(zip(names, operators["rows"][6], strict=True))
    assert unknown["sol_pct"] is None


def test_terminal_headline_is_plain_text_with_basis_and_where_to_look() -> None:
    lines = report.headline(fixtures.training())
    assert lines[0].startswith("33.3 ms per step, MFU 65.2 %")
    assert "NVIDIA H200" in lines[1] and any("look at aten::_scaled" in line for line in lines)
    assert lines[-1] == "  data: 1 warning: few_steps"
    hostile = "\n".join(report.headline(fixtures.serving()))
    assert "\x1b" not in hostile and "\u202e" not in hostile


def test_gaps_are_no_finding_where_tracing_lengthened_the_step() -> None:
    database = fixtures.serving()
    assert "launch gaps" in report.headline(database)[0]
    database.execute("UPDATE run_summary SET profiler_overhead_pct = 189")
    assert "gaps" not in report.headline(database)[0]


def test_a_failed_write_leaves_the_earlier_report_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(fixtures.unknown_gpu, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    original = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if path.name == "report.json":
            raise OSError(28, "No space left on device")
        return original(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(EnvironmentProblem, match="No space left"):
        write(fixtures.without_steps, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_figures_of_an_earlier_report_do_not_stay(tmp_path: Path) -> None:
    write(fixtures.serving, tmp_path)
    (tmp_path / "mine.png").write_bytes(b"")
    write(fixtures.without_steps, tmp_path)
    assert {path.name for path in tmp_path.glob("*.png")} == {"ledger.png", "operators.png", "roofline.png", "mine.png"}


def test_a_place_that_is_a_file_is_an_environment_problem(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(EnvironmentProblem, match="cannot write the report"):
        write(fixtures.training, tmp_path / "taken")


def test_same_run_gives_the_same_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(fixtures.training, tmp_path / name)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two


def test_headline_needs_no_matplotlib() -> None:
    code = "import sys, mfupipe.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_annotated_step_is_not_quoted_with_its_cost() -> None:
    assert (
        phrases.step_rule("mfupipe", "step|index=0|flop=1e12", "step|index=9|flop=1e12")
        == phrases.STEP_RULES["mfupipe"]
    )
    assert phrases.step_rule("step_number", "step0", "step9") == "steps by range names step0..step9"
