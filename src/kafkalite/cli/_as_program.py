"""What a command is as one of several programs in a pipe: where its input and output end, signals,
and exit codes.

1 for what failed, with one sentence; 3 when what was looked for is so, 4 when nobody answers, 5 for
who is not let in; 130 for Ctrl-C, 141 when nobody reads any more, as the shell has it for programs
that these signals end. 2, for a command that is wrong itself, is click's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from kafkalite.cli._streams import leave_output

FAILED, FOUND, NOBODY_ANSWERS, NOT_ALLOWED = 1, 3, 4, 5
INTERRUPTED = 130
NOBODY_READS = 141


class Text(click.ParamType[str]):
    """What goes to a broker as text: UTF-8, as all text of the protocol."""

    name = "TEXT"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                self.fail(f"{value!r} is not UTF-8", param, ctx)
        return value


class Addresses(click.ParamType[list[tuple[str, int]]]):
    """HOST:PORT, several of them with commas."""

    name = "HOST:PORT"

    def convert(
        self,
        value: str | list[tuple[str, int]],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> list[tuple[str, int]]:
        from kafkalite.cli._addresses import Address

        if isinstance(value, list):
            return value
        items = [item.strip() for item in value.split(",") if item.strip()]
        if not items:
            self.fail(f"{value!r} is not HOST:PORT", param, ctx)
        return [Address().convert(item, param, ctx) for item in items]


def exit_code(failure: Exception) -> int:
    """What a failure ends a program with."""
    from kafkalite.client.cluster import NotLetIn, Unreachable
    from kafkalite.protocol.errors import Error

    cause: BaseException | None = failure
    while cause is not None:
        code = getattr(cause, "code", Error.NONE)
        if isinstance(cause, NotLetIn) or code.name.endswith("_AUTHORIZATION_FAILED"):
            return NOT_ALLOWED
        if isinstance(cause, Unreachable):
            return NOBODY_ANSWERS
        cause = cause.__cause__
    return FAILED


def legible_text(text: str) -> str:
    """Without characters that would command a terminal."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def complain(sentence: str) -> None:
    """A sentence may have words of a broker in it, and of anybody who answers in its place."""
    lines = "\n".join(map(legible_text, sentence.split("\n")))
    click.echo(f"kafkalite: {lines}", err=True)


@contextmanager
def ending_well() -> Iterator[None]:
    """Turns the ends of a program into its exit codes."""
    from kafkalite.client.cluster import ClientFailed
    from kafkalite.records.errors import CorruptRecords

    try:
        yield
        sys.stdout.flush()
    except (ClientFailed, CorruptRecords) as failure:
        _flush()
        complain(str(failure))
        sys.exit(exit_code(failure))
    except BrokenPipeError:
        leave_output()
        sys.exit(NOBODY_READS)
    except OSError as failure:
        leave_output()
        reason = failure.strerror or failure
        click.echo(f"kafkalite: standard output cannot be written: {reason}", err=True)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        _flush()
        sys.exit(INTERRUPTED)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        leave_output()
