"""`kafkalite profile`: clusters under names, with how to be let in and what to print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kafkalite.cli._as_program import Text
from kafkalite.cli._output import output_option, tell
from kafkalite.cli._profiles import OUTPUT, profiles
from kafkalite.cli._where import (
    BOOTSTRAP,
    SHAPES,
    TABLE,
    ProfileName,
    Servers,
    Settings,
    bootstrap_option,
    config_option,
    settings_of,
)
from kafkalite.cli.topic import be_sure, key_values, yes_option

COLUMNS = ("profile", "in_use", "bootstrap_servers", "security_protocol", "output")
HIDDEN = "(hidden)"
_SECRET = ("password", "jaas", "keystore.key", "secret", "passphrase")
_PATHS = (".location",)

name_argument = click.argument("name", type=ProfileName())


@click.group()
def command() -> None:
    """Keep clusters under names: servers, security and output, in files that you alone can read."""


@command.command("list")
@output_option
def list_profiles(shape: str | None) -> None:
    """List profiles, and tell which one is in use."""
    known = profiles()
    rows: list[dict[str, Any]] = [
        {
            "profile": name, "in_use": name == known.in_use(),
            "bootstrap_servers": values.get(BOOTSTRAP),
            "security_protocol": values.get("security.protocol", "PLAINTEXT"),
            "output": values.get(OUTPUT, TABLE),
        }
        for name in known.names()
        for values in [known.load(name)]
    ]  # fmt: skip
    tell(shape or TABLE, rows, COLUMNS)


@command.command()
@name_argument
def use(name: str) -> None:
    """Have all commands ask this cluster, but those that are told another one."""
    profiles().use(name)
    click.echo(f"{name}: is in use")


@command.command("set")
@name_argument
@bootstrap_option
@config_option
@click.option("-o", "--output", "shape", type=click.Choice(SHAPES), help="What commands print.")
@click.argument("changes", nargs=-1, type=Text(), metavar="[KEY=VALUE]…")
@click.option("--unset", "removed", type=Text(), multiple=True, metavar="KEY",
              help="Leave this setting out; may be repeated.")
def set_profile(
    name: str, bootstrap: Servers | None, client_file: Settings | None, shape: str | None,
    changes: tuple[str, ...], removed: tuple[str, ...],
) -> None:  # fmt: skip
    """Make a profile, or change one.

    \b
        kafkalite profile set local -b localhost:9092
        kafkalite profile set prod --config client.properties -o json

    What is secret belongs into the file: the words of a command can be seen by others.
    """
    known = profiles()
    values = known.load(name) if known.has(name) else {}
    values |= client_file.values if client_file is not None else {}
    values |= key_values(changes)
    if bootstrap is not None:
        values[BOOTSTRAP] = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                                     for host, port in bootstrap)  # fmt: skip
    if shape is not None:
        values[OUTPUT] = shape
    if missing := [key for key in removed if key not in values]:
        raise click.ClickException(f"profile {name} has no {missing[0]}")
    kept = {key: value for key, value in values.items() if key not in removed}
    found, others = settings_of(f"profile {name}", kept)
    if unknown := [key for key in key_values(changes) if key in others]:
        raise click.ClickException(f"{unknown[0]} has no effect here")
    kept = {key: _whole(key, value) for key, value in found.values.items() if key not in others}
    found.where(None)
    known.save(name, kept)
    click.echo(f"{name}: is kept")


def _whole(key: str, value: str) -> str:
    """A profile is used from everywhere, so what it names is named in full."""
    return str(Path(value).absolute()) if value and key.endswith(_PATHS) else value


@command.command()
@click.argument("name", type=ProfileName(), required=False)
@click.option("--secrets", is_flag=True, help="Print what is secret, too.")
def show(name: str | None, secrets: bool) -> None:
    """Print the settings of a profile [the one in use]."""
    name = name or profiles().in_use()
    if name is None:
        raise click.ClickException("no profile is in use: `kafkalite profile use NAME`")
    from kafkalite.config.properties import as_properties

    values = {
        key: HIDDEN if not secrets and any(word in key for word in _SECRET) else value
        for key, value in profiles().load(name).items()
    }
    click.echo(as_properties(values), nl=False)


@command.command()
@name_argument
@yes_option
def delete(name: str, is_sure: bool) -> None:
    """Delete a profile."""
    profiles().load(name)
    be_sure(is_sure, f"Delete profile {name}?")
    profiles().delete(name)
    click.echo(f"{name}: is not there any more")
