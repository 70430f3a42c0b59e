"""Run the commands of README.md's console blocks and write what they print below them; `--check` only compares.

Each `$ mfupipe ...` line runs in one temporary directory, in the order of the page, where `capture.sqlite.gz` is the
demo's capture. Standard output is shown; progress and warnings are not.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mfupipe.paths import DEMO_CAPTURE

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"(?<=```console\n)\$ (?P<command>mfupipe .+)\n(?:.*\n)*?(?=```)")


def refreshed(text: str) -> str:
    """The page with the output of its commands as it is now."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shutil.copy(DEMO_CAPTURE, folder / "capture.sqlite.gz")
        return BLOCK.sub(lambda found: f"$ {found['command']}\n{output(found['command'], folder)}", text)


def output(command: str, folder: Path) -> str:
    """What a command prints. Raises CalledProcessError when it fails."""
    environment = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config"), "COLUMNS": "120"}
    argv = [sys.executable, "-m", *shlex.split(command)]
    ended = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=folder, env=environment)
    return ended.stdout


def main() -> None:
    """Write, or with --check exit with 1 when the page is stale."""
    before = README.read_text(encoding="utf-8")
    after = refreshed(before)
    if "--check" not in sys.argv[1:]:
        README.write_text(after, encoding="utf-8")
    elif after != before:
        sys.exit("README.md shows old output: run make docs")


if __name__ == "__main__":
    main()
