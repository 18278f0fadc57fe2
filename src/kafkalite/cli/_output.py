"""What a command tells: a table for people; JSON, or names alone, for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._as_program import bootstrap_option, ending_well, security_option

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster
    from kafkalite.security.client_login import Security

TABLE, JSON, NAME = "table", "json", "name"
SHAPES = (TABLE, JSON, NAME)
_GAP = "  "

Row = Mapping[str, Any]

output_option = click.option(
    "-o", "--output", "shape", type=click.Choice(SHAPES), default=TABLE, show_default=True,
    help="A table for people; JSON or names for scripts.",
)  # fmt: skip
timeout_option = click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0), default=30.0, show_default=True,
    help="Seconds for which brokers that do not answer are asked.",
)  # fmt: skip


def tell(shape: str, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """The first column is the name. JSON has what a table leaves out, too."""
    if shape == JSON:
        click.echo(json.dumps([dict(row) for row in rows], indent=2, ensure_ascii=False))
    elif shape == NAME:
        for name in dict.fromkeys(str(row[columns[0]]) for row in rows):
            click.echo(name)
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
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in str(value)) or "-"


def is_meant(name: str, patterns: Sequence[str]) -> bool:
    """Whether it is one of those that were named, with * and ?; without a name all are."""
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def tell_missing(sentences: Iterable[str]) -> None:
    """What could not be had."""
    for sentence in sentences:
        click.echo(f"kafkalite: {sentence}", err=True)


@dataclass(slots=True)
class Where:
    """A cluster, and how to be let in."""

    bootstrap: list[tuple[str, int]]
    security: Security | None

    def connect(self) -> Cluster:
        from kafkalite.client.cluster import Cluster
        from kafkalite.security.client_login import OPEN

        return Cluster(self.bootstrap, security=self.security or OPEN)


def cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options that say which cluster a command is about; it is given them as `where`."""

    @bootstrap_option
    @security_option
    @wraps(command)
    def run(
        *, bootstrap: list[tuple[str, int]], security: Security | None, **given: Any
    ) -> None:
        command(where=Where(bootstrap, security), **given)

    return run


def with_cluster(where: Where, act: Callable[[Cluster], None]) -> None:
    """The body of a command that asks a cluster."""
    with ending_well(), closing(where.connect()) as cluster:
        act(cluster)


def each_of(names: Iterable[str], act: Callable[[str], None], done: str) -> None:
    """Does it to each of them, and goes on when one is refused; exit code 1 then."""
    from kafkalite.client.cluster import ClientFailed
    from kafkalite.protocol.errors import Error

    is_refused = False
    for name in names:
        try:
            act(name)
        except ClientFailed as failure:
            if failure.code is Error.NONE:  # nobody was there to refuse it
                raise
            click.echo(f"kafkalite: {failure}", err=True)
            is_refused = True
        else:
            click.echo(f"{name}: {done}")
    if is_refused:
        sys.stdout.flush()
        sys.exit(1)
