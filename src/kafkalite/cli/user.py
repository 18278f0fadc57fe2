"""`kafkalite user`: the users of any cluster that log in with a password (SCRAM)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._as_program import Text
from kafkalite.cli._output import (
    each_of,
    is_meant,
    output_option,
    tell,
    timeout_option,
    with_cluster,
)
from kafkalite.cli._where import Where, cluster_options
from kafkalite.cli.topic import be_sure, yes_option

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
COLUMNS = ("user", "mechanism", "iterations")

name_argument = click.argument("name", type=Text())
mechanism_option = click.option(
    "-m", "--mechanism", "mechanisms", type=click.Choice(MECHANISMS), multiple=True,
    help="Only for this one; may be repeated [both].",
)  # fmt: skip
iterations_option = click.option(
    "--iterations", type=click.IntRange(4096, 16384), default=4096, show_default=True,
    help="What guessing a password costs.",
)  # fmt: skip
password_option = click.option(
    "--password-file", "file", type=click.File("r", encoding="utf-8-sig", lazy=True),
    metavar="FILE",
    help="Its first line is the password; - is standard input. Else it is asked for.",
)  # fmt: skip


def of_who_gets_a_password(command: Callable[..., None]) -> Callable[..., None]:
    """The options that `_set` takes, in the order of their help."""
    options = (
        name_argument, cluster_options, mechanism_option, iterations_option, password_option,
        timeout_option,
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def command() -> None:
    """List users who log in with a password, add and delete them."""


@command.command("list")
@click.argument("patterns", nargs=-1, type=Text(), metavar="[NAME]…")
@cluster_options
@output_option
@timeout_option
def list_users(patterns: tuple[str, ...], where: Where, shape: str, timeout_s: float) -> None:
    """List users; NAME may have * and ? in it."""

    def act(cluster: Cluster) -> None:
        from kafkalite.client.admin import Admin
        from kafkalite.client.users import users

        rows: list[dict[str, Any]] = [
            {"user": user.name, "mechanism": name, "iterations": count}
            for user in users(Admin(cluster, timeout_s=timeout_s))
            if is_meant(user.name, patterns)
            for name, count in user.iterations.items()
        ]
        tell(shape, rows, COLUMNS)

    with_cluster(where, act)


def _set(
    name: str, where: Where, mechanisms: tuple[str, ...], iterations: int, file: Any,
    timeout_s: float, *, is_new: bool,
) -> None:  # fmt: skip
    password = _password(name, file)
    asked = mechanisms or MECHANISMS

    def act(cluster: Cluster) -> None:
        from kafkalite.client.admin import Admin
        from kafkalite.client.cluster import ClientFailed
        from kafkalite.client.users import set_passwords, users

        admin = Admin(cluster, timeout_s=timeout_s)
        there = {each for user in users(admin, [name]) for each in user.iterations}
        if is_new and there:
            raise ClientFailed(
                f"user {name} is there already: `kafkalite user passwd {name}` changes the password"
            )
        if not is_new and not there.intersection(asked):
            raise ClientFailed(f"there is no user {name}: `kafkalite user add {name}` makes one")
        wanted = asked if is_new else mechanisms or [each for each in MECHANISMS if each in there]
        set_passwords(admin, name, wanted, password, iterations)
        done = "is there" if is_new else "has another password"
        click.echo(f"{name}: {done} ({', '.join(wanted)})")

    with_cluster(where, act, f"user {name}")


@command.command()
@of_who_gets_a_password
def add(**given: Any) -> None:
    """Add a user with a password."""
    _set(**given, is_new=True)


@command.command()
@of_who_gets_a_password
def passwd(**given: Any) -> None:
    """Give a user another password, for each mechanism that there is one for."""
    _set(**given, is_new=False)


def _password(name: str, file: Any) -> str:
    if file is None:
        if not sys.stdin.isatty():
            raise click.UsageError(
                f"which password has {name}? Nobody can be asked here: say --password-file"
            )
        asked: str = click.prompt(
            f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True
        )
        return asked
    try:
        password: str = file.readline().rstrip("\r\n")
    except UnicodeDecodeError:
        raise click.ClickException(f"{file.name}: this is not UTF-8") from None
    if not password:
        raise click.ClickException(f"{file.name}: there is no password in its first line")
    return password


@command.command()
@click.argument("names", nargs=-1, required=True, type=Text(), metavar="NAME…")
@cluster_options
@mechanism_option
@yes_option
@timeout_option
def delete(
    names: tuple[str, ...], where: Where, mechanisms: tuple[str, ...], is_sure: bool,
    timeout_s: float,
) -> None:  # fmt: skip
    """Delete users, or their passwords for some mechanisms."""
    be_sure(is_sure, f"Delete {', '.join(names)}?")

    def act(cluster: Cluster) -> None:
        from kafkalite.client import users
        from kafkalite.client.admin import Admin
        from kafkalite.client.cluster import ClientFailed
        from kafkalite.protocol.errors import Error

        admin = Admin(cluster, timeout_s=timeout_s)

        def delete_one(name: str) -> None:
            there = {each for user in users.users(admin, [name]) for each in user.iterations}
            if not there:
                raise ClientFailed(f"there is no user {name}", Error.RESOURCE_NOT_FOUND)
            users.delete(admin, name, mechanisms or sorted(there))

        each_of(names, delete_one, "is not there any more")

    with_cluster(where, act)
