"""Find Nsight Systems, and ask it what it is and what it can do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mfupipe.errors import EnvironmentProblem
from mfupipe.nsys_places import INSTALL_PLACES, installed_paths
from mfupipe.profile import messages


@dataclass(frozen=True)
class Nsys:
    """One Nsight Systems: its path, its version (year, release, patch), and the text of `nsys profile
    --help`."""

    path: Path
    version: tuple[int, int, int]
    help_text: str

    @property
    def version_text(self) -> str:
        """2023.4.4."""
        return ".".join(str(part) for part in self.version)

    def has(self, option: str) -> bool:
        """True when `nsys profile` knows the option (asked of the tool, not read off its version)."""
        return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", self.help_text) is not None


def find_nsys(given: Path | None) -> Nsys:
    """The nsys the user gave, else the one on PATH, else the newest in the usual places. Raises
    EnvironmentProblem."""
    if given is not None:
        return _given(given)
    on_path = shutil.which("nsys")
    if on_path is not None:
        found = probe(Path(on_path))
        if found is not None:
            return found
    installed = [found for path in installed_paths() if (found := probe(path)) is not None]
    if not installed:
        raise messages.no_nsys(INSTALL_PLACES)
    return max(installed, key=lambda found: found.version)


def probe(path: Path) -> Nsys | None:
    """Ask an executable for its version; None when it is not Nsight Systems."""
    text = _output(path, "--version")
    match = re.search(r"Nsight Systems version (\d+)\.(\d+)\.(\d+)", text)
    if match is None:
        return None
    return Nsys(path, (int(match[1]), int(match[2]), int(match[3])), _output(path, "profile", "--help"))


def bundled_cupti(nsys: Nsys) -> tuple[int, int] | None:
    """CUDA version of the CUPTI that this nsys brings (12, 4), by its file name; None when it cannot be
    seen."""
    folders = (nsys.path.resolve().parent, *nsys.path.resolve().parent.parent.glob("target-linux-*"))
    names = [path.name for folder in folders for path in folder.glob("libcupti.so.*")]
    found = [(int(m[1]), int(m[2])) for name in names if (m := re.fullmatch(r"libcupti\.so\.(\d+)\.(\d+)", name))]
    return max(found, default=None)


def importer_path(nsys: Nsys) -> Path | None:
    """The importer beside this nsys, without which only a .qdstrm is left; None when absent."""
    root = nsys.path.resolve().parent.parent
    return next(iter(sorted(root.glob("host-linux-*/QdstrmImporter"))), None)


def _given(path: Path) -> Nsys:
    inside = (
        [path / "nsys", path / "bin" / "nsys", *sorted(path.glob("target-linux-*/nsys"))] if path.is_dir() else [path]
    )
    found = next((nsys for name in inside if os.access(name, os.X_OK) and (nsys := probe(name.absolute()))), None)
    if found is None:
        hint = "give the path of the nsys executable, for example /opt/nvidia/nsight-systems/2025.1.1/bin/nsys"
        raise EnvironmentProblem(f"{path} is not a working nsys (it prints no Nsight Systems version)", hint)
    return found


def _output(path: Path, *arguments: str) -> str:
    try:
        result = subprocess.run(
            [path, *arguments], capture_output=True, text=True, timeout=60, errors="replace", check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout + result.stderr
