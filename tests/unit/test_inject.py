"""The injected file finds steps, times some, captures as many, and never disturbs its program.

A fake torch, and every Python that is here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import mfupipe.inject

INJECT = Path(mfupipe.inject.__file__).parent
FAKES = Path(__file__).parents[1] / "fakes"
SETUP = "import torch\nmodel = torch.nn.Module([torch.nn.Module(), torch.nn.Module()])\n"
TRAIN = SETUP + "optimizer = torch.optim.SGD([])\nfor _ in range({steps}):\n    model(1); optimizer.step()\n"
INFER = SETUP + "with torch.no_grad():\n    for _ in range({steps}): model(1)\n"
# warm-up 3, then 4 steps timed between two synchronisations, then 4 captured, then silence
CAPTURE = """synchronize synchronize start emit_nvtx shapes=True
open step|index=0 close 7 open step|index=1 close 7 open step|index=2 close 7 open step|index=3 close 7
emit_nvtx off synchronize stop"""


def pythons() -> list[str]:
    """Every CPython from 3.8 on that is here."""
    names = [f"python3.{minor}" for minor in range(8, 30)]
    found = [path for name in names if (path := shutil.which(name))]
    found += map(str, Path.home().glob(".pyenv/versions/3.*/bin/python"))
    answers = {path: _version(path) for path in [sys.executable, *found]}
    newest_first = sorted(((v, p) for p, v in answers.items() if v >= (3, 8)), reverse=True)
    return list(dict(newest_first).values())


def _version(path: str) -> tuple[int, ...]:
    result = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    match = re.fullmatch(r"Python (\d+)\.(\d+)\..*\s*", result.stdout)
    return (int(match[1]), int(match[2])) if match and result.returncode == 0 else (0, 0)


@dataclass(frozen=True)
class Ran:
    """A program that ran with the file injected."""

    exit_code: int
    stdout: str
    stderr: str
    calls: list[str]
    status: dict[str, object]
    files: list[str]


def run(tmp_path: Path, code: str, *, python: str = sys.executable, **variables: str) -> Ran:
    script, log, status = tmp_path / "program.py", tmp_path / "log", tmp_path / "out" / "status.json"
    status.parent.mkdir(exist_ok=True)
    script.write_text(code)
    environment = {"PATH": os.environ["PATH"], "FAKE_TORCH_LOG": str(log), "MFUPIPE_STATUS": str(status)}
    environment |= {"PYTHONPATH": f"{INJECT}{os.pathsep}{FAKES}", "MFUPIPE_WARMUP": "3", "MFUPIPE_STEPS": "4"}
    result = subprocess.run(
        [python, str(script)],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    written = status if status.exists() else next(iter(status.parent.glob("*.bystander.*")), None)
    return Ran(
        result.returncode,
        result.stdout,
        result.stderr,
        log.read_text().split("\n")[:-1] if log.exists() else [],
        json.loads(written.read_text()) if written else {},
        [path.name for path in status.parent.iterdir()],
    )


@pytest.mark.parametrize("python", pythons(), ids=lambda path: ".".join(map(str, _version(path))))
@pytest.mark.parametrize(("code", "rule"), [(TRAIN, "optimizer"), (INFER, "module")])
def test_steps_are_warmed_up_timed_and_captured(tmp_path: Path, python: str, code: str, rule: str) -> None:
    ran = run(tmp_path, code.format(steps=15), python=python)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "", "")
    assert " ".join(ran.calls) == CAPTURE.replace("\n", " ")
    assert (ran.status["state"], ran.status["rule"], ran.status["steps_captured"]) == ("closed", rule, 4)
    assert ran.status["untraced_step_ns"] == [1_500_000] * 4
    assert ran.status["device"] == "Fake GPU"


def test_operator_ranges_can_be_left_out(tmp_path: Path) -> None:
    ran = run(tmp_path, TRAIN.format(steps=15), MFUPIPE_OPERATORS="none")
    assert "emit_nvtx shapes=True" not in ran.calls and "start" in ran.calls


def test_an_evaluation_inside_training_is_not_taken_for_the_steps(tmp_path: Path) -> None:
    code = SETUP + "o = torch.optim.SGD([])\nfor _ in range(12):\n    [model(1) for _ in range(8)]; o.step()\n"
    ran = run(tmp_path, code)
    assert (ran.status["rule"], ran.status["steps_captured"]) == ("optimizer", 4)


def test_with_two_optimizers_the_first_one_is_the_border(tmp_path: Path) -> None:
    code = SETUP + "a, b = torch.optim.SGD([]), torch.optim.SGD([])\nfor _ in range(12):\n    a.step(); b.step()\n"
    assert run(tmp_path, code).status["steps_seen"] == 11


def test_a_step_that_calls_the_step_of_its_base_is_one_step(tmp_path: Path) -> None:
    code = SETUP + (
        "class Own(torch.optim.SGD):\n    def step(self): super().step()\n"
        "torch.optim.SGD([])\no = Own([])\nfor _ in range(5): model(1); o.step()\n"
    )
    assert run(tmp_path, code).status["steps_seen"] == 5


def test_operator_ranges_change_outside_the_range_that_torch_puts_around_a_step(tmp_path: Path) -> None:
    """The fake emit_nvtx refuses inside; the real one loses the end of the range and complains on stderr."""
    ran = run(tmp_path, TRAIN.format(steps=15))
    assert (ran.status["state"], ran.status["error"], ran.stderr) == ("closed", "", "")
    assert "emit_nvtx off" in ran.calls


def test_a_module_on_the_cpu_is_not_the_step(tmp_path: Path) -> None:
    code = SETUP + (
        "pre = torch.nn.Module(parameter=torch.nn.modules.module.Parameter(is_cuda=False))\n"
        "with torch.no_grad():\n    for _ in range(15): pre(1); model(1)\n"
    )
    assert run(tmp_path, code).status["state"] == "closed"


def test_a_compiled_module_is_hooked_on_its_outside_only(tmp_path: Path) -> None:
    code = SETUP + (
        "model = torch.compile(model)\nhooks = torch.nn.modules.module._global_forward_pre_hooks\n"
        "print(len(hooks))\nwith torch.no_grad():\n    for _ in range(15): model(1)\n"
    )
    ran = run(tmp_path, code)
    assert (ran.stdout, ran.status["state"], ran.status["rule"]) == ("0\n", "closed", "module")


def test_after_the_capture_torch_is_as_it_was(tmp_path: Path) -> None:
    before = "import torch\ninit, compiler = torch.optim.Optimizer.__init__, torch.compile\n"
    after = "print(hasattr(torch.optim.Optimizer.__init__, '__wrapped__'), hasattr(torch.compile, '__wrapped__'))\n"
    after += "print(len(torch.nn.modules.module._global_forward_pre_hooks), len(model._forward_pre_hooks))\n"
    assert run(tmp_path, before + INFER.format(steps=15) + after).stdout == "False False\n0 0\n"


@pytest.mark.parametrize(
    ("code", "variables", "reason"),
    [
        ("print('no torch here')", {}, "no torch"),
        ("import torch", {"FAKE_TORCH_CUDA": "0"}, "no CUDA"),
        (TRAIN.format(steps=15), {"FAKE_TORCH_CUDA": "0"}, "no CUDA"),
        ("import torch", {}, "no repeated module call"),
        ("import torch\ntorch.optim.SGD([])", {}, "no optimizer step"),
        (TRAIN.format(steps=6), {}, "too few steps"),
        (TRAIN.format(steps=9), {}, "the program ended inside the capture"),
    ],
)
def test_a_program_without_enough_steps_says_why(
    tmp_path: Path, code: str, variables: dict[str, str], reason: str
) -> None:
    ran = run(tmp_path, code, **variables)
    assert (ran.exit_code, ran.status["reason"]) == (0, reason)
    assert ran.calls.count("start") == ran.calls.count("stop")


def test_a_capture_of_the_program_itself_is_left_alone(tmp_path: Path) -> None:
    ran = run(tmp_path, "import torch\ntorch.cuda.cudart().cudaProfilerStart()\n" + TRAIN.format(steps=15))
    assert ran.calls == ["start"]
    assert ran.status["reason"] == "the program opens its own capture"


def test_a_fault_inside_is_recorded_and_the_program_goes_on(tmp_path: Path) -> None:
    broken = "import torch\ntorch.cuda.synchronize = None\n"
    ran = run(tmp_path, broken + TRAIN.format(steps=15) + "print('trained')\n")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "trained\n", "")
    assert ran.status["reason"] == "failed" and "TypeError" in str(ran.status["error"])


def test_an_exception_of_the_program_keeps_its_exit_code(tmp_path: Path) -> None:
    ran = run(tmp_path, TRAIN.format(steps=5) + "raise ValueError('loss is NaN')\n")
    assert ran.exit_code == 1 and ran.stderr.endswith("ValueError: loss is NaN\n")


def test_only_the_first_process_captures(tmp_path: Path) -> None:
    child = "import subprocess, sys\nif len(sys.argv) == 1: subprocess.run([sys.executable, __file__, 'child'])\n"
    ran = run(tmp_path, TRAIN.format(steps=15) + child)
    assert ran.calls.count("start") == 1


def test_another_rank_marks_its_steps_and_leaves_the_capture_to_the_first(tmp_path: Path) -> None:
    assert run(tmp_path, TRAIN.format(steps=15), RANK="0").calls.count("start") == 1
    before = run(tmp_path, "pass").calls
    after = run(tmp_path, TRAIN.format(steps=15), RANK="1").calls[len(before) :]
    assert "start" not in after and after.count("close 7") == 4


def test_a_forked_worker_takes_no_part(tmp_path: Path) -> None:
    code = SETUP + "import os\nif os.fork() == 0:\n    torch.optim.SGD([]).step()\n    os._exit(0)\nos.wait()\n"
    ran = run(tmp_path, code)
    assert "status.json.claim" not in ran.files and ran.calls == []


def test_the_shadowed_sitecustomize_runs_and_the_path_is_clean(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("print('user sitecustomize')\n")
    code = "import sys, sitecustomize\nprint(sitecustomize.__file__)\nprint([p for p in sys.path if 'inject' in p])\n"
    path = os.pathsep.join(map(str, (INJECT, own, FAKES)))
    ran = run(tmp_path, code, PYTHONPATH=path)
    assert ran.stdout.splitlines() == ["user sitecustomize", str(own / "sitecustomize.py"), "[]"]


def test_without_a_status_file_nothing_is_hooked(tmp_path: Path) -> None:
    ran = run(tmp_path, "import sys\nprint([type(f).__name__ for f in sys.meta_path])\n", MFUPIPE_STATUS="")
    assert "TorchFinder" not in ran.stdout and ran.files == []
