"""Write queries/README.md, the data dictionary, out of the headers of the queries; `--check` only compares."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from mfupipe.headers import LAYERS, PARAMETRISED, Column, Parameter, Query, queries
from mfupipe.paths import QUERIES

TARGET = QUERIES / "README.md"
INTRODUCTION = """\
# Data dictionary

Generated from the headers of the queries by `make docs`; do not edit.

A RUN's `run.duckdb` holds these tables, one SQL file each; the same words are comments on its columns, so any DuckDB
client shows them, and so does `mfupipe sql RUN`. Measured times are integer nanoseconds on the clock of the trace, in
half-open intervals; derived times are DOUBLE nanoseconds. Percentages run from 0 to 100. NULL means unknown. Tables
whose names start with `_` are working tables and may change.
"""
WORDS = {
    "1_staging": "what the capture says, renamed and cast",
    "2_attribution": "which call, range, operator and step each execution belongs to",
    "3_marts": "the metrics",
    "checks": "what is wrong or unusual in the data; each row becomes a warning",
    "4_reports": "what the report shows",
    "examples": "questions that come up; `mfupipe sql RUN NAME`",
}


def dictionary() -> str:
    """The whole text."""
    return "\n".join([INTRODUCTION, *(line for layer in (*LAYERS, *PARAMETRISED) for line in section(layer))])


def section(layer: str) -> Iterator[str]:
    """One folder: its public tables with their columns, then the names of its working tables."""
    found = queries(layer)
    if not found:
        return
    yield f"## {layer}: {WORDS[layer]}\n"
    for query in found:
        if not query.is_private:
            yield from entry(query)
    private = [query for query in found if query.is_private]
    if private:
        yield "Working tables:\n"
        yield from (f"- `{query.name}`: {escaped(query.title)}" for query in private)
        yield ""


def entry(query: Query) -> Iterator[str]:
    """One query."""
    yield f"### {query.name}\n"
    yield f"{sentence(escaped(query.title))} Grain: {escaped(query.grain)}. Reads {names(query.reads)}.\n"
    if query.params:
        yield "| parameter | type | unit | meaning | default |\n|---|---|---|---|---|"
        yield from map(parameter, query.params)
        yield ""
    if query.columns:
        yield "| column | type | unit | meaning |\n|---|---|---|---|"
        yield from map(row, query.columns)
        yield ""


def row(column: Column) -> str:
    """One column."""
    return f"| `{column.name}` | {column.type} | {column.unit.removeprefix('-')} | {escaped(column.text)} |"


def parameter(stated: Parameter) -> str:
    """One parameter."""
    default = "" if stated.default is None else f"`{stated.default}`"
    unit = stated.unit.removeprefix("-")
    return f"| `${stated.name}` | {stated.type} | {unit} | {escaped(stated.text)} | {default} |"


def names(items: Iterable[str]) -> str:
    """`a`, `b`."""
    return ", ".join(f"`{item}`" for item in items) or "nothing"


def sentence(text: str) -> str:
    """With a capital and one full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def escaped(text: str) -> str:
    """For a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def main() -> None:
    """Write, or with --check exit with 1 when the file is stale."""
    text = dictionary()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text, encoding="utf-8")
    elif not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != text:
        sys.exit("queries/README.md is stale: run make docs")


if __name__ == "__main__":
    main()
