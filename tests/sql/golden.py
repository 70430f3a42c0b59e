"""Golden tests of tables: a trace, a query and its rows on one screen; all traces of a module are built as one RUN."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    found: list[Rows] = field(default_factory=list)

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
            assert self.found[index] == self.goldens[index].expected

        return test_golden

    def _build(self) -> list[Rows]:
        traces = []
        for golden in self.goldens:
            trace = Trace()
            golden.make(trace)
            traces.append(trace)
        with tempfile.TemporaryDirectory() as directory:
            run_dir = build_run(Path(directory) / "run", traces)
            with warehouse.open_run(run_dir) as connection:
                return [
                    connection.execute(golden.sql, {"trace": trace_id}).fetchall()
                    for trace_id, golden in enumerate(self.goldens)
                ]
