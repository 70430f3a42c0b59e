"""Ranges that carry their cost: `step()` and `operator()` around the work of a program, in NVTX domain "mfupipe".

    with annotate.step(3, flop=1.2e12, items=128):
        with annotate.operator("attention", flop=5.5e11, bytes=1.3e8, dtype="bf16"):
            ...

Light: the standard library, and Python `nvtx` only where nothing better is here. The message grammar is
`NAME|key=value|...`; `%`, `|`, `=` and control characters in names and values are percent-encoded (UTF-8).
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Self, TypedDict, Unpack
from urllib.parse import unquote

from mfupipe.emitters import Emitter, choose_emitter
from mfupipe.errors import EnvironmentProblem, UsageError

DOMAIN = "mfupipe"
STEP = "step"
DIRECTIONS = ("forward", "backward", "update")
_COUNTS = frozenset(
    {"flop", "extra_flop", "flop_min", "flop_max", "bytes", "bytes_min", "bytes_max", "items", "tokens"}
)
_ENCODED = re.compile(r"[%|=\x00-\x1f\x7f-\x9f]")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?")
_MAX_COUNT = 1 << 63


class OperatorFields(TypedDict, total=False):
    """What an operator's range may say. Counts are of one execution; a missing field is unknown, never 0.

    flop: what the mathematics needs (FMA = 2). extra_flop: recomputation and padding. bytes: every tensor that crosses
    the range's border once (in-place = read + write). dtype: the one it runs in (bf16, fp16, fp32, tf32, fp8, ...).
    """

    flop: float | None
    extra_flop: float | None
    bytes: float | None
    dtype: str | None
    direction: str | None
    phase: str | None
    flop_min: float | None
    flop_max: float | None
    bytes_min: float | None
    bytes_max: float | None
    items: float | None
    tokens: float | None


class StepFields(TypedDict, total=False):
    """What a step's range may say. flop: of the model. items: samples. tokens. phase: prefill, decode, train, ..."""

    flop: float | None
    bytes: float | None
    items: float | None
    tokens: float | None
    phase: str | None


@dataclass(frozen=True)
class Annotation:
    """A message taken apart; None where a field is missing, or was repeated or unreadable (`bad` names those)."""

    name: str
    flop: float | None = None
    extra_flop: float | None = None
    bytes: float | None = None
    dtype: str | None = None
    direction: str | None = None
    phase: str | None = None
    flop_min: float | None = None
    flop_max: float | None = None
    bytes_min: float | None = None
    bytes_max: float | None = None
    items: float | None = None
    tokens: float | None = None
    index: int | None = None
    bad: tuple[str, ...] = ()


KEYS = frozenset(field.name for field in fields(Annotation)) - {"name", "bad"}


class Range:
    """One annotated range, a context manager that can be entered again and again."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def __enter__(self) -> Self:
        push(self.message)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pop()


def step(index: int, **known: Unpack[StepFields]) -> Range:
    """The range of one step. Raises UsageError when a value is no finite, non-negative number."""
    return Range(write_message(STEP, index=index, **known))


def operator(name: str, **known: Unpack[OperatorFields]) -> Range:
    """The range of one execution of an operator. Raises UsageError when a value cannot be written."""
    return Range(write_message(name, **known))


def write_message(name: str, **known: float | str | None) -> str:
    """The message for a name and its fields. Raises UsageError when a value cannot be written."""
    written = [f"{key}={_write_value(key, value)}" for key, value in known.items() if value is not None]
    return "|".join([encode(name), *written])


def _write_value(key: str, value: float | str) -> str:
    if key not in KEYS:
        raise UsageError(f"no field {key!r} in an annotation", f"known: {', '.join(sorted(KEYS))}")
    if key in _COUNTS or key == "index":
        return _write_number(key, value)
    if key == "direction" and value not in DIRECTIONS:
        raise UsageError(f"direction={value!r} in an annotation", f"one of {', '.join(DIRECTIONS)}")
    return encode(str(value))


def _write_number(key: str, value: float | str) -> str:
    if isinstance(value, str) or not math.isfinite(value) or not 0 <= value < _MAX_COUNT:
        raise UsageError(f"{key}={value!r} in an annotation", "give a finite number from 0 up, or leave the field out")
    return str(int(value)) if value == int(value) else repr(float(value))


def encode(text: str) -> str:
    """Percent-encode what separates fields, and control characters."""
    return _ENCODED.sub(_percent, text)


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def parse_message(message: str, domain: str = DOMAIN) -> Annotation:
    """Take a message apart. Never raises.

    Outside the domain "mfupipe" it is in the grammar only when every part after the first is a known key with a value
    and one of them is flop, bytes or index; else the whole text is the name.
    """
    first, *parts = message.split("|")
    pairs = [part.partition("=") for part in parts]
    keys = [key for key, _, _ in pairs]
    if domain != DOMAIN and not _is_grammar(parts, keys):
        return Annotation(name=message)
    known = [(key, value) for key, separator, value in pairs if separator and key in KEYS]
    values = {key: _read_value(key, value) for key, value in known if keys.count(key) == 1}
    bad = sorted({key for key, _ in known if values.get(key) is None})
    good = {key: value for key, value in values.items() if value is not None}
    return Annotation(name=unquote(first), bad=tuple(bad), **good)  # type: ignore[arg-type]  # typed by key


def _is_grammar(parts: list[str], keys: list[str]) -> bool:
    is_known = all("=" in part and key in KEYS for part, key in zip(parts, keys, strict=True))
    return is_known and not {"flop", "bytes", "index"}.isdisjoint(keys)


def _read_value(key: str, text: str) -> float | int | str | None:
    if key == "index":
        return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None
    if key in _COUNTS:
        number = float(text) if _NUMBER.fullmatch(text) else math.inf
        return number if number < _MAX_COUNT else None
    value = unquote(text)
    return value if key != "direction" or value in DIRECTIONS else None


# Where ranges go. Chosen when the first one is pushed: libraries may be loaded after this module.

_chosen: list[Emitter | None] = []


def emitter() -> Emitter | None:
    """The emitter in use, None when nothing here can emit."""
    if not _chosen:
        _chosen.append(choose_emitter(DOMAIN))
    return _chosen[0]


def require_emitter() -> Emitter:
    """The emitter in use. Raises EnvironmentProblem when nothing here can emit."""
    found = emitter()
    if found is None:
        evidence = "no libnvtx3interop, no Python nvtx that records, and no torch with CUDA"
        raise EnvironmentProblem(f"ranges cannot be emitted: {evidence}", "pip install nvidia-nvtx, or nvtx==0.2.11")
    return found


@contextlib.contextmanager
def emitting_to(replacement: Emitter | None) -> Iterator[None]:
    """Send ranges elsewhere for a while: a recorder in tests, None for silence."""
    before = list(_chosen)
    _chosen[:] = [replacement]
    try:
        yield
    finally:
        _chosen[:] = before


def push(message: str) -> None:
    """Open a range on this thread; nothing happens where nothing can emit."""
    found = emitter()
    if found is not None:
        found.push(message)


def pop() -> None:
    """Close the innermost range of this thread."""
    found = emitter()
    if found is not None:
        found.pop()
