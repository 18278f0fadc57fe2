"""The options of `kafkalite serve` that have it show a console."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from kafkalite.cli._where import Settings, SettingsFile

OPTION = "--console"


@dataclass(slots=True, frozen=True)
class ConsoleWanted:
    """Where, and what it may do. properties: how a client comes to this broker."""

    address: str
    properties: dict[str, str]
    may_change: bool
    registry: str | None
    names: tuple[str, ...]
    port_file: str | None


def console_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command is given them as `console`, None when nobody wants one."""

    @click.option(OPTION, "console_address", metavar="HOST:PORT",
                  help="Show a console in the browser there; port 0 picks one.")
    @click.option("--console-allow-changes", is_flag=True,
                  help="Let it write records, make and delete topics, reset groups.")
    @click.option("--console-config", type=SettingsFile(),
                  help="How it comes to the broker, where TLS needs more than the protocol: "
                       "ssl.truststore.*, or who is logged in for all.")
    @click.option("--console-registry", metavar="URL", help="A schema registry for it.")
    @click.option("--console-allow-host", multiple=True, metavar="NAME",
                  help="A name under which browsers may ask; may be repeated.")
    @click.option("--console-port-file", metavar="FILE",
                  help="Write the port of --console to FILE.")
    @wraps(command)
    def run(
        *, console_address: str | None, console_allow_changes: bool,
        console_config: Settings | None, console_registry: str | None,
        console_allow_host: tuple[str, ...], console_port_file: str | None, **given: Any,
    ) -> None:  # fmt: skip
        others = (console_allow_changes, console_config, console_registry, console_allow_host,
                  console_port_file)  # fmt: skip
        if console_address is None:
            if any(each not in (None, False, ()) for each in others):
                raise click.UsageError(f"--console-… goes with {OPTION} HOST:PORT")
            command(console=None, **given)
            return
        command(console=ConsoleWanted(
            console_address, {} if console_config is None else console_config.values,
            console_allow_changes, console_registry,
            console_allow_host, console_port_file,
        ), **given)  # fmt: skip

    return run
