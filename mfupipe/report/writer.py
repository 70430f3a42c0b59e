"""Write the report: every file beside its place first, then renamed, so that none is ever half there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import duckdb

from mfupipe.errors import EnvironmentProblem
from mfupipe.report import json as report_json
from mfupipe.report import markdown
from mfupipe.report.context import ReportContext, ReportFiles
from mfupipe.report.html import html_page
from mfupipe.report.page import page_of
from mfupipe.report.reader import read_tables

HTML_NAME, MARKDOWN_NAME, JSON_NAME = "report.html", "report.md", "report.json"


def write_report(connection: duckdb.DuckDBPyConnection, out_dir: Path, *, context: ReportContext) -> ReportFiles:
    """Write report.html, report.md, report.json and the figures into `out_dir`, made when absent.

    Raises EnvironmentProblem when the directory cannot be written, UnusableTrace when the database is not ours.
    """
    from mfupipe.report.pictures import FIGURE_NAMES, pictures_of  # noqa: PLC0415  matplotlib takes half a second

    tables = read_tables(connection)
    page, pictures = page_of(tables, context), pictures_of(tables, context)
    texts = {
        HTML_NAME: html_page(page, pictures),
        MARKDOWN_NAME: markdown.markdown_page(page, pictures),
        JSON_NAME: report_json.json_text(tables, context),
    }
    files = pictures | {name: text.encode("utf-8", "replace") for name, text in texts.items()}
    try:
        _publish(files, out_dir)
        _remove_stale(out_dir, FIGURE_NAMES, files)
    except OSError as error:
        raise EnvironmentProblem(
            f"cannot write the report into {out_dir} ({error.strerror})", "give a writable -o with free space"
        ) from error
    return ReportFiles(
        html=out_dir / HTML_NAME,
        markdown=out_dir / MARKDOWN_NAME,
        json=out_dir / JSON_NAME,
        figures=tuple(out_dir / name for name in pictures),
    )


def _publish(files: Mapping[str, bytes], out_dir: Path) -> None:
    """All files are complete on disk before the first is renamed; pictures go first, as the texts refer to them."""
    out_dir.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".report.", dir=out_dir))
    try:
        for name, content in files.items():
            (staging / name).write_bytes(content)
        for name in files:
            (staging / name).replace(out_dir / name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _remove_stale(out_dir: Path, figure_names: tuple[str, ...], files: Mapping[str, bytes]) -> None:
    """A figure of an earlier report that this one does not have would be taken for part of it."""
    for name in figure_names:
        for path in (out_dir / f"{name}.png", *out_dir.glob(f"{name}_[0-9]*.png")):
            if path.name not in files:
                path.unlink(missing_ok=True)
