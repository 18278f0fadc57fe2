"""What a command tells: a table for people; JSON, YAML, or names alone, for scripts."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._as_program import complain, ending_well, exit_code, legible_text
from kafkalite.cli._where import JSON, NAME, SHAPES, TABLE, YAML, Where

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster

_GAP = "  "
_LONGEST_S = 1e9  # somebody's life

Row = Mapping[str, Any]


class Seconds(click.FloatRange):
    """So many and a number that one can wait for."""

    def __init__(self, least: float) -> None:
        super().__init__(min=least, max=_LONGEST_S)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is no number of seconds", param, ctx)
        return seconds


output_option = click.option(
    "-o", "--output", "shape", type=click.Choice(SHAPES), show_default=f"the profile's, or {TABLE}",
    help="A table for people; JSON, YAML or names for scripts.",
)  # fmt: skip
timeout_option = click.option(
    "--timeout", "timeout_s", type=Seconds(0), default=30.0, show_default=True,
    help="Seconds for which brokers that do not answer are asked.",
)  # fmt: skip


def tell(shape: str, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """The first column is the name. JSON has what a table leaves out, too."""
    if shape == JSON:
        from kafkalite.client.rendering import legible

        shown = json.dumps([dict(row) for row in rows], indent=2, ensure_ascii=False)
        click.echo(legible(shown))
    elif shape == YAML:
        from kafkalite.client.rendering import as_text

        click.echo(as_text([dict(row) for row in rows]) if rows else "[]")
    elif shape == NAME:
        for name in dict.fromkeys(str(row[columns[0]]) for row in rows):
            click.echo(legible_text(name) if sys.stdout.isatty() else name, color=True)
    else:
        _table(rows, columns)


def _table(rows: Sequence[Row], columns: Sequence[str]) -> None:
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    is_number = [
        all(isinstance(row.get(column), int | float | None) for row in rows) for column in columns
    ]
    heads = [column.upper().replace("_", " ") for column in columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    for line in (heads, *cells):
        shown = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_number, strict=True)
        )
        click.echo(_GAP.join(shown).rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, list):
        return ",".join(map(str, value)) or "-"
    return legible_text(str(value)) or "-"


def moment(at_ms: int) -> str | None:
    """A time as people know it; None for none."""
    if at_ms < 0:
        return None
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")


def is_meant(name: str, patterns: Sequence[str]) -> bool:
    """Whether it is one of those that were named, with * and ?; without a name all are."""
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def tell_missing(sentences: Iterable[str]) -> None:
    """What could not be had."""
    for sentence in sentences:
        complain(sentence)


def with_cluster(
    where: Where, act: Callable[[Cluster], None], changes: str | None = None
) -> None:
    """The body of a command that asks a cluster; `changes` is what it is about to change."""
    with ending_well(), closing(where.connect()) as cluster:
        try:
            act(cluster)
        except KeyboardInterrupt:
            if changes is not None:
                tell_missing([f"interrupted; {changes} may be changed or not"])
            raise


def each_of(names: Iterable[str], act: Callable[[str], None], done: str) -> None:
    """Does it to each of them, and goes on when one is refused; the exit code tells of the last.
    Says what is done and what is not when it is interrupted."""
    from kafkalite.client.cluster import ClientFailed
    from kafkalite.protocol.errors import Error

    code, left = 0, list(names)
    while left:
        name = left[0]
        try:
            act(name)
        except ClientFailed as failure:
            if failure.code is Error.NONE:  # nobody was there to refuse it
                raise
            complain(str(failure))
            code = exit_code(failure)
        except KeyboardInterrupt:
            click.echo(
                f"kafkalite: interrupted; {name} may be changed or not, and nothing was asked for "
                f"{', '.join(left[1:]) or 'any other'}", err=True,
            )  # fmt: skip
            raise
        else:
            click.echo(f"{name}: {done}")
        left.pop(0)
    if code:
        sys.stdout.flush()
        sys.exit(code)
