"""Golden tests of tables: a trace, a query and its rows on one screen; all traces of a module are built as one RUN."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest

from mfupipe import warehouse
from tests.trace_builder import Trace, build_run

Rows = list[tuple[Any, ...]]
Make = Callable[[Trace], None]


@dataclass(frozen=True)
class Golden:
    """A trace to make, a query that names $trace, and the rows it must give."""

    make: Make
    sql: str
    expected: Rows


@dataclass
class Goldens:
    """The goldens of one test module."""

    goldens: list[Golden] = field(default_factory=list)
    found: list[Rows | duckdb.Error] = field(default_factory=list)

    def rows(self, sql: str, *expected: tuple[Any, ...]) -> Callable[[Make], Make]:
        """Decorate a function that fills a trace: its name states the fact that query and rows show."""

        def add(make: Make) -> Make:
            self.goldens.append(Golden(make, sql, list(expected)))
            return make

        return add

    def test(self) -> Callable[[int], None]:
        """A test with one parameter set per golden, named like its function."""

        @pytest.mark.parametrize(
            "index", range(len(self.goldens)), ids=[golden.make.__name__ for golden in self.goldens]
        )
        def test_golden(index: int) -> None:
            if not self.found:
                self.found = self._build()
            found = self.found[index]
            if isinstance(found, duckdb.Error):
                raise found
            assert found == self.goldens[index].expected

        return test_golden

    def _build(self) -> list[Rows | duckdb.Error]:
        traces = []
        for golden in self.goldens:
            trace = Trace()
            golden.make(trace)
            traces.append(trace)
        with tempfile.TemporaryDirectory() as directory:
            run_dir = build_run(Path(directory) / "run", traces)
            with warehouse.open_run(run_dir) as connection:
                return [_ask(connection, golden.sql, trace_id) for trace_id, golden in enumerate(self.goldens)]


def _ask(connection: duckdb.DuckDBPyConnection, sql: str, trace_id: int) -> Rows | duckdb.Error:
    """Rows, or why there are none: one wrong query is the failure of its own test only."""
    try:
        return connection.execute(sql, {"trace": trace_id}).fetchall()
    except duckdb.Error as error:
        return error
