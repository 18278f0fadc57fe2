"""Rows for people: a line while they come, a table at the end, a page and plots to keep.

Owns the generated part of docs/performance.md, between two marks; what is written by hand around it
stays. Never measures.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import matplotlib
from rich.table import Table

from bench.rows import Row, number, spread

matplotlib.use("svg")
from matplotlib import pyplot

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
PLOTS = ROOT / "docs" / "performance"
BEGIN, END = "<!-- rows: written by make bench -->", "<!-- end of rows -->"
BEGIN_COMPILED = "<!-- compiled: written by python -m bench --compiled -->"
END_COMPILED = "<!-- end of compiled -->"
MET, MISSED, NOT_ASKED = "#3a7d44", "#b5482a", "#6b7280"
BAR_INCHES = 0.3


def line(row: Row) -> str:
    compared = f" against {number(row.theirs)}, {number(row.ratio)} ×" if row.ratio else ""
    if row.compiled:
        compared += f"; compiled {number(row.as_compiled.ours)}"
        compared += f", {number(row.as_compiled.ratio)} ×" if row.ratio else ""
    verdict = {True: "[green]met[/]", False: "[red]short[/]", None: ""}[row.is_met]
    return f"{row.name}: {number(row.ours)}{compared} {row.unit} {verdict}"


def table(rows: Iterable[Row], who: str = "kafkalite") -> Table:
    shown = Table(title=f"{who} and Apache Kafka 4.3.1, medians", title_justify="left")
    for name in "what unit kafkalite ± Kafka ± ratio goal floor ceiling".split():
        shown.add_column(name, justify="left" if name in ("what", "unit", "goal") else "right")
    suite = ""
    for row in rows:
        if suite and row.suite != suite:
            shown.add_section()
        suite = row.suite
        style = {True: "green", False: "red", None: ""}[row.is_met]
        shown.add_row(*_cells(row), style=style)
    return shown


def _cells(row: Row) -> list[str]:
    spreads = [spread(values) for values in (row.kafkalite, row.kafka)]
    ours, theirs = (f"{value:.0%}" if value is not None else "" for value in spreads)
    return [
        row.name, row.unit, number(row.ours), ours, number(row.theirs), theirs,
        number(row.ratio), row.goal_text, number(row.floor), number(row.ceiling),
    ]  # fmt: skip


def machine() -> dict[str, str]:
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": " ".join(f"{value:.1f}" for value in os.getloadavg()),
        "commit": _commit(),
    }


def _processor() -> str:
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1] if found else platform.machine()


def _commit() -> str:
    call = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


# --- the page -------------------------------------------------------------------------------------


def write(rows: list[Row]) -> None:
    """Puts the rows of all suites into the page, and a plot per suite beside it."""
    suites: dict[str, list[Row]] = {}
    for row in rows:
        suites.setdefault(row.suite, []).append(row)
    parts: list[str] = []
    for suite, found in suites.items():
        parts += [f"### {suite}", "", *_markdown(found), ""]
        if _plot(suite, found):
            parts += [f"![{suite}: ratios to Apache Kafka](performance/{suite}.svg)", ""]
    _put_between(BEGIN, END, parts)


def write_compiled(rows: Iterable[Row]) -> None:
    """Puts kafkalite, as it is and compiled, into the page."""
    lines = [
        "| what | unit | kafkalite | compiled | | Apache Kafka | compiled to Apache Kafka | goal | met |",  # noqa: E501
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | --- |",
    ]
    for row in rows:
        compiled = row.as_compiled
        cells = [
            row.name, row.unit, number(row.ours), number(compiled.ours),
            f"{number(compiled.ours / row.ours)} ×", number(row.theirs), number(compiled.ratio),
            row.goal_text, {True: "yes", False: "**no**", None: ""}[compiled.is_met],
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    _put_between(BEGIN_COMPILED, END_COMPILED, [*lines, ""])


def _put_between(begin: str, end: str, lines: list[str]) -> None:
    before, rest = PAGE.read_text().split(begin)
    after = rest.split(end)[1]
    PAGE.write_text("\n".join([before + begin, "", *lines, end]) + after)


def _markdown(rows: list[Row]) -> list[str]:
    lines = [
        "| what | unit | kafkalite | ± | Apache Kafka | ± | ratio | goal | met | floor | ceiling |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | --- | ---: | ---: |",
    ]
    for row in rows:
        cells = _cells(row)
        cells.insert(8, {True: "yes", False: "**no**", None: ""}[row.is_met])
        lines.append(f"| {' | '.join(cells)} |")
    notes = dict.fromkeys(f"{row.note}" for row in rows if row.note)
    return [*lines, "", *notes] if notes else lines


def _plot(suite: str, rows: list[Row]) -> bool:
    """A bar per row: the ratio on a scale where twice and half are as long, a mark at the goal."""
    rows = [row for row in rows if row.ratio]
    if not rows:
        return False
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + BAR_INCHES * len(rows)))
    for place, row in enumerate(reversed(rows)):
        ratio = row.ratio or 1.0
        color = {True: MET, False: MISSED, None: NOT_ASKED}[row.is_met]
        axes.barh(place, ratio - 1, left=1, color=color, height=0.7)
        if row.goal is not None:
            axes.plot([row.goal] * 2, [place - 0.45, place + 0.45], color="black", linewidth=1.5)
    axes.set_xscale("log", base=2)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [_label(row) for row in reversed(rows)], fontsize=8)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} ×")
    axes.set_xlabel("kafkalite / Apache Kafka; the mark is the goal", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    PLOTS.mkdir(exist_ok=True)
    metadata = {"Date": None}  # so that the same rows give the same file
    figure.savefig(PLOTS / f"{suite}.svg", bbox_inches="tight", metadata=metadata)
    pyplot.close(figure)
    return True


def _label(row: Row) -> str:
    return f"{row.name} ({'more' if row.is_rate else 'less'} is better)"
