"""What a command is as one of several programs in a pipe: where its input and output end, signals,
and exit codes.

1 for what failed, with one sentence; 130 for Ctrl-C, 141 when nobody reads any more, as the shell
has it for programs that these signals end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import click

from kafkalite.cli._streams import leave_output

if TYPE_CHECKING:
    from ssl import SSLContext

    from kafkalite.security.client_login import Security

T = TypeVar("T")

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


class SecurityFile(click.ParamType["Security"]):
    """The settings of a client as Java's have them, of which those of security are taken."""

    name = "FILE"

    def convert(
        self, value: str | Security, param: click.Parameter | None, ctx: click.Context | None
    ) -> Security:
        from kafkalite.security.client_settings import is_of_security, security_of

        if not isinstance(value, str):
            return value
        return _read(value, param, ctx, is_of_security, security_of)


class ListenFile(click.ParamType["SSLContext"]):
    """The settings of a listener, of which those of TLS are taken."""

    name = "FILE"

    def convert(
        self, value: str | SSLContext, param: click.Parameter | None, ctx: click.Context | None
    ) -> SSLContext:
        from kafkalite.security.client_settings import shown_context

        if not isinstance(value, str):
            return value
        return _read(
            value, param, ctx, lambda name: name.startswith("ssl."), shown_context
        )


def _read(
    path: str,
    param: click.Parameter | None,
    context: click.Context | None,
    is_of_these: Callable[[str], bool],
    read: Callable[[dict[str, str]], T],
) -> T:
    """What the settings in a file come to; others have no effect."""
    from kafkalite.cli._properties_file import PropertiesFile
    from kafkalite.config import InvalidSetting

    given = PropertiesFile().convert(path, param, context)
    others = sorted(name for name in given if not is_of_these(name))
    if others:
        has = "has" if len(others) == 1 else "have"
        click.echo(f"kafkalite: {path}: {', '.join(others)} {has} no effect here", err=True)
    try:
        return read(given)
    except InvalidSetting as error:
        raise click.ClickException(f"{path}: {error}") from None


bootstrap_option = click.option(
    "-b", "--bootstrap", type=Addresses(), default="localhost:9092", show_default=True,
    help="Some broker of the cluster.",
)  # fmt: skip
security_option = click.option(
    "--command-config", "security", type=SecurityFile(),
    help="How to be let in, as Java's clients are told it: security.protocol, ssl.*, sasl.*.",
)  # fmt: skip


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
        click.echo(f"kafkalite: {failure}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        leave_output()
        sys.exit(NOBODY_READS)
    except OSError as failure:
        leave_output()
        reason = failure.strerror or failure
        click.echo(f"kafkalite: standard output cannot be written: {reason}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        _flush()
        sys.exit(INTERRUPTED)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        leave_output()
