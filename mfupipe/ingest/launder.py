"""The slow way: read a table row by row, replace what cannot be, and give DuckDB a clean copy of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mfupipe.ingest import cells
from mfupipe.ingest.raw_tables import Kind
from mfupipe.ingest.sources import Relation, Row, Source, parquet_relation

# Replaced values per row: text that was not UTF-8, and values of the wrong type.
UNDECODABLE = "_undecodable"
BAD = "_bad"


def launder(source: Source, table: str, columns: Sequence[tuple[str, Kind]], scratch: Path) -> Relation:
    """Copy the columns of a table to scratch/TABLE.parquet, in batches, and return that copy.

    Integers that are none become NULL, bytes that are not UTF-8 become U+FFFD; each row tells how many of each it had.
    Raises what Source.batches raises.
    """
    kinds = [kind for _, kind in columns]
    schema = _schema(columns)
    path = scratch / f"{table}.parquet"
    with pq.ParquetWriter(path, schema) as writer:
        for rows in source.batches(table, [name for name, _ in columns]):
            writer.write_table(_clean(rows, kinds, schema))
    return parquet_relation(path, {name: kind.sql_type for name, kind in columns})


def _schema(columns: Sequence[tuple[str, Kind]]) -> pa.Schema:
    fields = [(name, pa.string() if kind is Kind.TEXT else pa.int64()) for name, kind in columns]
    return pa.schema([*fields, (UNDECODABLE, pa.int64()), (BAD, pa.int64())])


def _clean(rows: Sequence[Row], kinds: Sequence[Kind], schema: pa.Schema) -> pa.Table:
    cleaned = [_clean_row(row, kinds) for row in rows]
    arrays = [pa.array(values, field.type) for values, field in zip(zip(*cleaned, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _clean_row(row: Row, kinds: Sequence[Kind]) -> Row:
    faults = cells.Faults()
    values = [
        cells.text(value, faults) if kind is Kind.TEXT else cells.integer(value, faults)
        for value, kind in zip(row, kinds, strict=True)
    ]
    return (*values, faults.undecodable, faults.bad)
