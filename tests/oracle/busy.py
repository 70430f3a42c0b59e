"""Busy time: unions of intervals, recursion and overlap counted once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.oracle.attribution import Attributed
from tests.oracle.source import THREAD_BITS, Range

AUTOGRAD_FIELDS = (", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = ")
Interval = tuple[int, int]
Key = tuple[int, int, str | None]
Run = tuple[str, int, int, int]


@dataclass(frozen=True)
class NameTotals:
    """What ran below ranges of one name [ns]."""

    kernel_count: int
    inclusive_ns: int
    exclusive_ns: int


def union_ns(intervals: Iterable[Interval]) -> int:
    """Length of the union of half-open intervals."""
    total, covered_to = 0, None
    for start, end in sorted(intervals):
        if covered_to is None or start > covered_to:
            covered_to = start
        total += max(0, end - covered_to)
        covered_to = max(covered_to, end)
    return total


def name_of(message: str | None) -> str | None:
    """A message without what autograd appends to it."""
    if message is None:
        return None
    cuts = [message.index(mark) for mark in AUTOGRAD_FIELDS if mark in message]
    return message[: min(cuts)] if cuts else message


def totals_by_name(
    attributed: Iterable[Attributed], name: Callable[[str | None], str | None] = name_of
) -> dict[Key, NameTotals]:
    """(process, domain id, name) -> totals over the valid executions launched below a range of that name."""
    inclusive: dict[Key, set[Run]] = defaultdict(set)
    exclusive: dict[Key, set[Run]] = defaultdict(set)
    kernels: Counter[Key] = Counter()
    for each in attributed:
        run = each.execution
        if not run.is_valid:
            continue
        identity = (run.kind, run.row, run.start, run.end)
        keys = {_key(member, name) for member in each.path}
        for key in keys:
            inclusive[key].add(identity)
            kernels[key] += run.kind == "kernel"
        if each.innermost:
            exclusive[_key(each.innermost, name)].add(identity)
    return {
        key: NameTotals(kernels[key], _union_of(runs), _union_of(exclusive.get(key, set())))
        for key, runs in inclusive.items()
    }


def _key(member: Range, name: Callable[[str | None], str | None]) -> Key:
    return member.thread & ~THREAD_BITS, member.domain, name(member.message)


def _union_of(runs: set[Run]) -> int:
    return union_ns((start, end) for _, _, start, end in runs)
