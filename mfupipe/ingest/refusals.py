"""Why a trace is refused: one function per reason, each with the evidence and the remedy."""

from __future__ import annotations

from pathlib import Path

from mfupipe.errors import EnvironmentProblem, MfupipeError, UnusableTrace, UsageError

EXPORT_AGAIN = "export it again: nsys export --type=sqlite --force-overwrite=true REPORT.nsys-rep"
ACCEPTED = "give a .nsys-rep, .qdrep, .sqlite, .sqlite.gz, or the directory of nsys export --type=parquetdir"


def missing(source: Path) -> MfupipeError:
    """Nothing is at the path."""
    return UsageError(f"{source} does not exist", ACCEPTED)


def unreadable(source: Path, error: OSError) -> MfupipeError:
    """The operating system refuses to read."""
    return EnvironmentProblem(f"{source} cannot be read ({error.strerror})", "check its permissions and its disk")


def lfs_pointer(source: Path) -> MfupipeError:
    """A Git LFS pointer stands where the file should be."""
    return UnusableTrace(
        f"{source.name} is not a database: it is a Git LFS pointer of {source.stat().st_size} bytes, the text that"
        " stands for a file that was not downloaded",
        "run git lfs pull in its repository, or download the file itself",
    )


def not_a_database(source: Path, evidence: str) -> MfupipeError:
    """Another kind of file."""
    return UnusableTrace(f"{source.name} is not a database that Nsight Systems exported: {evidence}", ACCEPTED)


def damaged(source: Path, evidence: str, hint: str = EXPORT_AGAIN) -> MfupipeError:
    """An export that is not whole."""
    return UnusableTrace(f"{source.name} is a damaged file: {evidence}", hint)


def locked(source: Path, waited_s: float) -> MfupipeError:
    """Another process holds the file."""
    waited = f", and did for {waited_s:.0f} s" if waited_s else ""
    return UnusableTrace(
        f"{source.name} is a locked database: another process holds it for writing{waited}",
        "wait until nsys export has ended, or close the program that has it open; or ingest a copy of the file",
    )


def database_error(source: Path, said: str, waited_s: float = 0.0) -> MfupipeError:
    """What SQLite said when it could not read on."""
    return locked(source, waited_s) if "locked" in said else damaged(source, f"SQLite says: {said}")


def changed(source: Path) -> MfupipeError:
    """The file was written to meanwhile."""
    return UnusableTrace(
        f"{source.name} changed while it was being read", "wait until its export has ended, then ingest it again"
    )


def running_capture(source: Path) -> MfupipeError:
    """A capture that was never imported."""
    return UnusableTrace(
        f"{source.name} is the raw stream of a capture, not yet a report (its import failed or is still running)",
        f"import it with a complete Nsight Systems: QdstrmImporter -i {source.name}, then ingest the .nsys-rep",
    )


def cannot_write(where: Path, error: str) -> MfupipeError:
    """The disk is full, or the directory is not ours."""
    return EnvironmentProblem(
        f"cannot write to {where} ({error})",
        "free space there, or give another -o; scratch files follow TMPDIR",
    )


def out_of_memory(error: str) -> MfupipeError:
    """DuckDB could neither hold nor spill its work."""
    return EnvironmentProblem(
        f"memory and scratch space ran out while the trace was read ({error})",
        "free memory, and point TMPDIR at a disk with room",
    )


def exists(destination: Path) -> MfupipeError:
    """The raw tables are already there."""
    return UsageError(f"{destination} exists, and raw tables are never overwritten", "give another -o")


def reader_missing(wanted: str, found: str) -> MfupipeError:
    """The wheel with DuckDB's SQLite reader does not fit."""
    return EnvironmentProblem(
        f"DuckDB {wanted} needs its SQLite reader of the same version, and {found}",
        f"pip install duckdb-extension-sqlite-scanner=={wanted}",
    )
