"""The tree keeps its shape: imports go downwards, files stay short, and no file knows the machine it was written on."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "mfupipe"
# A module may import from its own part and from parts of a lower level.
LEVELS = (
    {"__main__"},
    {"cli"},
    {"pipeline"},
    {"profile", "ingest", "warehouse", "report", "doctor", "calibrate"},
    {"figures"},
    {"figure_roofline"},
    {"figure_canvas"},
    {"figure_labels"},
    {"phrases"},
    {"annotate_torch", "measure"},
    {"annotate"},
    {"emitters", "torch_calls", "headers"},
    {"costs", "devices"},
    {"run", "units", "paths", "inject", "nsys_places"},
    {"errors"},
)
# Stages do not import each other; doctor is a look at what profile needs.
SIDEWAYS = {("doctor", "profile")}
MAX_PYTHON_LINES, MAX_SQL_LINES, MAX_BYTES = 400, 110, 1 << 20
MACHINE_PATH = re.compile(rb"/(?:work|root|farm)/|/home/[a-z]+/")


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


def part(module: str) -> str:
    """`mfupipe.profile.nsys` -> `profile`."""
    return module.split(".")[1] if "." in module else "mfupipe"


def level(name: str) -> int:
    return next(index for index, names in enumerate(LEVELS) if name in names)


def imports(path: Path) -> set[str]:
    """Parts of mfupipe that a file imports, at its top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {part(alias.name) for alias in node.names if alias.name.startswith("mfupipe.")}
        elif isinstance(node, ast.ImportFrom) and node.module == "mfupipe":
            found |= {alias.name for alias in node.names if (PACKAGE / alias.name).is_dir() or python(alias.name)}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mfupipe."):
            found.add(part(str(node.module)))
    return found


def python(name: str) -> bool:
    return (PACKAGE / f"{name}.py").is_file()


def sources() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.name != "__init__.py")


def of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downwards(path: Path) -> None:
    own = of(path)
    wrong = {other for other in imports(path) - {own} if level(other) <= level(own) and (own, other) not in SIDEWAYS}
    assert not wrong, f"{own} imports {wrong}"


def test_every_part_of_the_package_has_a_level() -> None:
    assert {of(path) for path in sources()} <= set().union(*LEVELS)


def test_an_upward_import_would_be_found(tmp_path: Path) -> None:
    source = tmp_path / "module.py"
    source.write_text(
        "import mfupipe.cli.main\nfrom mfupipe import devices\ndef f():\n    from mfupipe.errors import X\n"
    )
    assert imports(source) == {"cli", "devices", "errors"}


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_torch_is_never_imported_by_name(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    named |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in named if name.split(".")[0] == "torch"}


def test_modules_and_queries_stay_short() -> None:
    limits = {".py": MAX_PYTHON_LINES, ".sql": MAX_SQL_LINES}
    inside = [path for path in tracked() if path.is_relative_to(PACKAGE) or path.is_relative_to(ROOT / "queries")]
    lengths = {path: len(path.read_bytes().splitlines()) for path in inside if path.suffix in limits}
    assert {str(path): count for path, count in lengths.items() if count > limits[path.suffix]} == {}


def test_no_tracked_file_is_over_a_megabyte() -> None:
    assert [str(path) for path in tracked() if path.stat().st_size > MAX_BYTES] == []


def test_no_tracked_file_names_a_path_of_a_machine() -> None:
    this = Path(__file__).resolve()
    texts = {path: path.read_bytes() for path in tracked() if path.resolve() != this}
    named = {str(path.relative_to(ROOT)) for path, text in texts.items() if MACHINE_PATH.search(text)}
    assert named == set()
