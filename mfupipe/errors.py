"""The one error type of mfupipe: what went wrong, the evidence, and what to do next."""

from __future__ import annotations


class MfupipeError(Exception):
    """A fault that the user can act on; carries the process exit code.

    message: what happened and the evidence, in field terms. hint: what to do next.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(MfupipeError):
    """Arguments that cannot be acted on (exit code 2)."""

    exit_code = 2


class EnvironmentProblem(MfupipeError):
    """Something outside mfupipe is missing or forbidden: nsys, a GPU, a permission, disk space (exit code 3)."""

    exit_code = 3


class WorkloadFailed(MfupipeError):
    """The program under nsys failed (exit code 4)."""

    exit_code = 4


class UnusableTrace(MfupipeError):
    """The trace cannot give an answer, or a check on it failed (exit code 5)."""

    exit_code = 5


class GateTripped(MfupipeError):
    """A threshold that the user set was crossed (exit code 6)."""

    exit_code = 6
