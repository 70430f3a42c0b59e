"""Phrases that figures and report share: names of operators that stay apart when they are cut, times, step rules."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mfupipe import units

_NAMESPACE = re.compile(r"\w+::(?=\w)")
_OVERLAP = 3  # characters of the shared beginning that stay, so that a cut name still reads as a name
STEP_RULES = {
    "user": "steps by --step-range",
    "mfupipe": "steps by mfupipe.annotate.step()",
    "profiler_step": "steps by ranges of torch.profiler",
    "step_number": "steps by range names",
    "vllm": "steps by ranges of vLLM",
    "sglang": "steps by ranges of SGLang",
    "optimizer": "steps end at the optimizer's ranges",
    "repetition": "steps by ranges that repeat",
}


def operator_label(operator: str, direction: str, limit: int) -> str:
    """'aten::mm backward': direction unless forward or none; a name that is too long loses its namespace first."""
    suffix = "" if direction in ("", "forward") else f" {units.plain(direction, 10)}"
    room = limit - len(suffix)
    name = operator if len(operator) <= room else _NAMESPACE.sub("", operator, count=1)
    return units.plain(name, room) + suffix


def operator_labels(pairs: Sequence[tuple[str, str]], limit: int) -> list[str]:
    """One label for each (operator, direction); names that a cut would make equal are cut before they differ."""
    labels = [operator_label(operator, direction, limit) for operator, direction in pairs]
    for label in {label for label in labels if labels.count(label) > 1}:
        alike = [index for index, other in enumerate(labels) if other == label]
        shared = _shared([pairs[index][0] for index in alike])
        for index in alike if shared > _OVERLAP else ():
            operator, direction = pairs[index]
            labels[index] = operator_label("…" + operator[shared - _OVERLAP :], direction, limit)
    return labels


def _shared(names: Sequence[str]) -> int:
    """Characters that all names begin with."""
    shortest = min(len(name) for name in names)
    return next((at for at in range(shortest) if len({name[at] for name in names}) > 1), shortest)


def short_time(ns: float | None) -> str:
    """A duration; what is less than a nanosecond, but not nothing, is said to be so."""
    return "< 1 ns" if ns is not None and 0 < abs(ns) < 1 else units.duration(ns)


def step_rule(rule: str, first: str, last: str) -> str:
    """'steps by range names step0..step2': how steps were found, with the captured texts of the first and the last."""
    if rule in ("", "none"):
        return "no step found"
    words = STEP_RULES.get(rule, f"steps by rule {units.plain(rule, 60)}")
    # the text of an annotation carries its cost as well, and the rule says where it comes from
    texts = () if rule == "mfupipe" else (first, last)
    names = [units.plain(name, 40) for name in dict.fromkeys(texts) if name]
    return " ".join([words, *(["..".join(names)] if names else [])])
