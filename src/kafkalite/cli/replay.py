"""`kafkalite replay`: whether two brokers answer a recorded application alike."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.progress import Progress
from rich.text import Text

from kafkalite.cli import _conversation_screen as screen
from kafkalite.cli._addresses import Address
from kafkalite.testing.comparison.comparing import Difference
from kafkalite.testing.comparison.differences import explain
from kafkalite.testing.comparison.replaying import Exchange, Replay
from kafkalite.testing.comparison.side import Side
from kafkalite.testing.recording import trace

SHOWN_CHARACTERS = 300


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--against", "ours", required=True, type=Address(), metavar="HOST:PORT",
              help="The broker in question.")
@click.option("--oracle", "theirs", required=True, type=Address(), metavar="HOST:PORT",
              help="The broker that is right by definition.")
@click.option("--all", "shows_allowed", is_flag=True,
              help="Also show differences that are known and allowed, with their reasons.")
def command(
    file: Path, ours: tuple[str, int], theirs: tuple[str, int], shows_allowed: bool
) -> None:
    """Send the requests in FILE, a trace of `kafkalite proxy`, to two brokers and compare.

    Both should be without the topics and groups of the trace, or the same in them. Ids that
    brokers choose are translated. Exit code 0: both answered alike; 1: they did not.
    """
    try:
        said = list(trace.read(file.read_text(encoding="utf-8").splitlines()))
    except ValueError as reason:
        raise click.ClickException(f"{file}: {reason}") from None
    sides = Side(*ours), Side(*theirs)
    try:
        sys.exit(_report(Replay(*sides, said), shows_allowed))
    except OSError as reason:
        raise click.ClickException(f"a broker cannot be reached: {reason}") from None
    finally:
        for side in sides:
            side.close()


def _report(replay: Replay, shows_allowed: bool) -> int:
    """The exit code."""
    asked: Counter[tuple[str, int]] = Counter()
    left_out = differing = 0
    allowed: Counter[str] = Counter()
    with _progress(len(replay)) as advance:
        for number, exchange in enumerate(replay.run(), 1):
            advance()
            left_out += exchange.is_left_out
            asked[exchange.api, exchange.asked.version or 0] += not exchange.is_left_out
            differing += bool(exchange.differences)
            allowed.update(row.reason for row in map(explain, exchange.allowed) if row)
            _show(number, exchange, exchange.differences, shows_allowed)
    screen.OUT.print(
        f"{sum(asked.values())} requests, {len({api for api, _ in asked})} APIs,"
        f" {len(+asked)} versions; {differing} answered differently;"
        f" {left_out} left out; {sum(allowed.values())} differences are allowed", highlight=False,
    )
    return 1 if differing else 0


def _show(
    number: int, exchange: Exchange, found: list[Difference], shows_allowed: bool
) -> None:
    shown = found + (exchange.allowed if shows_allowed else [])
    for each in shown:
        row = explain(each)
        screen.OUT.print(
            Text.assemble(
                (f"request {number}: {each.api} v{each.version} {each.place}\n", "bold"),
                f"    against  {_short(each.ours)}\n    oracle   {_short(each.theirs)}",
                (f"\n    allowed: {row.reason}" if row else "", "dim"),
            )
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    with Progress(console=screen.ERR, disable=not screen.ERR.is_terminal) as bar:
        task = bar.add_task("replaying", total=total)
        yield lambda: bar.advance(task)
