"""Addresses as people type them."""

from __future__ import annotations

import errno
import re
import socket

import click

BACKLOG = 128
HIGHEST_PORT = 65_535
_PORT = re.compile("[0-9]{1,5}")


class Address(click.ParamType[tuple[str, int]]):
    """HOST:PORT, the host of an IPv6 address in brackets or not."""

    name = "HOST:PORT"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        host, _, port = value.rpartition(":")
        if not is_host(host) or not _PORT.fullmatch(port) or int(port) > HIGHEST_PORT:
            self.fail(f"{value!r} is not HOST:PORT", param, ctx)
        return host.strip("[]"), int(port)


def is_host(text: str) -> bool:
    """Whether a resolver can be asked for it."""
    try:
        return bool(text.encode("idna"))
    except UnicodeError:  # an empty or overlong part, or no characters
        return False


def listening(option: str, host: str, port: int) -> socket.socket:
    """A socket that listens there; ClickException says why it is not to be had."""
    try:
        [family, *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        why = error.strerror or error
        cure = "; choose another port, or 0" if error.errno == errno.EADDRINUSE else ""
        raise click.ClickException(f"{option} {host}:{port}: {why}{cure}") from None
