"""Addresses as people type them."""

from __future__ import annotations

import click


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
        if not host or not port.isdigit() or int(port) > 65_535:
            self.fail(f"{value!r} is not HOST:PORT", param, ctx)
        return host.strip("[]"), int(port)
