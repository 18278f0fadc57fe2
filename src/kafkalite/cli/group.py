"""`kafkalite group`: the groups of any cluster, their members, offsets and lag."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._as_program import FOUND, Text
from kafkalite.cli._group_watch import watch
from kafkalite.cli._output import (
    each_of,
    is_meant,
    output_option,
    tell,
    tell_missing,
    timeout_option,
    with_cluster,
)
from kafkalite.cli._starts import begin_at
from kafkalite.cli._where import Where, cluster_options
from kafkalite.cli.topic import be_sure, changes_of, dry_run_option, yes_option

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster
    from kafkalite.client.survey import Group, Survey

LISTED = ("group", "kind", "state", "members", "topics", "lag")
MEMBERS = ("member", "host", "partitions")
PARTITIONS = ("topic", "partition", "committed", "ends", "lag", "member")
OF_GROUPS = ("group", *PARTITIONS[:-1])
BEHIND = FOUND  # exit code


@click.group()
def command() -> None:
    """List, describe and change groups of consumers."""


command.add_command(watch)


@command.command("list")
@click.argument("patterns", nargs=-1, type=Text(), metavar="[NAME]…")
@cluster_options
@output_option
def list_groups(patterns: tuple[str, ...], where: Where, shape: str) -> None:
    """List groups; NAME may have * and ? in it."""
    from kafkalite.client.reached import lag_of
    from kafkalite.client.survey import survey

    def act(cluster: Cluster) -> None:
        found = survey(cluster, with_settings=False)
        rows = [
            {
                "group": group.group_id, "kind": group.kind or None, "state": group.state,
                "members": len(group.members), "topics": len({name for name, _ in group.committed}),
                "lag": lag_of(found, group),
                "coordinator": group.coordinator,
            }
            for group in _meant(found, patterns)
        ]  # fmt: skip
        tell(shape, rows, LISTED)
        tell_missing(found.missing)

    with_cluster(where, act)


def _meant(found: Survey, patterns: tuple[str, ...]) -> list[Group]:
    return [
        found.groups[name]
        for name in sorted(found.groups)
        if is_meant(name, patterns)
    ]


@command.command()
@click.argument("names", nargs=-1, required=True, type=Text(), metavar="NAME…")
@cluster_options
@output_option
def describe(names: tuple[str, ...], where: Where, shape: str) -> None:
    """Tell who is in a group, and how far it has come with each partition."""
    from kafkalite.client.survey import survey

    def act(cluster: Cluster) -> None:
        found = survey(cluster, with_settings=False)
        rows = []
        for name in _present(found, names):
            group = found.groups[name]
            row: dict[str, Any] = {
                "group": name, "state": group.state, "kind": group.kind or None,
                "protocol": group.protocol, "coordinator": group.coordinator,
                "members": _members(group), "partitions": _partitions(found, group),
            }  # fmt: skip
            rows.append(row)
        if shape == "table":
            for row in rows:
                _show(row)
        else:
            tell(shape, rows, LISTED)
        _tell_absent(found, names)

    with_cluster(where, act)


def _show(row: dict[str, Any]) -> None:
    kind = f"{row['kind']}, " if row["kind"] else ""
    click.echo(f"{row['group']}: {kind}{row['state']}, by {row['protocol'] or '-'}, "
               f"at broker {row['coordinator']}")  # fmt: skip
    tell("table", row["members"], MEMBERS)
    tell("table", row["partitions"], PARTITIONS)


@command.command()
@click.argument("patterns", nargs=-1, type=Text(), metavar="[NAME]…")
@cluster_options
@click.option("--above", type=click.IntRange(min=0), default=None, metavar="RECORDS",
              help=f"Exit with {BEHIND} when a partition is further behind than that.")
@output_option
def lag(patterns: tuple[str, ...], where: Where, above: int | None, shape: str) -> None:
    """Tell how many records groups are behind, by partition."""
    from kafkalite.client.survey import survey

    def act(cluster: Cluster) -> None:
        found = survey(cluster, with_settings=False)
        rows = [
            {"group": group.group_id, **row}
            for group in _meant(found, patterns)
            for row in _partitions(found, group)
        ]
        tell(shape, rows, OF_GROUPS)
        tell_missing(found.missing)
        absent = [name for name in patterns if not set("*?[") & set(name)]
        if above is not None and any((row["lag"] or 0) > above for row in rows):
            sys.stdout.flush()
            sys.exit(BEHIND)
        _tell_absent(found, tuple(absent))

    with_cluster(where, act)


@command.command()
@click.argument("names", nargs=-1, required=True, type=Text(), metavar="NAME…")
@cluster_options
@yes_option
@timeout_option
def delete(names: tuple[str, ...], where: Where, is_sure: bool, timeout_s: float) -> None:
    """Delete groups that have no members, and all that they have committed."""
    be_sure(is_sure, f"Delete {', '.join(names)} with all offsets?")

    def act(cluster: Cluster) -> None:
        changes = changes_of(cluster, timeout_s)
        each_of(names, changes.delete_group, "is not there any more")

    with_cluster(where, act)


@command.command()
@click.argument("name", type=Text())
@cluster_options
@click.option("-t", "--topic", "topics", type=Text(), multiple=True, required=True,
              help="Of which topic; may be repeated.")
@click.option("--to", "place", metavar="WHERE", required=True,
              help="beginning, end, an offset, -N (the last N of each partition), or @TIME.")
@dry_run_option
@timeout_option
def reset(
    name: str, where: Where, topics: tuple[str, ...], place: str, dry_run: bool,
    timeout_s: float,
) -> None:  # fmt: skip
    """Have a group that has no members go on from elsewhere."""
    wanted = begin_at(place, "--to")

    def act(cluster: Cluster) -> None:
        from kafkalite.client.groups import Groups
        from kafkalite.client.reached import positions

        offsets = {
            place: offset
            for topic in topics
            for place, offset in positions(
                cluster, topic, wanted, timeout_s, lambda text: tell_missing([text])
            ).items()
        }
        before = Groups(cluster, timeout_s).committed(name)
        if not dry_run:
            changes_of(cluster, timeout_s).commit(name, offsets)
        rows = [
            {"topic": topic, "partition": index, "before": before.get((topic, index)),
             "after": offset}
            for (topic, index), offset in sorted(offsets.items())
        ]  # fmt: skip
        tell("table", rows, ("topic", "partition", "before", "after"))
        if dry_run:
            click.echo("kafkalite: nothing was changed (--dry-run)", err=True)

    with_cluster(where, act, f"the offsets of {name}")


def _present(found: Survey, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name in found.groups]


def _tell_absent(found: Survey, names: tuple[str, ...]) -> None:
    tell_missing(found.missing)
    absent = [name for name in names if name not in found.groups]
    tell_missing(f"there is no group {name}" for name in absent)
    if absent:
        sys.stdout.flush()
        sys.exit(1)


def _members(group: Group) -> list[dict[str, Any]]:
    return [
        {
            "member": each.client_id, "host": each.host,
            "partitions": [f"{topic}-{index}" for topic in sorted(each.assigned)
                           for index in each.assigned[topic]],
        }
        for each in group.members
    ]  # fmt: skip


def _partitions(found: Survey, group: Group) -> list[dict[str, Any]]:
    from kafkalite.client.reached import reached

    return [
        {
            "topic": each.topic, "partition": each.partition, "committed": each.committed,
            "ends": each.ends, "lag": each.lag, "member": each.member,
        }
        for each in reached(found, group)
    ]  # fmt: skip
