"""The header of a query file: its contract, from which build order, comments and the data dictionary follow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mfupipe.errors import UsageError
from mfupipe.paths import QUERIES

LAYERS = ("1_staging", "2_attribution", "3_marts", "checks")
PARAMETRISED = ("4_reports", "examples")

_TITLE = re.compile(r"^-- (?P<name>\w+): (?P<text>.+)$")
_FIELD = re.compile(r"^-- (?P<key>grain|reads|stored): (?P<text>.+)$")
_COLUMN = re.compile(r"^--   (?P<name>\w+) (?P<type>(?:STRUCT\(.*?\)|[A-Z]+)(?:\[\])?) (?P<unit>\S+) (?P<text>.+)$")
_DEFAULT = re.compile(r"(?P<text>.+); default (?P<value>.+)")


@dataclass(frozen=True)
class Column:
    """One column of a query's result. unit: 'ns', 'B', 'FLOP/s', '%'..., '-' when it has none."""

    name: str
    type: str
    unit: str
    text: str


@dataclass(frozen=True)
class Parameter:
    """A value that a query takes, `$name` in its SQL. default: as text, None when it has to be given."""

    name: str
    type: str
    unit: str
    text: str
    default: str | None


@dataclass(frozen=True)
class Query:
    """One SQL file. stored: 'table' or 'view' in run.duckdb, 'scratch' while it is built."""

    name: str
    layer: str
    title: str
    grain: str
    reads: tuple[str, ...]
    params: tuple[Parameter, ...]
    stored: str
    columns: tuple[Column, ...]
    sql: str

    @property
    def is_private(self) -> bool:
        """True for a working table, which no user should build on."""
        return self.name.startswith("_")


def parse(path: Path) -> Query:
    """Read a query file. Raises UsageError when its header is not a contract."""
    text = path.read_text(encoding="utf-8")
    header = [line for line in text.splitlines() if line.startswith("--")]
    lines = [line.rstrip() for line in header]
    title = _TITLE.match(lines[0]) if lines else None
    if title is None or title["name"] != path.stem:
        raise UsageError(f"{path.name} does not start with '-- {path.stem}: what it holds'", "see CONTRIBUTING.md")
    fields = {match["key"]: match["text"] for line in lines if (match := _FIELD.match(line))}
    missing = {"grain", "reads"} - fields.keys()
    if missing:
        raise UsageError(f"{path.name} lacks {sorted(missing)} in its header", "see CONTRIBUTING.md")
    return Query(
        name=path.stem,
        layer=path.parent.name,
        title=_title_text(lines, title["text"]),
        grain=fields["grain"],
        reads=_list(fields["reads"]),
        params=parameters(text),
        stored=fields.get("stored", "scratch" if path.stem.startswith("_") else "table"),
        columns=tuple(_listed(lines, "columns")),
        sql=text,
    )


def _title_text(lines: list[str], first: str) -> str:
    rest: list[str] = []
    for line in lines[1:]:
        if _FIELD.match(line):
            break
        rest.append(line.removeprefix("--").strip())
    return " ".join([first, *rest])


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parameters(text: str) -> tuple[Parameter, ...]:
    """What the params: block of some SQL states; nothing when it has none."""
    lines = [line.rstrip() for line in text.splitlines() if line.startswith("--")]
    return tuple(_parameter(stated) for stated in _listed(lines, "params"))


def _parameter(stated: Column) -> Parameter:
    found = _DEFAULT.fullmatch(stated.text)
    text, default = (found["text"], found["value"]) if found else (stated.text, None)
    return Parameter(stated.name, stated.type, stated.unit, text, default)


def _listed(lines: list[str], key: str) -> list[Column]:
    """The lines `name TYPE unit text` of one block."""
    start = next((number for number, line in enumerate(lines) if line.startswith(f"-- {key}:")), len(lines))
    found = []
    for line in lines[start + 1 :]:
        match = _COLUMN.match(line)
        if match is None:
            break
        found.append(Column(match["name"], match["type"], match["unit"], match["text"]))
    return found


@cache
def queries(layer: str) -> tuple[Query, ...]:
    """All queries of one folder, by name."""
    return tuple(parse(path) for path in sorted((QUERIES / layer).glob("*.sql")))


@cache
def build_order() -> tuple[Query, ...]:
    """Queries of the warehouse, each after those that it reads. Raises UsageError on a circle."""
    waiting = {query.name: query for layer in LAYERS for query in queries(layer)}
    ordered: list[Query] = []
    while waiting:
        ready = [query for query in waiting.values() if not waiting.keys() & set(query.reads)]
        if not ready:
            raise UsageError(f"queries read each other in a circle: {sorted(waiting)}", "correct a reads: line")
        ordered += ready
        for query in ready:
            del waiting[query.name]
    return tuple(ordered)
