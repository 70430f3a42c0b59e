"""The profiler's own messages: only known phrases are kept, and of what varies in them only numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mfupipe.ingest.model import Finding

_NUMBER = r"\s*([\d.]+)"
_TRACERS = r"(CUDA|NVTX|CUPTI|OS runtime libraries|cuDNN|cuBLAS|NCCL|MPI)"

# Events are missing for certain, or the profiler says that they may be.
LOSSES = (
    re.compile(rf"CUPTI dropped{_NUMBER} records"),
    re.compile(rf"Number of incomplete CUPTI events dropped:?{_NUMBER}?"),
    re.compile(r"Couldn't allocate CUPTI buffers"),
    re.compile(
        rf"Number of CUPTI events produced:{_NUMBER}, CUPTI buffers:{_NUMBER} of{_NUMBER}\. "
        r"Some CUPTI events might be missing"
    ),
)
OTHERS = (
    re.compile(rf"Number of {_TRACERS} events (?:collected|produced):{_NUMBER}"),
    re.compile(rf"No {_TRACERS} events collected"),
    re.compile(rf"Not all {_TRACERS} events might have been collected"),
    re.compile(rf"{_TRACERS} profiling might have not been started correctly"),
    re.compile(rf"{_TRACERS} injection initialized successfully"),
    re.compile(
        rf"Installed CUDA driver version \({_NUMBER}\) is not supported by this build of Nsight Systems\. "
        rf"CUDA trace will be collected using libraries for driver version{_NUMBER}"
    ),
    re.compile(r"NVTX payload extension is incompatible"),
    re.compile(rf"Provided compatibility ID{_NUMBER} != {_NUMBER}"),
    re.compile(r"Enabling trace for device graph launch"),
    re.compile(r"Profiling started due to cudaProfilerStart API invoked in the application"),
    re.compile(r"Profiling has (?:started|stopped)"),
)
KNOWN = (*LOSSES, *OTHERS)


def known_phrase(text: str) -> str | None:
    """The part of a message that is a known phrase, with single blanks; None for any other message."""
    matches = (pattern.search(text) for pattern in KNOWN)
    found = next((match for match in matches if match), None)
    return None if found is None else " ".join(found.group().split()).rstrip(".")


def lost_events(texts: Iterable[str]) -> tuple[Finding, ...]:
    """The finding `events_dropped`, counting the messages that speak of missing events."""
    losses = [text for text in texts if any(pattern.search(text) for pattern in LOSSES)]
    return (Finding("events_dropped", len(losses), losses[0]),) if losses else ()
