"""The page as one self-contained HTML file: style and pictures inline, no script, no request."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from mfupipe.report.page import Page, headline_of

TEMPLATES = Path(__file__).parent / "templates"


def html_page(page: Page, pictures: Mapping[str, bytes]) -> str:
    """Render the page. pictures: file name -> PNG, as `roofline.png`, and `roofline_2.png` for the second view."""
    style = Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))  # noqa: S704  our own file
    embedded = {name: "data:image/png;base64," + base64.b64encode(png).decode() for name, png in pictures.items()}
    return _template().render(page=page, headline=headline_of(page), pictures=embedded, style=style)


def _breakable(name: str) -> Markup:
    """A name that a narrow column breaks after `_`, `.` or `::`, not within a word."""
    parts = re.split(r"(?<=[_.])(?=[^_.])|(?<=::)", name)
    return Markup("<wbr>").join(parts)  # joining escapes the parts


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    return environment.get_template("report.html.j2")
