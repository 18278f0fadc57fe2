"""Which cluster a command is about, how it is let in, and in which shape it answers.

Owns the options for that and their order: what is typed, then a file of settings, then the profile.
A server or a file that is typed stands in the place of the profile in use, so that no login goes to
a server that it was not meant for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._as_program import Addresses
from kafkalite.cli._profiles import OUTPUT, profiles

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from kafkalite.client.cluster import Cluster
    from kafkalite.security.client_login import Security

TABLE, JSON, YAML, NAME = "table", "json", "yaml", "name"
SHAPES = (TABLE, JSON, YAML, NAME)
DEFAULT_BOOTSTRAP = "localhost:9092"
BOOTSTRAP, CLIENT_ID = "bootstrap.servers", "client.id"

Servers = list[tuple[str, int]]


@dataclass(slots=True)
class Where:
    """A cluster, how to be let in, and what a profile says of the output."""

    bootstrap: Servers
    security: Security | None = None
    client_id: str | None = None
    shape: str | None = None

    def connect(self, patience_s: float | None = None) -> Cluster:
        """patience_s: how long an answer is waited for."""
        from kafkalite.client.cluster import ANSWER_TIMEOUT_S, Cluster
        from kafkalite.client.cluster import CLIENT_ID as OURS
        from kafkalite.security.client_login import OPEN

        return Cluster(
            self.bootstrap, security=self.security or OPEN, client_id=self.client_id or OURS,
            patience_s=patience_s or ANSWER_TIMEOUT_S,
        )  # fmt: skip


@dataclass(slots=True)
class Settings:
    """Of a client, as Java's have them, and where they are from."""

    source: str
    values: dict[str, str]

    def where(self, bootstrap: Servers | None) -> Where:
        if not self.values:
            return Where(self.servers(bootstrap))
        from kafkalite.config import InvalidSetting
        from kafkalite.security.client_settings import security_of

        try:
            security = security_of(self.values)
        except InvalidSetting as error:
            raise click.ClickException(f"{self.source}: {error}") from None
        shape = self.values.get(OUTPUT)
        if shape is not None and shape not in SHAPES:
            raise click.ClickException(
                f"{self.source}: {OUTPUT}: {shape!r} is none of {', '.join(SHAPES)}"
            )
        return Where(self.servers(bootstrap), security, self.values.get(CLIENT_ID), shape)

    def servers(self, typed: Servers | None) -> Servers:
        named = self.values.get(BOOTSTRAP) or DEFAULT_BOOTSTRAP
        return typed or Addresses().convert(named, None, None)


def settings_of(source: str, given: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """Java's settings or librdkafka's; and the names of those that have no effect here."""
    from kafkalite.config import InvalidSetting
    from kafkalite.security.client_settings import is_of_security
    from kafkalite.security.librdkafka_settings import as_java

    try:
        found = as_java(given)
    except InvalidSetting as error:
        raise click.ClickException(f"{source}: {error}") from None
    others = sorted(
        name for name in found
        if not is_of_security(name) and name not in (BOOTSTRAP, CLIENT_ID, OUTPUT)
    )  # fmt: skip
    return Settings(source, found), others


class SettingsFile(click.ParamType[Settings]):
    """The settings of a client, Java's or librdkafka's."""

    name = "FILE"

    def convert(
        self, value: str | Settings, param: click.Parameter | None, ctx: click.Context | None
    ) -> Settings:
        from kafkalite.cli._properties_file import PropertiesFile

        if not isinstance(value, str):
            return value
        found, others = settings_of(value, PropertiesFile().convert(value, param, ctx))
        if others:
            has = "has" if len(others) == 1 else "have"
            click.echo(f"kafkalite: {value}: {', '.join(others)} {has} no effect here", err=True)
        return found


class ProfileName(click.ParamType[str]):
    name = "NAME"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        names = profiles().names()
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


bootstrap_option = click.option(
    "-b", "--bootstrap", type=Addresses(), show_default=f"the profile's, or {DEFAULT_BOOTSTRAP}",
    help="Some broker of the cluster.",
)  # fmt: skip
config_option = click.option(
    "--config", "--command-config", "client_file", type=SettingsFile(),
    help="How to get there, as clients are told it, Java's or librdkafka's: bootstrap.servers, "
         "security.protocol, ssl.*, sasl.*.",
)  # fmt: skip


def cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options that say which cluster a command is about; it is given them as `where`."""

    @bootstrap_option
    @config_option
    @click.option("--profile", type=ProfileName(),
                  help="Which profile of `kafkalite profile` to take [the one in use].")
    @wraps(command)
    def run(
        *, bootstrap: Servers | None, client_file: Settings | None, profile: str | None,
        **given: Any,
    ) -> None:  # fmt: skip
        where = where_of(bootstrap, client_file, profile)
        if "shape" in given and given["shape"] is None:
            given["shape"] = where.shape or TABLE
        command(where=where, **given)

    return run


def where_of(bootstrap: Servers | None, file: Settings | None, profile: str | None) -> Where:
    """By what was typed."""
    return settings_named(bootstrap, file, profile).where(bootstrap)


def settings_named(
    bootstrap: Servers | None, file: Settings | None, profile: str | None
) -> Settings:
    """Of a file or a profile; none beside servers that were typed."""
    if file is not None and profile is not None:
        raise click.UsageError("give --config or --profile, not both")
    if file is not None:
        return file
    if profile is None and bootstrap is None:
        profile = profiles().in_use()
    if profile is None:
        return Settings("", {})
    found, _ = settings_of(f"profile {profile}", profiles().load(profile))
    return found
