"""Capture a few steps of a PyTorch program that has never heard of a profiler.

Python imports this file by itself when its directory is on PYTHONPATH. It needs the standard library only
and runs on Python 3.8 and later. Without MFUPIPE_STATUS in the environment it does nothing. With it: when
torch is imported, count steps (optimizer steps, else repeated calls of the outermost module), let
MFUPIPE_WARMUP of them pass, time MFUPIPE_STEPS without a profiler, open the capture with cudaProfilerStart,
mark as many steps with ranges, close it, and leave. What happened is written to the file MFUPIPE_STATUS.
A fault in here is recorded there and never reaches the program.
"""

# ruff: noqa: BLE001 - a fault in here must never reach the program
from __future__ import annotations

import atexit
import importlib.util
import json
import os
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
NOTES: dict[str, Any] = {"session": None, "error": "", "pid": os.getpid()}


class TorchFinder:
    """First on sys.meta_path until torch has been imported; finds through the others and adds one call
    after torch's own code."""

    def __init__(self, path: str) -> None:
        self.path = path

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                self.follow(spec.loader)
                return spec
        return None

    def follow(self, loader: Any) -> None:
        original = getattr(loader, "exec_module", None)
        if original is None:
            return

        def exec_module(module: Any) -> None:
            del loader.exec_module
            original(module)
            begin(module, self.path)

        loader.exec_module = exec_module


def load(name: str) -> Any:
    """Run a file beside this one as a module of its own; nothing is added to sys.path or sys.modules."""
    spec = importlib.util.spec_from_file_location("mfupipe_inject_" + name, os.path.join(HERE, name + ".py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def begin(torch: Any, path: str) -> None:
    """Hook torch, which has just been imported. Never raises."""
    try:
        NOTES["session"] = load("session").Session(torch, path)
        load("watch").attach(torch, NOTES["session"])
    except Exception as error:
        NOTES["error"] = f"{type(error).__name__}: {error}"


def at_exit(path: str) -> None:
    """Say how far this process came. Never raises."""
    if os.getpid() != NOTES["pid"]:
        return
    try:
        if NOTES["session"] is not None:
            NOTES["session"].finish()
        elif not os.path.exists(path):
            reason = "failed" if NOTES["error"] else "no torch"
            python = ".".join(str(part) for part in sys.version_info[:3])
            status = {"state": "left", "reason": reason, "error": NOTES["error"], "python": python}
            with open(f"{path}.bystander.{os.getpid()}", "w") as stream:
                json.dump(status, stream)
    except Exception:  # the program's own exit must go on
        return


def run_shadowed_sitecustomize() -> None:
    """Import the sitecustomize that this one hides, as Python would have; its errors are its own."""
    here = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) == HERE]
    sys.path[:] = [entry for entry in sys.path if entry not in here]
    mine = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if mine is not None:
            sys.modules["sitecustomize"] = mine


def start(path: str) -> None:
    """Wait for torch and for the exit of this process."""
    atexit.register(at_exit, path)
    if "torch" in sys.modules:
        begin(sys.modules["torch"], path)
    else:
        sys.meta_path.insert(0, TorchFinder(path))


if os.environ.get("MFUPIPE_STATUS") and __name__ == "sitecustomize":
    start(os.environ["MFUPIPE_STATUS"])
if __name__ == "sitecustomize":
    run_shadowed_sitecustomize()
