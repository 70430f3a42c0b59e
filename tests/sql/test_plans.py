"""Joins of the build are planned as joins: one that compares every row with every row hangs on a real capture."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from mfupipe import ingest, warehouse
from mfupipe.headers import Query, build_order
from mfupipe.paths import DEMO_CAPTURE
from mfupipe.run import BuildOptions, Manifest, TraceEntry, write_manifest

# planned for a condition that no hash or order can serve, whatever the sizes; small inputs may be looped over anyway
QUADRATIC = re.compile(r"BLOCKWISE_NL_JOIN")
SMALL = {
    "_device_rates": "GPUs of a machine with the peaks of their name",
    "_step_messages": "messages with the one row of options",
}


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    run_dir: Path = tmp_path_factory.mktemp("plans") / "run"
    run_dir.mkdir()
    ingest.write_raw(DEMO_CAPTURE, run_dir / "raw" / "trace_id=0", trace_id=0)
    write_manifest(run_dir, Manifest(traces=(TraceEntry(0, "made"),)))
    found: dict[str, str] = {}
    original = warehouse._materialise

    def explain_first(connection: duckdb.DuckDBPyConnection, query: Query) -> None:
        found[query.name] = str(connection.execute(f"EXPLAIN {query.sql}").fetchall()[0][1])
        original(connection, query)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warehouse, "_materialise", explain_first)
        warehouse.build(run_dir, BuildOptions())
    return found


@pytest.mark.parametrize("name", [query.name for query in build_order()])
def test_no_join_compares_every_row_with_every_row(name: str, plans: dict[str, str]) -> None:
    if name not in SMALL:
        assert QUADRATIC.findall(plans[name]) == []
