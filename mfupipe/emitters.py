"""What writes NVTX ranges into a capture, and which of them works here.

Python `nvtx` 0.2.12 and later records nothing, silently, under nsys up to at least 2024.2: it asks
nvtxDomainIsEnabled, which old tools do not know, and hands out a dummy domain. NVIDIA's own library through ctypes
records under all of them.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

_LIBRARY = "libnvtx3interop.so*"
_TOOLKITS = ("/usr/local", "cuda*/lib64", "cuda*/targets/*/lib", "cuda*/lib")
_NVTX_VERSION = 3
_MESSAGE_ASCII = 1


class Emitter(Protocol):
    """Opens and closes ranges on the calling thread."""

    name: str

    def push(self, message: str) -> None:
        """Open a range with this message."""

    def pop(self) -> None:
        """Close the innermost range."""


class _Attributes(ctypes.Structure):
    """nvtxEventAttributes_t of NVTX 3: 48 bytes, only the message is set."""

    _fields_ = (
        ("version", ctypes.c_uint16),
        ("size", ctypes.c_uint16),
        ("category", ctypes.c_uint32),
        ("color_type", ctypes.c_int32),
        ("color", ctypes.c_uint32),
        ("payload_type", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("payload", ctypes.c_uint64),
        ("message_type", ctypes.c_int32),
        ("message", ctypes.c_char_p),
    )


class InteropEmitter:
    """NVIDIA's libnvtx3interop: domain and whole message arrive under nsys 2022.4 to the newest."""

    name = "libnvtx3interop"

    def __init__(self, library: Any, domain: str) -> None:
        library.nvtxDomainCreateA.restype = ctypes.c_void_p
        library.nvtxDomainCreateA.argtypes = [ctypes.c_char_p]
        library.nvtxDomainRangePushEx.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Attributes)]
        library.nvtxDomainRangePop.argtypes = [ctypes.c_void_p]
        self._push, self._pop = library.nvtxDomainRangePushEx, library.nvtxDomainRangePop
        self._domain = library.nvtxDomainCreateA(domain.encode())

    def push(self, message: str) -> None:
        """Open a range; the library copies the message. Its return value is -1 under nsys even when it records."""
        attributes = _Attributes(_NVTX_VERSION, ctypes.sizeof(_Attributes))
        attributes.message_type, attributes.message = _MESSAGE_ASCII, message.encode()
        self._push(self._domain, ctypes.byref(attributes))

    def pop(self) -> None:
        """Close the innermost range of the domain."""
        self._pop(self._domain)


class PackageEmitter:
    """Python `nvtx`, where its domain is not a dummy."""

    name = "nvtx"

    def __init__(self, package: Any, domain: str) -> None:
        self._package, self._domain = package, domain

    def push(self, message: str) -> None:
        """Open a range."""
        self._package.push_range(message, domain=self._domain)

    def pop(self) -> None:
        """Close the innermost range of the domain."""
        self._package.pop_range(domain=self._domain)


class TorchEmitter:
    """torch.cuda.nvtx: no domain; the message grammar counts in any."""

    name = "torch.cuda.nvtx"

    def __init__(self, nvtx: Any) -> None:
        self._nvtx = nvtx

    def push(self, message: str) -> None:
        """Open a range."""
        self._nvtx.range_push(message)

    def pop(self) -> None:
        """Close the innermost range."""
        self._nvtx.range_pop()


def choose_emitter(domain: str) -> Emitter | None:
    """The first that records: libnvtx3interop, Python nvtx, torch.cuda.nvtx of a torch already imported; else None."""
    library = load_interop()
    if library is not None:
        return InteropEmitter(library, domain)
    package = _recording_package(domain)
    if package is not None:
        return PackageEmitter(package, domain)
    torch = sys.modules.get("torch")
    if torch is not None and getattr(getattr(torch, "version", None), "cuda", None):
        return TorchEmitter(torch.cuda.nvtx)
    return None


def load_interop() -> Any | None:
    """libnvtx3interop out of the packages of this Python, else out of a CUDA toolkit; None when none loads.

    PyDLL: the calls take about a microsecond, less than giving up and taking back the interpreter lock may cost.
    """
    for path in interop_paths():
        try:
            library = ctypes.PyDLL(str(path))
        except OSError:
            continue
        if hasattr(library, "nvtxDomainRangePushEx"):
            return library
    return None


def interop_paths() -> Iterator[Path]:
    """Where the library may be: nvidia/*/lib of each entry of sys.path (the wheels), then the toolkits."""
    for entry in filter(None, sys.path):
        yield from sorted(Path(entry, "nvidia").glob(f"*/lib/{_LIBRARY}"))
    root, *places = _TOOLKITS
    for place in places:
        yield from sorted(Path(root).glob(f"{place}/{_LIBRARY}"))


def _recording_package(domain: str) -> Any | None:
    """Python nvtx when it records here: before 0.2.12 it always does; later it shows by the domain it hands out."""
    if importlib.util.find_spec("nvtx") is None:
        return None
    package: Any = importlib.import_module("nvtx")
    get_domain = getattr(package, "get_domain", None)
    if get_domain is not None and type(get_domain(domain)).__name__ == "DummyDomain":
        return None
    return package
