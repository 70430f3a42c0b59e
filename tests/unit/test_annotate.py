"""The message grammar, and the emitter that is chosen."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mfupipe
from mfupipe import annotate, emitters
from mfupipe.annotate import Annotation, operator, parse_message, step, write_message
from mfupipe.errors import EnvironmentProblem, UsageError

NAME = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
COUNT = st.integers(0, (1 << 53)) | st.floats(0, 9e18)


class Recorder:
    """Keeps what it is told."""

    name = "recorder"

    def __init__(self) -> None:
        self.calls: list[str] = []

    def push(self, message: str) -> None:
        self.calls.append(message)

    def pop(self) -> None:
        self.calls.append("pop")


def test_ranges_are_pushed_and_popped_around_the_work() -> None:
    recorder = Recorder()
    with annotate.emitting_to(recorder), step(3, flop=1.2e12, items=128), operator("attention", dtype="bf16"):
        recorder.calls.append("work")
    assert recorder.calls == ["step|index=3|flop=1200000000000|items=128", "attention|dtype=bf16", "work", "pop", "pop"]


def test_a_range_is_closed_when_the_work_raises() -> None:
    recorder = Recorder()
    with annotate.emitting_to(recorder), pytest.raises(ZeroDivisionError), operator("boom"):
        raise ZeroDivisionError
    assert recorder.calls == ["boom", "pop"]


def test_separators_and_control_characters_are_percent_encoded() -> None:
    assert write_message("a|b=50%\n\x85é") == "a%7Cb%3D50%25%0A%C2%85é"


def test_a_missing_field_is_left_out_and_never_zero() -> None:
    assert write_message("mm", flop=None, bytes=0) == "mm|bytes=0"


def test_a_fraction_is_written_in_full() -> None:
    assert write_message("x", flop=0.1, bytes=2.5e-7) == "x|flop=0.1|bytes=2.5e-07"


@pytest.mark.parametrize(
    ("field", "value"),
    [("flop", -1), ("flop", float("nan")), ("bytes", float("inf")), ("flop", 1e19), ("direction", "up"), ("flops", 1)],
)
def test_a_value_that_cannot_be_read_back_is_refused(field: str, value: float | str) -> None:
    with pytest.raises(UsageError, match=field):
        write_message("x", **{field: value})


@given(NAME, COUNT, COUNT, NAME)
def test_what_is_written_is_read_back(name: str, flop: float, size: float, dtype: str) -> None:
    message = write_message(name, flop=flop, bytes=size, dtype=dtype, direction="backward")
    assert not any(ord(character) < 32 for character in message)
    assert parse_message(message) == Annotation(name, flop=flop, bytes=size, dtype=dtype, direction="backward")


@given(st.text(max_size=60), st.sampled_from(["mfupipe", "", "other"]))
def test_no_text_makes_the_parser_raise(text: str, domain: str) -> None:
    assert isinstance(parse_message(text, domain), Annotation)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("mm", Annotation("mm")),
        ("mm|flop=1.2e12|bytes=3.4e9|dtype=bf16", Annotation("mm", flop=1.2e12, bytes=3.4e9, dtype="bf16")),
        ("mm|flop=12|color=red|plain", Annotation("mm", flop=12)),
        ("mm|flop=twelve", Annotation("mm", bad=("flop",))),
        ("mm|flop=1|flop=1", Annotation("mm", bad=("flop",))),
        (
            "mm|flop=-1|bytes=0x10|extra_flop=1e999|direction=up",
            Annotation("mm", bad=("bytes", "direction", "extra_flop", "flop")),
        ),
        ("step|index=7|items=128|phase=train", Annotation("step", index=7, items=128, phase="train")),
        ("a%7Cb|flop=1", Annotation("a|b", flop=1)),
    ],
)
def test_a_message_in_our_domain_is_taken_apart(message: str, expected: Annotation) -> None:
    assert parse_message(message) == expected


@pytest.mark.parametrize(
    ("message", "name", "flop"),
    [
        ('x | "a,b"\n2', 'x | "a,b"\n2', None),
        ("mm|flop=12", "mm", 12),
        ("mm|flop=12|plain", "mm|flop=12|plain", None),
        ("mm|flop=12|color=red", "mm|flop=12|color=red", None),
        ("mm|dtype=bf16", "mm|dtype=bf16", None),
    ],
)
def test_elsewhere_a_message_counts_only_when_it_can_be_no_name(message: str, name: str, flop: float | None) -> None:
    parsed = parse_message(message, "")
    assert (parsed.name, parsed.flop) == (name, flop)


def test_nothing_to_emit_with_is_silent_unless_one_is_required() -> None:
    with annotate.emitting_to(None):
        with operator("quiet", flop=1):
            pass
        with pytest.raises(EnvironmentProblem, match="cannot be emitted"):
            annotate.require_emitter()


class Function:
    """A foreign function of ctypes: takes restype and argtypes, and notes its calls."""

    def __init__(self, name: str, calls: list[Any], answer: int) -> None:
        self.name, self.calls, self.answer = name, calls, answer

    def __call__(self, *arguments: Any) -> int:
        self.calls.append((self.name, *map(self.readable, arguments)))
        return self.answer

    @staticmethod
    def readable(argument: Any) -> Any:
        fields = getattr(argument, "_obj", None)
        return argument if fields is None else (fields.version, fields.size, fields.message_type, fields.message)


class Library:
    """A stand-in for libnvtx3interop; push answers -1, as under nsys."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.nvtxDomainCreateA = Function("create", self.calls, 77)
        self.nvtxDomainRangePushEx = Function("push", self.calls, -1)
        self.nvtxDomainRangePop = Function("pop", self.calls, -1)


