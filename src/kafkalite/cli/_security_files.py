"""Files of settings that say how a command is let in, and how others are let in by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from ssl import SSLContext

    from kafkalite.security.client_login import Security

T = TypeVar("T")


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
