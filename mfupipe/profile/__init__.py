"""1 PROFILE: a program on the GPU becomes a .nsys-rep, with the steps timed before it and the clocks
during it."""

from mfupipe.profile.check import check_raw
from mfupipe.profile.command import dry_run
from mfupipe.profile.messages import Note
from mfupipe.profile.nsys import Nsys, find_nsys
from mfupipe.profile.request import (
    Capture,
    CaptureKind,
    GraphMode,
    OperatorRanges,
    ProfileRequest,
    RankNaming,
    known_workloads,
    parse_capture,
    resolve_target,
    run_directory,
)
from mfupipe.profile.runner import ProfileResult, profile

__all__ = [
    "Capture",
    "CaptureKind",
    "GraphMode",
    "Note",
    "Nsys",
    "OperatorRanges",
    "ProfileRequest",
    "ProfileResult",
    "RankNaming",
    "check_raw",
    "dry_run",
    "find_nsys",
    "known_workloads",
    "parse_capture",
    "profile",
    "resolve_target",
    "run_directory",
]
