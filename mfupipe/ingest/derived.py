"""Raw tables that follow from those already copied: only strings, domains and processes that something refers to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mfupipe.ingest import refusals
from mfupipe.ingest.engine import Engine
from mfupipe.ingest.metadata import integer, process_name, text_rows
from mfupipe.ingest.raw_tables import (
    NAME_COLUMNS,
    NVTX,
    PROCESS_COLUMNS,
    PROCESS_MASK,
    STRINGS,
    Column,
    Kind,
    RawTable,
)
from mfupipe.ingest.sources import literal

DOMAIN_ROWS = RawTable(
    "domain_rows",
    (NVTX,),
    (
        Column("domain_id", ("domainId",)),
        Column("global_tid", ("globalTid",)),
        Column("text", ("text",), Kind.TEXT),
        Column("text_id", ("textId",)),
    ),
    needs="eventType",
    condition='"eventType" = 75',
)
STRING_ROWS = RawTable(
    "strings",
    (STRINGS,),
    (Column("id", ("id",)), Column("value", ("value",), Kind.TEXT)),
    needs="id",
    condition='"id" IN (SELECT id FROM referenced)',
    has_row_id=False,
)
PROCESSES = pa.schema([("global_pid", pa.int64()), ("pid", pa.int64()), ("name", pa.string())])
PID_BITS = 24

Value = int | str | bool | None


def write_names(engine: Engine) -> None:
    """Write `strings` (ids that a kept column holds) and `nvtx_domains` (the last name of each domain of a process).

    Raises UnusableTrace when names are referred to and the trace has no StringIds.
    """
    engine.copy(DOMAIN_ROWS, engine.scratch)
    domain_rows = f"read_parquet({literal(engine.scratch / 'domain_rows.parquet')})"
    columns = [(engine.scan(table), column) for table, column in NAME_COLUMNS]
    parts = [f"SELECT {column} AS id FROM {scan}" for scan, column in [*columns, (domain_rows, "text_id")]]
    union = " UNION ALL ".join(parts)
    engine.connection.execute(f"CREATE TEMP TABLE referenced AS SELECT DISTINCT id FROM ({union}) WHERE id IS NOT NULL")
    _refuse_missing_strings(engine)
    engine.copy(STRING_ROWS)
    engine.connection.execute(f"""
        COPY (
            SELECT domain_id, global_tid & {PROCESS_MASK} AS global_pid, coalesce(text, value) AS name
            FROM {domain_rows} LEFT JOIN {engine.scan("strings")} ON text_id = id
            QUALIFY row_number() OVER (PARTITION BY domain_id, global_tid & {PROCESS_MASK} ORDER BY row_id DESC) = 1
            ORDER BY ALL
        ) TO {literal(engine.raw / "nvtx_domains.parquet")} (FORMAT parquet)
    """)


def write_processes(engine: Engine) -> None:
    """Write `processes`: those with events, each once, with the base name of its program."""
    parts = [f"SELECT {column} & {PROCESS_MASK} AS id FROM {engine.scan(table)}" for table, column in PROCESS_COLUMNS]
    union = " UNION ALL ".join(parts)
    found = engine.connection.execute(f"SELECT DISTINCT id FROM ({union}) WHERE id IS NOT NULL ORDER BY id").fetchall()
    rows = text_rows(engine.source, "PROCESSES", ("globalPid", "name"))
    names = {integer(process): process_name(name) for process, name in rows}
    written = [
        {"global_pid": process, "pid": process >> PID_BITS & 0xFFFFFF, "name": names.get(process)}
        for (process,) in found
    ]
    write_rows(engine.raw / "processes.parquet", written, PROCESSES)


def write_rows(path: Path, rows: Sequence[Mapping[str, Value]], schema: pa.Schema) -> None:
    """Write a small table."""
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)


def _refuse_missing_strings(engine: Engine) -> None:
    (count,) = engine.connection.execute("SELECT count(*) FROM referenced").fetchone() or (0,)
    if count and STRINGS not in engine.source.columns:
        evidence = f"it refers to {count:,} names and has no table {STRINGS}; its export failed or was interrupted"
        raise refusals.damaged(engine.source_path, evidence)
