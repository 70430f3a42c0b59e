"""The program that `mfupipe doctor` runs under nsys: a few NVTX ranges by two emitters, and three memsets
on a GPU.

Needs nothing: what is not here is left out and said on stdout.
"""

from __future__ import annotations

import ctypes
import glob
import importlib
import importlib.util
import os
import sys
from typing import Any

PACKAGE_RANGE = "mfupipe doctor: python nvtx"
INTEROP_RANGE = "mfupipe doctor: libnvtx3interop"
REPEATS = 3
TOOLKIT = "/usr/local/cuda*/lib*"


def main() -> None:
    """Emit, and say what could not be."""
    for act in (mark_with_package, mark_with_interop, work_on_gpu):
        missing = act()
        if missing:
            print(missing)


def mark_with_package() -> str:
    """Ranges through the Python package nvtx."""
    if importlib.util.find_spec("nvtx") is None:
        return "no Python nvtx"
    nvtx: Any = importlib.import_module("nvtx")
    for _ in range(REPEATS):
        with nvtx.annotate(PACKAGE_RANGE, domain="mfupipe"):
            pass
    return ""


def mark_with_interop() -> str:
    """Ranges through NVIDIA's own libnvtx3interop."""
    library = load("libnvtx3interop.so*")
    if library is None:
        return "no libnvtx3interop"
    for _ in range(REPEATS):
        library.nvtxRangePushA(INTEROP_RANGE.encode())
        library.nvtxRangePop()
    return ""


def work_on_gpu() -> str:
    """Three memsets of 4 KiB through the CUDA runtime."""
    library = load("libcudart.so*")
    if library is None:
        return "no libcudart"
    memory = ctypes.c_void_p()
    status = library.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096))
    if status != 0:
        return f"no GPU (cudaMalloc returned {status})"
    for _ in range(REPEATS):
        library.cudaMemset(memory, 0, ctypes.c_size_t(4096))
    library.cudaDeviceSynchronize()
    library.cudaFree(memory)
    return ""


def load(pattern: str) -> ctypes.CDLL | None:
    """The first library of this name in the packages of this Python or in a CUDA toolkit that loads."""
    inside = [os.path.join(entry, "nvidia", "*", "lib", pattern) for entry in sys.path if entry]
    for place in [*inside, os.path.join(TOOLKIT, pattern)]:
        for path in sorted(glob.glob(place)):
            try:
                return ctypes.CDLL(path)
            except OSError:
                continue
    return None


if __name__ == "__main__":
    main()
