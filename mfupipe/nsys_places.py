"""Where Nsight Systems is usually installed."""

from __future__ import annotations

import os
from pathlib import Path

# Nsight Compute also brings an nsys; it cannot make a report (no importer), so its folders are not looked into.
INSTALL_PLACES = (
    "/opt/nvidia/nsight-systems*/*/bin/nsys",
    "/opt/nvidia/nsight-systems*/*/target-linux-*/nsys",
    "/opt/nvidia/nsight-systems*/bin/nsys",
    "/usr/local/cuda*/bin/nsys",
    "/usr/local/cuda*/nsight-systems*/bin/nsys",
    "/usr/local/cuda*/nsight-systems*/target-linux-*/nsys",
    "/usr/lib/nsight-systems/bin/nsys",
    "/usr/lib/*/nsight-systems/target-linux-*/nsys",
    "/usr/local/bin/nsys",
)


def installed_paths() -> tuple[Path, ...]:
    """Every executable nsys in the usual install places, each real file once."""
    paths = (path for place in INSTALL_PLACES for path in sorted(Path("/").glob(place.removeprefix("/"))))
    unique = {path.resolve(): path for path in paths if os.access(path, os.X_OK)}
    return tuple(unique.values())
