"""Peaks of GPUs, dense, per dtype, with their sources; found by exact name, never guessed."""

from __future__ import annotations

import csv
import difflib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path

import pyarrow as pa

from mfupipe.errors import EnvironmentProblem, UsageError

TABLE = Path(__file__).with_name("devices.csv")
MEASURED = Path(__file__).with_name("measured_ceilings.csv")
DTYPES = ("fp64", "fp64_tensor", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
BANDWIDTH = "bytes"
# Drivers compute bandwidth from memory clocks: 2 to 3 % over the datasheet on HBM. Clocks differ by board partner.
AGREEMENT_PCT = 10.0
NEAREST = 3
VENDOR_WORDS = frozenset({"nvidia", "tesla", "geforce"})

PEAKS_SCHEMA = pa.schema(
    [
        ("device_name", pa.string()),
        ("sm_count", pa.int64()),
        ("dtype", pa.string()),
        ("kind", pa.string()),
        ("condition", pa.string()),
        ("flop_per_s", pa.float64()),
        ("bytes_per_s", pa.float64()),
        ("source", pa.string()),
        ("key", pa.string()),
    ]
)


@dataclass(frozen=True)
class Device:
    """One GPU of the table. Clocks [Hz], bytes_per_s: memory, peaks: (dtype, dense FLOP/s; int8: OP/s).

    boost_hz is what a trace reports; tensor_peak_hz is the clock of the vendor's tensor peaks (lower on Hopper).
    """

    name: str
    aliases: tuple[str, ...]
    key: str
    chip: str
    compute_capability: str
    sm_counts: tuple[int, ...]
    boost_hz: int
    tensor_peak_hz: int
    l2_bytes: int
    memory_gb: str
    bytes_per_s: float
    peaks: tuple[tuple[str, float], ...]
    sparse_multiplier: float | None
    confidence: str
    source: str
    trap: str

    def peak_flop_per_s(self, dtype: str) -> float | None:
        """Dense peak of a dtype; None when this GPU has no unit for it or the peak is not known."""
        return dict(self.peaks).get(dtype)


@dataclass(frozen=True)
class DeviceProblem:
    """What speaks against a device. code: unknown_gpu_peak or device_mismatch; dtype: the one ceiling lost to it."""

    device_name: str
    code: str
    detail: str
    dtype: str = ""


Seen = tuple[str, int | None] | tuple[str, int | None, int | None, int | None]
"""A device as a trace names it: name, SM count [, clock [Hz], memory bandwidth [bytes/s]]; None where unknown."""


@dataclass(frozen=True)
class Row:
    """One row of the `ceilings` table; flop_per_s for arithmetic, bytes_per_s for dtype 'bytes'."""

    device_name: str
    sm_count: int | None
    dtype: str
    kind: str
    condition: str
    flop_per_s: float | None
    bytes_per_s: float | None
    source: str
    key: str


@cache
def all_devices() -> tuple[Device, ...]:
    """The table devices.csv, in its order."""
    with TABLE.open(encoding="utf-8", newline="") as stream:
        return tuple(_device(row) for row in csv.DictReader(stream))


def lookup(
    name: str,
    sm_count: int | None = None,
    clock_hz: int | None = None,
    memory_bandwidth: int | None = None,
) -> Device | None:
    """The device of this name, or None: unknown, ambiguous, or contradicted by its SM count. `find` says which."""
    return find(name, sm_count, clock_hz, memory_bandwidth)[0]


def find(
    name: str,
    sm_count: int | None = None,
    clock_hz: int | None = None,
    memory_bandwidth: int | None = None,
) -> tuple[Device | None, tuple[DeviceProblem, ...]]:
    """The device and what speaks against it.

    A name matches when its words are those of a row, vendor words aside: 'H200' is 'NVIDIA H200', 'A10G' is not 'A10'.
    """
    device = _by_words(name)
    if device is None:
        return None, (DeviceProblem(name, "unknown_gpu_peak", _why_unknown(name)),)
    if sm_count is not None and sm_count not in device.sm_counts:
        return None, (_sm_mismatch(name, sm_count, device),)
    found = (_clock_mismatch(name, clock_hz, device), _bandwidth_mismatch(name, memory_bandwidth, device))
    return device, tuple(problem for problem in found if problem is not None)


def nearest(name: str) -> tuple[Device, ...]:
    """Up to three devices that a user may have meant: all that hold the words given, else the most similar names."""
    words = _words(name)
    holding = tuple(device for device in all_devices() if words and any(words <= known for known in _known(device)))
    if holding:
        return holding
    by_text = {" ".join(sorted(known)): device for device in all_devices() for known in _known(device)}
    close = difflib.get_close_matches(" ".join(sorted(words)), by_text, n=NEAREST, cutoff=0.5)
    return tuple(dict.fromkeys(by_text[text] for text in close))


def ceilings_for(devices: Iterable[Seen]) -> tuple[pa.Table, tuple[DeviceProblem, ...]]:
    """Datasheet and measured ceilings of the devices of a trace, and what is missing.

    Columns: PEAKS_SCHEMA, one row per (device, dtype, kind, condition), with dtype 'bytes' for memory. An unknown
    device has no rows; one whose bandwidth contradicts the trace has none for 'bytes'. Raises EnvironmentProblem when
    the file of `mfupipe calibrate` is damaged.
    """
    rows: list[Row] = []
    problems: list[DeviceProblem] = []
    for seen in dict.fromkeys(devices):
        device, found = find(*seen)
        problems += found
        if device is not None:
            rows += _rows(device, seen, found)
    return _table(rows), tuple(problems)


def peaks_table(names: Iterable[str]) -> pa.Table:
    """`ceilings_for` by name alone, for devices whose SM count no one knows; unknown names have no rows."""
    return ceilings_for((name, None) for name in names)[0]


def calibrated_path() -> Path:
    """Where `mfupipe calibrate` writes the ceilings of this machine's GPUs; they replace the measured ones shipped."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "mfupipe" / "measured_ceilings.csv"


def parse_peaks(text: str) -> dict[str, float]:
    """Parse 'bf16=989.4e12,bytes=4.8e12': dtype -> FLOP/s, 'bytes' -> bytes/s. Raises UsageError."""
    peaks: dict[str, float] = {}
    for part in text.split(","):
        dtype, _, number = (piece.strip() for piece in part.partition("="))
        if dtype not in (*DTYPES, BANDWIDTH) or dtype in peaks:
            said = "given twice" if dtype in peaks else f"not one of {', '.join((*DTYPES, BANDWIDTH))}"
            raise UsageError(f"--peak {text!r}: {dtype!r} is {said}", "--peak bf16=989.4e12,bytes=4.8e12")
        peaks[dtype] = _positive(number, text)
    return peaks


def describe(name: str) -> str:
    """One line on the peaks of a device, for `mfupipe doctor`. Raises EnvironmentProblem for an unknown device."""
    device, problems = find(name)
    if device is None:
        raise EnvironmentProblem(problems[0].detail, "reports of it need --peak bf16=...,bytes=...; mfupipe gpus")
    tensor = next((dtype for dtype in ("bf16", "fp16") if device.peak_flop_per_s(dtype)), "fp32")
    peak = (device.peak_flop_per_s(tensor) or 0) / 1e12
    return f"{name}: {tensor} {peak:,.1f} TFLOP/s dense, {device.bytes_per_s / 1e12:.2f} TB/s ({device.source})"


def _device(row: dict[str, str]) -> Device:
    others = row["sm_count_also"].split(";") if row["sm_count_also"] else []
    return Device(
        name=row["name"],
        aliases=tuple(row["aliases"].split(";")) if row["aliases"] else (),
        key=row["key"],
        chip=row["chip"],
        compute_capability=row["compute_capability"],
        sm_counts=tuple(int(count) for count in [row["sm_count"], *others]),
        boost_hz=int(row["boost_hz"]),
        tensor_peak_hz=int(row["tensor_peak_hz"]),
        l2_bytes=int(row["l2_bytes"]),
        memory_gb=row["memory_gb"],
        bytes_per_s=float(row["bytes_per_s"]),
        peaks=tuple((dtype, float(row[dtype])) for dtype in DTYPES if row[dtype]),
        sparse_multiplier=float(row["sparse_multiplier"]) if row["sparse_multiplier"] else None,
        confidence=row["confidence"],
        source=row["source"],
        trap=row["trap"],
    )


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", name.casefold())) - VENDOR_WORDS


def _known(device: Device) -> tuple[frozenset[str], ...]:
    return tuple(_words(text) for text in (device.name, *device.aliases, device.key))


def _by_words(name: str) -> Device | None:
    words = _words(name)
    return next((device for device in all_devices() if words in _known(device)), None)


def _why_unknown(name: str) -> str:
    if "mig" in _words(name):
        return f"{name!r} is a slice (MIG) of a GPU: its share of the peak is not in the table"
    close = nearest(name)
    holding = [device.name for device in close if any(_words(name) <= known for known in _known(device))]
    if holding:
        return f"{name!r} could be {' or '.join(holding)}, whose peaks differ"
    listed = f" (nearest: {', '.join(device.name for device in close)})" if close else ""
    return f"{name!r} is not in the peak table{listed}"


def _sm_mismatch(name: str, sm_count: int, device: Device) -> DeviceProblem:
    expected = " or ".join(map(str, device.sm_counts))
    detail = f"{name!r} has {sm_count} SM in the trace, {expected} in the peak table: another product or a slice of it"
    return DeviceProblem(name, "device_mismatch", detail)


def _clock_mismatch(name: str, clock_hz: int | None, device: Device) -> DeviceProblem | None:
    if clock_hz is None or _agrees(clock_hz, device.boost_hz):
        return None
    detail = (
        f"{name!r} clocks up to {clock_hz / 1e6:.0f} MHz in the trace, {device.boost_hz / 1e6:.0f} in the peak table"
    )
    return DeviceProblem(name, "device_mismatch", detail)


def _bandwidth_mismatch(name: str, bandwidth: int | None, device: Device) -> DeviceProblem | None:
    if not bandwidth or _agrees(bandwidth, device.bytes_per_s):
        return None
    there = f"{bandwidth / 1e12:.2f} TB/s in the trace, {device.bytes_per_s / 1e12:.2f} in the peak table"
    return DeviceProblem(name, "device_mismatch", f"{name!r} has {there}: no memory ceiling", BANDWIDTH)


def _agrees(seen: float, expected: float) -> bool:
    return abs(seen - expected) <= AGREEMENT_PCT / 100 * expected


def _rows(device: Device, seen: Seen, problems: tuple[DeviceProblem, ...]) -> list[Row]:
    """Ceilings under the name that the trace uses."""
    name, sm_count = seen[0], seen[1]
    source = device.source if device.confidence == "high" else f"{device.source} (confidence: {device.confidence})"
    sheet = [
        Row(name, sm_count, dtype, "datasheet", "", peak, None, source, device.key) for dtype, peak in device.peaks
    ]
    sheet.append(Row(name, sm_count, BANDWIDTH, "datasheet", "", None, device.bytes_per_s, source, device.key))
    measured = [
        Row(
            name,
            sm_count,
            row.dtype,
            "measured",
            row.condition,
            row.flop_per_s,
            row.bytes_per_s,
            row.source,
            device.key,
        )
        for row in _measured(device)
    ]
    lost = {problem.dtype for problem in problems}
    return [row for row in (*sheet, *measured) if row.dtype not in lost]


def _measured(device: Device) -> tuple[Row, ...]:
    """This machine's own measurements of the device when there are any, else the shipped ones."""
    path = calibrated_path()
    own = _read_ceilings(path) if path.is_file() else ()
    mine = tuple(row for row in own if _by_words(row.device_name) == device)
    return mine or tuple(row for row in _read_ceilings(MEASURED) if _by_words(row.device_name) == device)


def _read_ceilings(path: Path) -> tuple[Row, ...]:
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return tuple(_ceiling(row) for row in csv.DictReader(stream))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise EnvironmentProblem(f"{path} cannot be read as ceilings ({error!r})", "mfupipe calibrate") from error


def _ceiling(row: dict[str, str]) -> Row:
    flop, moved = (float(row[column]) if row[column] else None for column in ("flop_per_s", "bytes_per_s"))
    return Row(row["device_name"], None, row["dtype"], "measured", row["condition"], flop, moved, row["source"], "")


def _table(rows: list[Row]) -> pa.Table:
    return pa.table({name: [getattr(row, name) for row in rows] for name in PEAKS_SCHEMA.names}, schema=PEAKS_SCHEMA)


def _positive(number: str, text: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not 0 < value < inf:
        raise UsageError(f"--peak {text!r}: {number!r} is no positive number", "--peak bf16=989.4e12,bytes=4.8e12")
    return value
