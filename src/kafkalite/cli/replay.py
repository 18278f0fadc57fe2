"""`kafkalite replay`: whether two brokers answer a recorded application alike."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import click
from rich.progress import Progress
from rich.text import Text

from kafkalite.cli import _addresses
from kafkalite.cli import _conversation_screen as screen
from kafkalite.cli._replay_ledger import NOT_COMPARED, Ledger
from kafkalite.cli._security_files import SecurityFile
from kafkalite.cli._streams import leave_output
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.security.client_login import OPEN, LoginFailed, Security
from kafkalite.testing.comparison.comparing import Difference
from kafkalite.testing.comparison.differences import explain
from kafkalite.testing.comparison.reaching import expect_broker
from kafkalite.testing.comparison.replaying import Replay
from kafkalite.testing.comparison.side import Side
from kafkalite.testing.recording import trace

SHOWN_CHARACTERS = 300

Address = tuple[str, int]
Place = tuple[Address, Security]


class CannotCompare(click.ClickException):
    exit_code = NOT_COMPARED


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--against", "ours", required=True, type=_addresses.Address(), metavar="HOST:PORT",
              help="The broker in question.")
@click.option("--oracle", "theirs", required=True, type=_addresses.Address(), metavar="HOST:PORT",
              help="The broker that is right by definition.")
@click.option("--against-config", "our_security", type=SecurityFile(), default=OPEN,
              help="How to be let in by the broker in question, as Java's clients are told it.")
@click.option("--oracle-config", "their_security", type=SecurityFile(), default=OPEN,
              help="The same of the other one.")
@click.option("--all", "shows_allowed", is_flag=True,
              help="Also show differences that are known and allowed, with their reasons.")
def command(
    file: Path, ours: Address, theirs: Address, our_security: Security, their_security: Security,
    shows_allowed: bool,
) -> None:
    """Send the requests in FILE, a trace of `kafkalite proxy`, to two brokers and compare.

    Both should be without the topics and groups of the trace, or the same in them. Ids that
    brokers choose are translated. Logins in FILE are left out: what a broker wants to know is in
    --against-config or --oracle-config.

    \b
    Exit code 0: all that was compared was answered alike.
              1: something was answered differently.
              2: wrong usage.
              3: not compared, or not to the end: nothing in FILE can be, FILE cannot be
                 read, a broker is not there or goes away, this was interrupted, or
                 kafkalite made a mistake.
    """
    try:
        places = ((ours, our_security), (theirs, their_security))
        exit_code = _exit_code(file, places, shows_allowed)
    except KeyboardInterrupt:
        raise CannotCompare("the comparison was interrupted") from None
    sys.exit(exit_code)


def _exit_code(file: Path, places: tuple[Place, Place], shows_allowed: bool) -> int:
    said = _read(file)
    for place in places:
        _expect(*place)
    ours, theirs = (Side(*address, security) for address, security in places)
    with closing(ours), closing(theirs):
        return _run(Replay(ours, theirs, said), shows_allowed)


def _read(file: Path) -> list[trace.Said]:
    try:
        with file.open("rb") as lines:
            return list(trace.read(lines))
    except (OSError, ValueError) as reason:
        raise CannotCompare(f"{file}: {reason}") from None


def _expect(address: Address, security: Security) -> None:
    try:
        expect_broker(*address, security)
    except OSError as reason:
        raise CannotCompare(str(reason)) from None


def _run(replay: Replay, shows_allowed: bool) -> int:
    """The exit code."""
    ledger = Ledger(len(replay))
    trouble = None
    try:
        with _progress(ledger.total) as advance:
            for number, exchange in enumerate(replay.run(), 1):
                advance()
                ledger.add(exchange)
                _show(number, exchange.differences)
                if shows_allowed:
                    _show(number, exchange.allowed)
    except (OSError, MalformedFrame, LoginFailed) as reason:
        trouble = f"the comparison ended: {reason}"
    except KeyboardInterrupt:
        trouble = "the comparison was interrupted"
    except Exception as mistake:  # noqa: BLE001 - no exit code of a difference that nobody saw
        traceback.print_exc()
        trouble = f"the comparison ended by a mistake of kafkalite's, please report it: {mistake!r}"
    for line in ledger.lines():
        _print(line)
    if trouble is not None:
        raise CannotCompare(trouble)
    return ledger.exit_code


def _show(number: int, found: list[Difference]) -> None:
    for each in found:
        row = explain(each)
        _print(
            Text.assemble(
                (f"request {number}: {each.api} v{each.version} {each.place}\n", "bold"),
                f"    against  {_short(each.ours)}\n    oracle   {_short(each.theirs)}",
                (f"\n    allowed: {row.reason}" if row else "", "dim"),
            )
        )


def _print(text: str | Text) -> None:
    """Where that cannot be read any more, the exit code still tells what was found."""
    try:
        screen.OUT.print(text, highlight=False)
    except OSError as reason:
        leave_output()
        with suppress(OSError):
            screen.ERR.print(f"what was found is not printed: {reason.strerror}", highlight=False)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    with Progress(console=screen.ERR, disable=not screen.ERR.is_terminal) as bar:
        task = bar.add_task("replaying", total=total)
        yield lambda: bar.advance(task)
