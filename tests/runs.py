"""RUNs made from the captures and cases of the tests, and how to ask them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb

from mfupipe import warehouse
from mfupipe.ingest import write_raw
from mfupipe.run import RAW_NAME, BuildOptions, Manifest, TraceEntry, write_manifest
from tests.oracle.attribution import Attributed, attribute
from tests.oracle.source import Export, read_export, unpack

TESTS = Path(__file__).resolve().parent
CAPTURES = {path.name.removesuffix(".sqlite.gz"): path for path in sorted(TESTS.rglob("golden_traces/**/*.sqlite.gz"))}
CASE_DIRECTORIES = {path.parent.name: path.parent for path in sorted(TESTS.glob("cases/*/expected.json"))}
EXPECTED: dict[str, dict[str, Any]] = {
    name: json.loads((directory / "expected.json").read_text(encoding="utf-8"))
    for name, directory in CASE_DIRECTORIES.items()
}
CASES = [name for name, expected in EXPECTED.items() if not expected.get("error")]
"""Cases that can be read; the others must be refused."""


@dataclass(frozen=True)
class RealRun:
    """A real capture as a RUN, and as the oracle reads it."""

    name: str
    run_dir: Path
    connection: duckdb.DuckDBPyConnection
    export: Export
    trace_id: int = 0

    @cached_property
    def attributed(self) -> list[Attributed]:
        """What the oracle says of each execution."""
        return attribute(self.export)

    def rows(self, sql: str, **parameters: object) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        return self.connection.execute(sql, parameters or None).fetchall()

    def value(self, sql: str, **parameters: object) -> Any:
        """The only value of the only row."""
        ((value,),) = self.rows(sql, **parameters)
        return value


@dataclass(frozen=True)
class CaseRun:
    """One hand-made trace of the RUN that holds them all; `$trace` in its queries is its trace_id."""

    name: str
    connection: duckdb.DuckDBPyConnection
    trace_id: int

    @property
    def expected(self) -> dict[str, Any]:
        """Contents of expected.json."""
        return EXPECTED[self.name]

    def rows(self, sql: str, **parameters: object) -> list[tuple[Any, ...]]:
        """Rows of a query that names $trace."""
        return self.connection.execute(sql, {"trace": self.trace_id, **parameters}).fetchall()

    def value(self, sql: str, **parameters: object) -> Any:
        """The only value of the only row."""
        ((value,),) = self.rows(sql, **parameters)
        return value


def ingest_and_build(sources: list[Path], run_dir: Path, options: BuildOptions | None = None) -> Path:
    """A RUN of these traces: trace 0, 1, ... in order."""
    chosen = options or BuildOptions()
    entries = []
    for trace_id, source in enumerate(sources):
        write_raw(source, run_dir / RAW_NAME / f"trace_id={trace_id}", trace_id=trace_id)
        entries.append(TraceEntry(trace_id=trace_id, source_file=source.name))
    write_manifest(run_dir, Manifest(traces=tuple(entries), options=chosen))
    warehouse.build(run_dir, chosen)
    return run_dir


def build_real(name: str, directory: Path, opened: ExitStack) -> RealRun:
    """RUN of one capture; its connection lives as long as `opened`."""
    run_dir = ingest_and_build([CAPTURES[name]], directory / "run")
    connection = opened.enter_context(warehouse.open_run(run_dir))
    return RealRun(name, run_dir, connection, read_export(unpack(CAPTURES[name], directory)))


def build_cases(directory: Path, opened: ExitStack) -> duckdb.DuckDBPyConnection:
    """RUN of all readable cases."""
    run_dir = ingest_and_build([CASE_DIRECTORIES[name] / "trace.sqlite" for name in CASES], directory / "run")
    return opened.enter_context(warehouse.open_run(run_dir))