def test_the_interop_library_gets_domain_and_whole_message() -> None:
    library = Library()
    emitter = emitters.InteropEmitter(library, "mfupipe")
    emitter.push("é|flop=1")
    emitter.pop()
    pushed = ("push", 77, (3, 48, 1, "é|flop=1".encode()))
    assert library.calls == [("create", b"mfupipe"), pushed, ("pop", 77)]


class Dummy:
    """What nvtx 0.2.12 and later hands out when nothing is recorded."""


Dummy.__name__ = "DummyDomain"


@pytest.mark.parametrize(
    ("package", "torch_cuda", "chosen"),
    [
        (types.SimpleNamespace(get_domain=lambda _: object(), push_range=None), None, "nvtx"),
        (types.SimpleNamespace(push_range=None), None, "nvtx"),
        (types.SimpleNamespace(get_domain=lambda _: Dummy()), "13.0", "torch.cuda.nvtx"),
        (types.SimpleNamespace(get_domain=lambda _: Dummy()), None, None),
    ],
)
def test_the_first_emitter_that_records_is_chosen(
    monkeypatch: pytest.MonkeyPatch, package: Any, torch_cuda: str | None, chosen: str | None
) -> None:
    torch = types.SimpleNamespace(
        version=types.SimpleNamespace(cuda=torch_cuda), cuda=types.SimpleNamespace(nvtx=object())
    )
    monkeypatch.setattr(emitters, "load_interop", lambda: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(importlib, "import_module", lambda _: package)
    monkeypatch.setitem(sys.modules, "torch", torch)
    found = emitters.choose_emitter("mfupipe")
    assert (found.name if found is not None else None) == chosen


def test_the_library_of_the_wheel_comes_before_the_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "nvidia" / "cu13" / "lib" / "libnvtx3interop.so.1"
    wheel.parent.mkdir(parents=True)
    wheel.touch()
    monkeypatch.setattr(sys, "path", ["", str(tmp_path)])
    assert next(emitters.interop_paths()) == wheel


def test_a_library_that_does_not_load_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "libnvtx3interop.so.1"
    broken.write_text("not a library")
    monkeypatch.setattr(emitters, "interop_paths", lambda: iter([broken]))
    assert emitters.load_interop() is None


def test_importing_annotate_brings_nothing_but_the_standard_library() -> None:
    code = "import sys; import mfupipe.annotate; print(*sorted({n.partition('.')[0] for n in sys.modules}))"
    root = str(Path(mfupipe.__file__).parents[1])
    argv = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {root!r}); {code}"]
    loaded = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) - sys.stdlib_module_names - {"__main__"} == {"mfupipe"}


# These run inside a measured program that has torch; calibrate's probe is a program of its own.
WITH_TORCH = {"annotate_torch", "torch_calls", "measure", "probe"}


def test_no_module_of_the_core_imports_torch_or_what_imports_it() -> None:
    modules = list(Path(mfupipe.__file__).parent.rglob("*.py"))
    core = {path for path in modules if path.stem not in WITH_TORCH}
    assert len(core) == len(modules) - len(WITH_TORCH)
    assert {path.stem for path in modules if "torch" in _imports(path)} == WITH_TORCH
    assert not {path.stem for path in core if _imports(path) & {f"mfupipe.{name}" for name in WITH_TORCH}}


def _imports(path: Path) -> set[str]:
    """Modules that a file names in imports: packages by their first name, ours in full."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "importlib.import_module":
            names |= {str(a.value) for a in node.args if isinstance(a, ast.Constant)}
    return names | {name.partition(".")[0] for name in names}
