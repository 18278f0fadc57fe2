"""`kafkalite console`: a page in the browser to look at any Kafka."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._addresses import Address, listening
from kafkalite.cli._as_program import ending_well
from kafkalite.cli._port_file import write_port
from kafkalite.cli._where import (
    CLIENT_ID,
    ProfileName,
    Servers,
    Settings,
    bootstrap_option,
    config_option,
    settings_named,
)

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster
    from kafkalite.console.schemas import Schemas
    from kafkalite.security.client_login import Login, Security

ANSWER_SECONDS = 10.0
ALLOW_CHANGES, ALLOW_HOST, REGISTRY = "--allow-changes", "--allow-host", "--registry"


@dataclass(slots=True)
class Descriptors:
    """What a broker hands to its own console: where it listens, and the way back to the broker."""

    listener: int
    owner: int


class Pair(click.ParamType[Descriptors]):
    name = "LISTENER,OWNER"

    def convert(
        self, value: str | Descriptors, param: click.Parameter | None, ctx: click.Context | None
    ) -> Descriptors:
        if isinstance(value, Descriptors):
            return value
        first, _, second = value.partition(",")
        if not (first.isdecimal() and second.isdecimal()):
            self.fail(f"{value!r} is not LISTENER,OWNER", param, ctx)
        return Descriptors(int(first), int(second))


@click.command()
@bootstrap_option
@config_option
@click.option("--profile", type=ProfileName(),
              help="Which profile of `kafkalite profile` to take [the one in use].")
@click.option("--listen", "address", type=Address(), default="127.0.0.1:8080", show_default=True,
              help="Where to answer; port 0 takes one that is free.")
@click.option("--port-file", metavar="FILE", help="Write the port to FILE.")
@click.option(ALLOW_CHANGES, "may_change", is_flag=True,
              help="Let it write records, make and delete topics, change settings, reset groups.")
@click.option(REGISTRY, "registry", metavar="URL",
              help="Where values' schemas are: a schema registry.")
@click.option(ALLOW_HOST, "names", multiple=True, metavar="NAME",
              help="A name under which browsers may ask, beside addresses; may be repeated.")
@click.option("--of-broker", "descriptors", type=Pair(), hidden=True)
def command(
    bootstrap: Servers | None,
    client_file: Settings | None,
    profile: str | None,
    address: tuple[str, int],
    port_file: str | None,
    may_change: bool,
    registry: str | None,
    names: tuple[str, ...],
    descriptors: Descriptors | None,
) -> None:
    """A page in the browser: topics, records, groups, transactions, settings of any Kafka.

    It only looks unless --allow-changes is given. Where --config or the profile has a SASL
    protocol and no sasl.jaas.config, whoever opens the page logs in.

    \b
        kafkalite console -b broker:9092
        open http://127.0.0.1:8080
    """
    check_installed("this")
    settings = settings_named(bootstrap, client_file, profile)
    security, mechanisms = ways_in(settings.values, settings.source)
    check_exposed("--listen", address, may_change, bool(mechanisms))
    with ending_well():
        if descriptors is None:
            listener = listening("--listen", *address)
        else:
            listener = socket.socket(fileno=descriptors.listener)
            check_exposed("--console", listener.getsockname(), may_change, bool(mechanisms))
        with closing(listener):
            console = _Console(
                settings.servers(bootstrap), security, mechanisms, may_change, _schemas(registry),
                settings.values.get(CLIENT_ID) or "kafkalite-console",
            )
            where = listener.getsockname()
            if port_file is not None:
                write_port(port_file, where[1], "--port-file")
            if descriptors is None:
                click.echo(f"kafkalite: {url_of(where)}", err=True)
            console.serve(listener, names, descriptors)


def check_installed(what: str) -> None:
    try:
        import kafkalite.console.server  # noqa: F401 - before anything is taken
    except ImportError as error:
        raise click.ClickException(
            f"{what} needs starlette and uvicorn ({error}): pip install 'kafkalite[web]'"
        ) from None


def ways_in(
    given: Mapping[str, str], source: str = "--console-config"
) -> tuple[Security, tuple[str, ...]]:
    """How brokers are reached, and by which mechanisms whoever opens the page logs in; none when
    nobody does, or when the file says who is logged in for all. Raises ClickException."""
    from kafkalite.config import InvalidSetting
    from kafkalite.config.listeners import PLAINTEXT, SASL_PROTOCOLS, SASL_SSL, SSL
    from kafkalite.security.client_settings import JAAS, MECHANISM, PROTOCOL, security_of
    from kafkalite.security.mechanisms import BY_PASSWORD, PLAIN

    protocol = given.get(PROTOCOL, PLAINTEXT).strip().upper()
    try:
        if protocol not in SASL_PROTOCOLS or JAAS in given:
            return security_of(given), ()
        below = SSL if protocol == SASL_SSL else PLAINTEXT
        security = security_of({**given, PROTOCOL: below})
    except InvalidSetting as error:
        raise click.ClickException(f"{source}: {error}") from None
    named = given.get(MECHANISM)
    if named is None:  # the one that shows a password last
        return security, tuple(sorted(BY_PASSWORD, key=lambda each: (each == PLAIN, each)))
    if named not in BY_PASSWORD:
        raise click.ClickException(
            f"{MECHANISM}: {named} asks for no password: set it to one of {', '.join(BY_PASSWORD)}"
        )
    return security, (named,)


def check_exposed(option: str, address: tuple[Any, ...], may_change: bool, asks: bool) -> None:
    """What everybody reaches must not change anything unless they log in."""
    from kafkalite.console.guard import is_loopback

    if may_change and not asks and not is_loopback(address[0]):
        raise click.ClickException(
            f"{option} {address[0]}:{address[1]} with {ALLOW_CHANGES} would let whoever reaches it "
            "change the cluster, and nobody logs in: use an address such as "
            f"127.0.0.1:{address[1]}, or brokers with SASL"
        )


def url_of(where: tuple[Any, ...]) -> str:
    host, port = where[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _schemas(url: str | None) -> Schemas | None:
    from kafkalite.console.schemas import of_registry

    try:
        return None if url is None else of_registry(url)
    except ValueError as error:
        raise click.ClickException(f"{REGISTRY}: {error}") from None


class _Console:
    def __init__(
        self,
        bootstrap: list[tuple[str, int]],
        security: Security,
        mechanisms: tuple[str, ...],
        may_change: bool,
        schemas: Schemas | None,
        client_id: str,
    ) -> None:
        from kafkalite.console.sessions import Sessions

        self._bootstrap, self._security = bootstrap, security
        self._may_change, self._schemas, self._client_id = may_change, schemas, client_id
        self._sessions = Sessions(self._connect, mechanisms)

    def _connect(self, login: Login | None) -> Cluster:
        from kafkalite.client.cluster import Cluster
        from kafkalite.security.client_login import Security

        context = self._security.context
        return Cluster(
            self._bootstrap, patience_s=ANSWER_SECONDS, client_id=self._client_id,
            security=Security(context, login or self._security.login),
            cure="start it, or start the console with --bootstrap where it is",
        )  # fmt: skip

    def serve(
        self, listener: socket.socket, names: tuple[str, ...], descriptors: Descriptors | None
    ) -> None:
        """Until a signal, or the end of the broker whose own it is."""
        from kafkalite.console.owner import Owner
        from kafkalite.console.server import Terms, app, serve, server_of

        owner = None if descriptors is None else Owner(socket.socket(fileno=descriptors.owner))
        connected = None if owner is None else owner.connected
        terms = Terms(self._may_change, self._schemas, connected)
        server = server_of(app(self._sessions, terms, listener.getsockname()[1], names))
        if owner is not None:
            owner.listen(partial(setattr, server, "should_exit", True))
        try:
            serve(server, listener)
        finally:
            self._sessions.close()
