"""Ingest writes the canonical raw tables, all of them, for every capture."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mfupipe.ingest import write_raw
from tests.raw_schemas import RAW_SCHEMAS
from tests.runs import CAPTURES, CASE_DIRECTORIES, CASES

SOURCES = CAPTURES | {name: CASE_DIRECTORIES[name] / "trace.sqlite" for name in CASES}


@pytest.mark.parametrize("name", SOURCES)
def test_every_table_is_written_with_the_columns_and_types_of_the_contract(name: str, tmp_path: Path) -> None:
    write_raw(SOURCES[name], tmp_path / "trace_id=0", trace_id=0)
    files = {path.stem: path for path in (tmp_path / "trace_id=0").glob("*.parquet")}
    assert set(files) == set(RAW_SCHEMAS)
    for table, schema in RAW_SCHEMAS.items():
        found = pq.read_schema(files[table])
        assert {field.name: field.type for field in found} == {field.name: field.type for field in schema}, table
    assert pq.read_metadata(files["trace"]).num_rows == 1
