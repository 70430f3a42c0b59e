"""What a report needs beside the database, and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Condition:
    """One fact about how the run was made, such as ('git commit', '1f3c9e2') or ('torch', '2.11.0')."""

    name: str
    value: str


@dataclass(frozen=True)
class ReportContext:
    """Facts that only the caller knows; whatever is None or empty is left out of the page.

    run_name: heading and footer of figures. command: how to make this run again. conditions: in the order to show.
    """

    run_name: str
    mfupipe_version: str
    command: str | None = None
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class ReportFiles:
    """Paths that were written; figures only where there was something to draw."""

    html: Path
    markdown: Path
    json: Path
    figures: tuple[Path, ...]
