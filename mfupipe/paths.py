"""Where the files that are not Python lie: beside the package in a checkout, inside it in an installed wheel."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def _bundled(name: str) -> Path:
    """`mfupipe/bundled/NAME`, which only a wheel has, else NAME beside the package."""
    inside = PACKAGE / "bundled" / name
    return inside if inside.is_dir() else PACKAGE.parent / name


QUERIES = _bundled("queries")
WORKLOADS = _bundled("workloads")
DEMO_CAPTURE = PACKAGE / "demo" / "h200_transformer_layer_train_emit_nvtx.sqlite.gz"
