"""The only formatter: numbers become text here, with their unit, and NULL becomes 'unknown'.

Inputs are in the units of the tables (ns, FLOP, FLOP/s, bytes, bytes/s, percent of 0 to 100); three significant
digits, but never fewer than all digits before the decimal point. Names out of a trace pass through `plain` first.
"""

from __future__ import annotations

import math
import re
import unicodedata

UNKNOWN = "unknown"
DIGITS = 3
NS_PER_MS = 1e6
TERA = 1e12
MICROSECOND, MILLISECOND, SECOND = 1e3, 1e6, 1e9

_TIME_UNITS = ((SECOND, "s"), (MILLISECOND, "ms"), (MICROSECOND, "us"), (1.0, "ns"))
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))

# Separators, controls, formats (bidirectional overrides among them) and surrogates: one line of text has none of them.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def significant(value: float | None) -> str:
    """Three significant digits without an exponent: 1234.5 -> '1,234', 12.34 -> '12.3', 0.01234 -> '0.0123'."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    rounded = float(f"{value:.{DIGITS - 1}e}")
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(rounded))))
    return f"{value:,.{min(decimals, 12)}f}"


def count(value: float | None) -> str:
    """A whole number with thousands separators."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:,.0f}"


def duration(ns: float | None) -> str:
    """Nanoseconds with the unit that fits: '33.3 ms', '4.10 us'."""
    return _scaled(ns, _TIME_UNITS, "")


def milliseconds(ns: float | None) -> str:
    """Nanoseconds as a bare number of ms, for a column whose head names the unit."""
    return significant(_divided(ns, NS_PER_MS))


def teras(value: float | None) -> str:
    """FLOP/s or bytes/s as a bare number of 1e12, for a column whose head names the unit."""
    return significant(_divided(value, TERA))


def flop(value: float | None) -> str:
    """A count of floating point operations: '3.30 TFLOP'."""
    return _scaled(value, _PREFIXES, "FLOP")


def flop_rate(value: float | None) -> str:
    """FLOP per second: '989 TFLOP/s'."""
    return _scaled(value, _PREFIXES, "FLOP/s")


def decade(value: float, unit: str) -> str:
    """A power of ten on an axis: '100 TFLOP/s'."""
    scale, prefix = next((prefix for prefix in _PREFIXES if abs(value) >= prefix[0]), _PREFIXES[-1])
    return f"{value / scale:g} {prefix}{unit}"


def byte_count(value: float | None) -> str:
    """A count of bytes, decimal prefixes: '1.05 GB'."""
    return _scaled(value, _PREFIXES, "B")


def byte_rate(value: float | None) -> str:
    """Bytes per second, decimal prefixes as in datasheets: '4.80 TB/s'."""
    return _scaled(value, _PREFIXES, "B/s")


def clock(hertz: float | None) -> str:
    """A clock in MHz: '1,980 MHz'."""
    return UNKNOWN if hertz is None or not math.isfinite(hertz) else f"{hertz / 1e6:,.0f} MHz"


def percent(value: float | None) -> str:
    """A percentage with one decimal: '65.2 %'."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{_tenth(value)} %"


def percent_number(value: float | None) -> str:
    """A percentage as a bare number, for a column whose head names the unit."""
    return UNKNOWN if value is None or not math.isfinite(value) else _tenth(value)


def points(value: float | None) -> str:
    """Points of percent, signed only when negative: '21.3', '-0.4'; what is not zero never reads as zero."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    shown = _tenth(value)
    if shown in ("0.0", "-0.0") and value != 0:
        return "< 0.1" if value > 0 else "> -0.1"
    return "0.0" if shown == "-0.0" else shown


def plain(text: str | None, limit: int = 120) -> str:
    """Text of a trace as one visible line: no controls, no direction marks, blanks folded, cut in the middle."""
    if text is None:
        return UNKNOWN
    # A name may be a megabyte; what is far beyond the limit cannot be shown, so it is not examined either.
    head = text if len(text) <= 4 * limit else text[: 2 * limit] + "…" + text[-2 * limit :]
    seen = "".join(" " if character.isspace() else _visible(character) for character in head)
    folded = re.sub(r" {2,}", " ", seen).strip()
    return shortened(folded or "(empty)", limit)


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, the middle replaced by one ellipsis: both ends of a kernel name tell something."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def plural(number: float | None, noun: str) -> str:
    """'1 step', '3 steps'."""
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"


def _tenth(value: float) -> str:
    return f"{value:,.1f}"


def _visible(character: str) -> str:
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in _UNSEEN else character


def _divided(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _scaled(value: float | None, units: tuple[tuple[float, str], ...], suffix: str) -> str:
    if value is None or not math.isfinite(value):
        return UNKNOWN
    rounded = abs(float(f"{value:.{DIGITS - 1}e}"))
    scale, prefix = next((unit for unit in units if rounded >= unit[0]), units[-1])
    return f"{significant(value / scale)} {prefix}{suffix}".rstrip()
