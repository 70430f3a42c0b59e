"""The command line: parse, call, print. Only `main` catches, and it alone exits."""

from mfupipe.cli.main import app, main

__all__ = ["app", "main"]
