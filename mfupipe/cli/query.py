"""Commands that look things up: sql, gpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mfupipe.cli.output import as_csv, as_json, result, table
from mfupipe.errors import UsageError

if TYPE_CHECKING:
    import duckdb

    from mfupipe.cli.adhoc import Answer
    from mfupipe.devices import Device

TERA = 1e12


def sql(
    words: Annotated[
        list[str], typer.Argument(metavar="RUN... [QUERY|FILE.sql|-]", help="RUNs, then SQL; several RUNs are one.")
    ],
    param: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Value of $NAME in the query.")] = None,
    as_table: Annotated[bool, typer.Option("--table", help="A table for the eyes (the default).")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="CSV in full precision.")] = False,
    json: Annotated[bool, typer.Option("--json", help="A JSON array of objects.")] = False,
) -> None:
    """Query the tables of a RUN; without a query, list them with columns and units."""
    from mfupipe.cli import adhoc

    if as_table + csv + json > 1:
        raise UsageError("more than one of --table, --csv and --json", "choose one")
    runs, query = adhoc.split_words(tuple(words))
    parameters = adhoc.parse_parameters(param or [])
    if query is not None:
        answer = adhoc.ask(runs, query, parameters)
    else:
        with adhoc.opened(runs) as connection:
            if not (csv or json):
                _list_tables(connection)
                return
            answer = _described(connection)
    show = as_csv if csv else as_json if json else table
    show(answer.columns, answer.rows)


def gpus(name: Annotated[str | None, typer.Argument(help="A GPU, as the driver names it.")] = None) -> None:
    """The peak table, dense, with sources."""
    from mfupipe.devices import all_devices, find, nearest

    if name is None:
        _list_devices(all_devices())
        return
    device, problems = find(name)
    if device is None:
        close = [known.name for known in nearest(name)]
        hint = (
            f"mfupipe gpus {close[0]!r}"
            if close
            else "mfupipe gpus lists them; a report takes --peak bf16=...,bytes=..."
        )
        raise UsageError(problems[0].detail, hint)
    _show_device(device)


def _list_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """One block per table: its name and what it holds, then its columns with type, [unit] and meaning."""
    from mfupipe import warehouse

    rows = warehouse.describe(connection).to_pylist()
    for name, comment in dict.fromkeys((row["table_name"], row["table_comment"]) for row in rows):
        result(f"{name}: {comment or ''}".rstrip(": "))
        mine = [row for row in rows if row["table_name"] == name]
        table(("column", "type", "meaning"), [_column(row) for row in mine])
        result("")


def _column(row: dict[str, str | None]) -> tuple[str, ...]:
    return tuple(row[key] or "" for key in ("column_name", "column_type", "column_comment"))


def _described(connection: duckdb.DuckDBPyConnection) -> Answer:
    from mfupipe import warehouse
    from mfupipe.cli.adhoc import Answer

    described = warehouse.describe(connection)
    columns = tuple(described.column_names)
    return Answer(columns, tuple(tuple(row[column] for column in columns) for row in described.to_pylist()))


def _list_devices(devices: tuple[Device, ...]) -> None:
    dtypes = ("fp32", "tf32", "bf16", "fp16", "fp8", "fp4")
    columns = ("name", "SM", *(f"{dtype} [TFLOP/s]" for dtype in dtypes), "memory [TB/s]", "confidence")
    rows = [
        (
            device.name,
            device.sm_counts[0],
            *(_tera(device, dtype) for dtype in dtypes),
            _tera(device),
            device.confidence,
        )
        for device in devices
    ]
    table(columns, rows)


def _tera(device: Device, dtype: str | None = None) -> str:
    value = device.bytes_per_s if dtype is None else device.peak_flop_per_s(dtype)
    return "-" if value is None else f"{value / TERA:.5g}"


def _show_device(device: Device) -> None:
    from mfupipe.devices import ceilings_for

    result(f"{device.name}: {device.chip}, compute capability {device.compute_capability}, {device.sm_counts[0]} SM")
    boost, tensor = device.boost_hz / 1e6, device.tensor_peak_hz / 1e6
    result(f"clock {boost:.0f} MHz at most; tensor peaks are quoted at {tensor:.0f} MHz")
    rows = ceilings_for([(device.name, None)])[0].to_pylist()
    conditions = [
        condition for condition in ("", "burst", "sustained") if any(r["condition"] == condition for r in rows)
    ]
    rates = {(row["dtype"], row["condition"]): row["flop_per_s"] or row["bytes_per_s"] for row in rows}
    columns = (
        "dtype",
        "unit",
        *("measured, " * bool(condition) + (condition or "datasheet") for condition in conditions),
    )
    table(columns, [_rates(dtype, conditions, rates) for dtype in dict.fromkeys(row["dtype"] for row in rows)])
    for source in dict.fromkeys(row["source"] for row in rows):
        mine = [f"{row['dtype']} {row['condition']}".strip() for row in rows if row["source"] == source]
        result(f"{', '.join(mine)}: {source}")
    if device.sparse_multiplier:
        result(
            f"with structured sparsity vendors quote {device.sparse_multiplier:g} x the tensor peaks; never used here"
        )
    if device.trap:
        result(f"beware: {device.trap}")


def _rates(dtype: str, conditions: list[str], rates: dict[tuple[str, str], float]) -> tuple[str, ...]:
    found = (rates.get((dtype, condition)) for condition in conditions)
    unit = {"bytes": "TB/s", "int8": "TOP/s"}.get(dtype, "TFLOP/s")
    return (dtype, unit, *("-" if rate is None else f"{rate / TERA:.5g}" for rate in found))
