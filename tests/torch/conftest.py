"""Files here import torch: `make test` does not collect them where it is absent, `.ci/run` installs and runs them."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]
