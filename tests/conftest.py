"""Real captures and hand-made cases, ingested and built once per session."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

pytest.register_assert_rewrite("tests.sql.golden")

if TYPE_CHECKING:
    from tests.runs import CaseRun, RealRun


@pytest.fixture(scope="session")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], RealRun]]:
    """Name of a real capture -> its RUN beside what the oracle says of it; each is built once."""
    from tests.runs import build_real

    built: dict[str, RealRun] = {}
    with ExitStack() as opened:

        def run(name: str) -> RealRun:
            if name not in built:
                built[name] = build_real(name, tmp_path_factory.mktemp("real"), opened)
            return built[name]

        yield run


@pytest.fixture(scope="session")
def case_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], CaseRun]]:
    """Name of a readable case -> its trace in one RUN that holds them all."""
    from tests.runs import CASES, CaseRun, build_cases

    with ExitStack() as opened:
        connection = build_cases(tmp_path_factory.mktemp("cases"), opened)
        yield lambda name: CaseRun(name, connection, CASES.index(name))
