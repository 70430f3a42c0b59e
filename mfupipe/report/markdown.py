"""The page as GitHub-flavoured Markdown: twelve lines that say it all, then pictures and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mfupipe.report.grids import Cell, Grid
from mfupipe.report.page import Page, Section, headline_of

MARKER = "<!-- mfupipe-report -->"
# GitHub refuses a comment of 65,536 characters.
LENGTH_LIMIT = 65_000
ROWS_SHOWN = 20
_TAME = re.compile(r"[^`|\\]+")
_ACTIVE = re.compile(r"([\\`*_{}\[\]#|~])")


def markdown_page(page: Page, pictures: Iterable[str]) -> str:
    """The whole of report.md. pictures: names of the PNG files beside it."""
    names = set(pictures)
    blocks = [summary(page)]
    for section in page.sections:
        blocks += _section_blocks(section, names, page.sections[0])
    blocks += [f"- {text(line)}" for line in page.also]
    blocks += ["## Warnings", *_table(page.warnings)] if page.warnings.rows else []
    if page.uncovered.rows:
        blocks += _details("What has no operator or no cost", page.all_uncovered)
    if page.kernels.rows:
        blocks += _details("The kernels with most time", page.kernels)
    blocks += ["## Conditions", *(f"- {text(fact.name)}: {code(fact.value)}" for fact in page.conditions)]
    blocks += _table(page.traces)
    blocks += _details("Ceilings and their sources", page.all_roofs) if page.all_roofs.rows else []
    blocks.append("All tables with raw values: `report.json`. The SQL behind each: `report.html`.")
    return _within_limit(blocks)


def summary(page: Page) -> str:
    """At most twelve lines: a marker, by which a bot finds its own comment, the finding, its basis, where to look."""
    alarms = "".join(f"**Error: {text(alarm.message)}** {text(alarm.hint)}<br>" for alarm in page.alarms)
    lines = [MARKER, f"{alarms}**{text(headline_of(page))}**", ""]
    if page.sections:
        first = page.sections[0]
        lines += [text(" · ".join(first.basis)), ""]
        lines += [" · ".join(f"{text(tile.label)} **{text(tile.value)}**" for tile in first.tiles), ""]
        pieces = ", ".join(f"{text(line.label)} {text(line.points)}" for line in first.ledger)
        lines += [f"Points of {text(first.whole)}: {pieces or 'no ledger'}; sum {text(first.ledger_sum)}.", ""]
        lines += [f"Look first at {text('; '.join(first.next_steps))}.", ""] if first.next_steps else []
    lines.append(f"Data: {text(page.warning_words or 'no warnings')}.")
    return "\n".join(lines)


def text(value: str) -> str:
    """Text that Markdown and GitHub leave as it is: no markup, HTML, links, mentions or mathematics."""
    shown = _ACTIVE.sub(r"\\\1", value.replace("&", "&amp;"))
    shown = shown.replace("<", "&lt;").replace(">", "&gt;").replace("$", "<span>$</span>")
    # Mentions and addresses are found in the rendered text, so an escape is not enough: they are broken up.
    return shown.replace("@", "@\N{ZERO WIDTH NON-JOINER}").replace("://", "&#58;//").replace("www.", "www&#46;")


def code(value: str) -> str:
    """Text of a trace as code, also inside a table cell; backticks, bars and backslashes become entities."""
    if _TAME.fullmatch(value) and value == value.strip():
        return f"`{value}`"
    escaped = "".join(part if part.isalnum() or part == " " else f"&#{ord(part)};" for part in value)
    return f"<code>{escaped}</code>"


def _section_blocks(section: Section, pictures: set[str], first: Section) -> list[str]:
    suffix = "" if section is first else f"_{section.position}"
    blocks = (
        [] if section is first else [f"## {text(section.finding)}", text(" · ".join((section.name, *section.basis)))]
    )
    blocks += [f"> {text(note)}" for note in section.notes]
    blocks += _picture("ledger", suffix, pictures)
    if section.operators.rows:
        blocks += [f"### {text(section.operators_title)}", *_table(section.operators)]
    for name in ("operators", "roofline", "steps"):
        blocks += _picture(name, suffix, pictures)
    if section.gaps.rows:
        blocks += _details(section.idle_title, section.gaps)
    if section.ledger_devices.rows:
        blocks += _details("Ledger of each GPU", section.ledger_devices)
    return blocks


def _picture(name: str, suffix: str, pictures: set[str]) -> list[str]:
    file_name = f"{name}{suffix}.png"
    return [f"![{name}]({file_name})"] if file_name in pictures else []


def _details(title: str, grid: Grid) -> list[str]:
    table = "\n\n".join(_table(grid))
    return [f"<details><summary>{text(title)}</summary>\n\n{table}\n\n</details>"]


def _table(grid: Grid) -> list[str]:
    rows, left_out = grid.rows[:ROWS_SHOWN], grid.left_out + max(0, len(grid.rows) - ROWS_SHOWN)
    lines = [_line([text(column.head) for column in grid.columns])]
    lines.append(_line(["---:" if column.is_number else "---" for column in grid.columns]))
    lines += [_line([_cell(cell) for cell in row]) for row in rows]
    return ["\n".join(lines), *([f"{left_out} more rows: report.html, report.json"] if left_out else [])]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    shown = code(cell.text) if cell.is_name else text(cell.text)
    return f"{shown}<br>{code(cell.note)}" if cell.note else shown


def _within_limit(blocks: Sequence[str]) -> str:
    kept, length = [], 0
    for block in blocks:
        length += len(block) + 2
        if length > LENGTH_LIMIT:
            kept.append("Cut here, for GitHub takes no longer comment: the rest is in report.html.")
            break
        kept.append(block)
    return "\n\n".join(kept) + "\n"
