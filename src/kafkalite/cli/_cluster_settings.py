"""`kafkalite config get|set|unset`: settings of a cluster that runs; `explain`: what one is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._as_program import Text
from kafkalite.cli._output import output_option, tell, timeout_option, with_cluster
from kafkalite.cli._where import Where, cluster_options
from kafkalite.cli.topic import DRY_RUN_SAYS, dry_run_option, key_values

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster
    from kafkalite.client.settings import Kind, Value
    from kafkalite.config.setting import Setting

KINDS = ("topic", "broker", "broker-logger", "client-metrics", "group")
ALL_BROKERS = "default"
COLUMNS = ("key", "value", "source", "without_it")
HIDDEN = "(hidden)"


kind_argument = click.argument("kind", type=click.Choice(KINDS))
name_argument = click.argument("name", type=Text())


@click.command()
@kind_argument
@name_argument
@click.argument("keys", nargs=-1, type=Text(), metavar="[KEY]…")
@cluster_options
@click.option("--all", "is_all", is_flag=True, help="Those that nobody has set, too.")
@output_option
@timeout_option
def get(
    kind: str, name: str, keys: tuple[str, ...], where: Where, is_all: bool, shape: str,
    timeout_s: float,
) -> None:  # fmt: skip
    """Print settings, where each value comes from, and what would count without it.

    NAME of a broker is its id, or `default` for all of them.
    """
    which, name = _subject(kind, name)

    def act(cluster: Cluster) -> None:
        from kafkalite.client.admin import Admin
        from kafkalite.client.settings import values

        found = values(Admin(cluster, timeout_s=timeout_s), which, name, keys or None)
        rows = [_row(each) for each in found if keys or is_all or not each.is_default]
        tell(shape, rows, COLUMNS)

    with_cluster(where, act)


def _row(value: Value) -> dict[str, Any]:
    source, text = value.behind[0] if value.behind else (None, None)
    return {
        "key": value.key,
        "value": HIDDEN if value.is_hidden else value.text,
        "source": value.source,
        "without_it": None if source is None else f"{text} ({source})",
        "is_default": value.is_default,
        "is_fixed_while_running": value.is_fixed,
        "documentation": value.doc,
    }


@click.command("set")
@kind_argument
@name_argument
@click.argument("changes", nargs=-1, required=True, type=Text(), metavar="KEY=VALUE…")
@cluster_options
@dry_run_option
@timeout_option
def set_values(
    kind: str, name: str, changes: tuple[str, ...], where: Where, dry_run: bool,
    timeout_s: float,
) -> None:  # fmt: skip
    """Change settings, all of them or none."""
    _alter(kind, name, key_values(changes), (), where, dry_run, timeout_s)


@click.command()
@kind_argument
@name_argument
@click.argument("keys", nargs=-1, required=True, type=Text(), metavar="KEY…")
@cluster_options
@dry_run_option
@timeout_option
def unset(
    kind: str, name: str, keys: tuple[str, ...], where: Where, dry_run: bool,
    timeout_s: float,
) -> None:  # fmt: skip
    """Give settings back to what counts without them."""
    _alter(kind, name, {}, keys, where, dry_run, timeout_s)


def _alter(
    kind: str, name: str, changed: dict[str, str], unset_keys: tuple[str, ...],
    where: Where, dry_run: bool, timeout_s: float,
) -> None:  # fmt: skip
    which, subject = _subject(kind, name)

    def act(cluster: Cluster) -> None:
        from kafkalite.client.admin import Admin
        from kafkalite.client.settings import alter

        admin = Admin(cluster, timeout_s=timeout_s)
        alter(admin, which, subject, changed, unset_keys, is_tried=dry_run)
        click.echo(f"{name}: {DRY_RUN_SAYS if dry_run else 'is changed'}")

    with_cluster(where, act, f"{kind} {name}")


def _subject(kind: str, name: str) -> tuple[Kind, str]:
    from kafkalite.client.settings import Kind

    which = Kind[kind.upper().replace("-", "_")]
    if which not in (Kind.BROKER, Kind.BROKER_LOGGER):
        return which, name
    if which is Kind.BROKER and name == ALL_BROKERS:
        return which, ""
    if not (name.isascii() and name.isdecimal()):
        raise click.BadParameter(f"{name!r} is no id of a broker", param_hint="NAME")
    return which, name


@click.command()
@click.argument("key", type=Text())
def explain(key: str) -> None:
    """Tell what a setting is, and what it does here."""
    from kafkalite.config.tables import (
        broker_settings,
        client_metrics_settings,
        group_settings,
        nearest,
        topic_settings,
    )

    tables = {
        "broker": broker_settings(), "topic": topic_settings(), "group": group_settings(),
        "client-metrics": client_metrics_settings(),
    }  # fmt: skip
    found = [(of, table[key]) for of, table in tables.items() if key in table]
    if not found:
        near = nearest(key, {name for table in tables.values() for name in table})
        hint = f"; did you mean {near}?" if near else ""
        raise click.ClickException(f"no setting is called {key}{hint}")
    for number, (of, setting) in enumerate(found):
        if number:
            click.echo()
        _explain(of, setting)


def _explain(of: str, setting: Setting) -> None:
    theirs = setting.kafka_default_text
    rows = {
        "type": setting.kind.name.lower(),
        "default": "none" if setting.default_text is None else repr(setting.default_text),
        "in Apache Kafka": None if theirs in (None, setting.default_text) else repr(theirs),
        "changes": setting.update.value,
        "importance": setting.importance,
        "has no effect": setting.ignored,
    }
    click.echo(f"{setting.name} ({of}): {setting.doc}")
    for what, text in rows.items():
        if text is not None:
            click.echo(f"  {what:16}{text}")
