"""`kafkalite quota`: what users, client ids and addresses may use of any cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._as_program import Text
from kafkalite.cli._output import output_option, tell, timeout_option, with_cluster
from kafkalite.cli._where import Where, cluster_options
from kafkalite.cli.topic import DRY_RUN_SAYS, dry_run_option, key_values

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster

KINDS = ("user", "client", "ip")
COLUMNS = ("of", "key", "value")

Whose = Mapping[str, str | None]


def whose_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options that say whose quotas a command is about; it is given them as `whose`."""

    @click.option("--user", type=Text(), help="Of this user.")
    @click.option("--client", type=Text(), help="Of this client id; with --user, of that user.")
    @click.option("--ip", type=Text(), help="Of this address.")
    @click.option("--default", "defaults", type=click.Choice(KINDS), multiple=True,
                  help="Of all of a kind that have none of their own; may be repeated.")
    @wraps(command)
    def run(*, defaults: tuple[str, ...], **given: Any) -> None:
        whose: dict[str, str | None] = {
            kind: name for kind in KINDS if (name := given.pop(kind)) is not None
        }
        if twice := [kind for kind in defaults if kind in whose]:
            raise click.UsageError(f"give --{twice[0]} or --default {twice[0]}, not both")
        whose |= dict.fromkeys(defaults)
        if "ip" in whose and len(whose) > 1:
            raise click.UsageError("an address has quotas of its own: leave the others out")
        command(whose=whose, **given)

    return run


@click.group()
def command() -> None:
    """List, set and unset quotas."""


@command.command("list")
@cluster_options
@whose_options
@output_option
@timeout_option
def list_quotas(whose: Whose, where: Where, shape: str, timeout_s: float) -> None:
    """List quotas, all or of whom the options name."""

    def act(cluster: Cluster) -> None:
        from kafkalite.client.admin import Admin
        from kafkalite.client.client_quotas import KINDS as NAMES
        from kafkalite.client.client_quotas import quotas

        said = {name: kind for kind, name in NAMES.items()}
        rows = []
        for entity, values in quotas(Admin(cluster, timeout_s=timeout_s), whose).items():
            parts = {said.get(kind, kind): name for kind, name in entity}
            rows += [
                {"of": _told(parts), "key": key, "value": values[key], **parts}
                for key in sorted(values)
            ]
        tell(shape, sorted(rows, key=lambda row: (row["of"], row["key"])), COLUMNS)

    with_cluster(where, act)


def _told(whose: Whose) -> str:
    return ", ".join(
        f"any other {kind}" if whose[kind] is None else f"{kind} {whose[kind]}"
        for kind in sorted(whose, key=lambda kind: KINDS.index(kind) if kind in KINDS else 9)
    )


@command.command("set")
@click.argument("changes", nargs=-1, required=True, type=Text(), metavar="KEY=VALUE…")
@cluster_options
@whose_options
@dry_run_option
@timeout_option
def set_quotas(
    changes: tuple[str, ...], whose: Whose, where: Where, dry_run: bool, timeout_s: float
) -> None:
    """Set quotas, all of them or none: producer_byte_rate, consumer_byte_rate, request_percentage,
    controller_mutation_rate; connection_creation_rate of addresses."""
    changed = {key: _number(key, text) for key, text in key_values(changes).items()}
    _alter(whose, changed, (), where, dry_run, timeout_s)


@command.command()
@click.argument("keys", nargs=-1, required=True, type=Text(), metavar="KEY…")
@cluster_options
@whose_options
@dry_run_option
@timeout_option
def unset(
    keys: tuple[str, ...], whose: Whose, where: Where, dry_run: bool, timeout_s: float
) -> None:
    """Take quotas away."""
    _alter(whose, {}, keys, where, dry_run, timeout_s)


def _number(key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise click.UsageError(f"{key}: {text!r} is no number")
    return value


def _alter(
    whose: Whose, changed: dict[str, float], removed: tuple[str, ...], where: Where,
    dry_run: bool, timeout_s: float,
) -> None:  # fmt: skip
    if not whose:
        raise click.UsageError("whose? give --user, --client, --ip or --default")
    told = _told(whose)

    def act(cluster: Cluster) -> None:
        from kafkalite.client.admin import Admin
        from kafkalite.client.client_quotas import alter

        admin = Admin(cluster, timeout_s=timeout_s)
        alter(admin, told, whose, changed, removed, is_tried=dry_run)
        click.echo(f"{told}: {DRY_RUN_SAYS if dry_run else 'is changed'}")

    with_cluster(where, act, f"the quotas of {told}")
