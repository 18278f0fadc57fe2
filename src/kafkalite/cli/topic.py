"""`kafkalite topic`: the topics of any cluster, listed, described and changed."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._as_program import Text
from kafkalite.cli._output import (
    each_of,
    is_meant,
    output_option,
    tell,
    tell_missing,
    timeout_option,
    with_cluster,
)
from kafkalite.cli._topic_name import TopicName
from kafkalite.cli._topic_records import copy, stat
from kafkalite.cli._where import Where, cluster_options
from kafkalite.cli.consume import command as consume
from kafkalite.cli.produce import command as produce

if TYPE_CHECKING:
    from kafkalite.client.changes import Changes
    from kafkalite.client.cluster import Cluster
    from kafkalite.client.survey import Topic

LISTED = ("topic", "partitions", "replicas", "records", "bytes", "cleanup_policy")
DESCRIBED = ("topic", "partition", "leader", "replicas", "in_sync", "begins", "ends", "bytes")
DRY_RUN_SAYS = "would be done"
MOST_PARTITIONS, MOST_REPLICAS = (1 << 31) - 1, (1 << 15) - 1  # that the protocol can say


dry_run_option = click.option("--dry-run", is_flag=True, help="Only ask whether it would be done.")
yes_option = click.option("--yes", "is_sure", is_flag=True, help="Do not ask whether to do it.")


@click.group()
def command() -> None:
    """List, describe and change topics, read and write them."""


for name, each in (("copy", copy), ("stat", stat), ("read", consume), ("write", produce)):
    command.add_command(each, name)


@command.command("list")
@click.argument("patterns", nargs=-1, type=TopicName(), metavar="[NAME]…")
@cluster_options
@click.option("--internal", is_flag=True, help="The cluster's own topics, too.")
@output_option
def list_topics(
    patterns: tuple[str, ...], where: Where, internal: bool, shape: str
) -> None:
    """List topics; NAME may have * and ? in it."""
    from kafkalite.client.survey import survey

    def act(cluster: Cluster) -> None:
        found = survey(cluster, with_groups=False)
        sizes: Counter[str] = Counter()
        for (_, name, _), size in found.log_bytes.items():
            sizes[name] += size
        rows = [
            _summary(topic, sizes.get(topic.name))
            for topic in found.topics.values()
            if is_meant(topic.name, patterns) and (internal or not topic.is_internal)
        ]
        tell(shape, rows, LISTED)
        tell_missing(found.missing)

    with_cluster(where, act)


def _summary(topic: Topic, size: int | None) -> dict[str, Any]:
    partitions = topic.partitions.values()
    known = [each.ends - each.begins for each in partitions
             if each.ends is not None and each.begins is not None]  # fmt: skip
    return {
        "topic": topic.name,
        "partitions": len(partitions),
        "replicas": max((len(each.replicas) for each in partitions), default=0),
        "records": sum(known) if len(known) == len(partitions) else None,
        "bytes": size,
        "cleanup_policy": topic.cleanup_policy,
        "is_internal": topic.is_internal,
    }


@command.command()
@click.argument("names", nargs=-1, required=True, type=TopicName(), metavar="NAME…")
@cluster_options
@output_option
def describe(names: tuple[str, ...], where: Where, shape: str) -> None:
    """Tell of each partition who leads it, its replicas and its offsets."""
    from kafkalite.client.survey import survey

    def act(cluster: Cluster) -> None:
        found = survey(cluster, names, with_groups=False)
        rows = [
            {
                "topic": topic.name, "partition": index, "leader": each.leader,
                "replicas": each.replicas, "in_sync": each.in_sync,
                "begins": each.begins, "ends": each.ends,
                "bytes": found.log_bytes.get((each.leader, topic.name, index)),
            }
            for topic in found.topics.values()
            for index, each in topic.partitions.items()
        ]  # fmt: skip
        tell(shape, rows, DESCRIBED)
        tell_missing(found.missing)
        absent = [name for name in names if name not in found.topics]
        tell_missing(f"there is no topic {name}" for name in absent)
        if absent:
            sys.exit(1)

    with_cluster(where, act)


@command.command()
@click.argument("names", nargs=-1, required=True, type=Text(), metavar="NAME…")
@cluster_options
@click.option("-p", "--partitions", type=click.IntRange(1, MOST_PARTITIONS), default=None,
              help="How many [the cluster's default].")
@click.option("-r", "--replicas", type=click.IntRange(1, MOST_REPLICAS), default=None,
              help="Of each partition [the cluster's default].")
@click.option("-c", "--set", "settings", type=Text(), multiple=True, metavar="KEY=VALUE",
              help="A setting of the topic; may be repeated.")
@click.option("--if-not-exists", "may_exist", is_flag=True, help="One that is there is no failure.")
@dry_run_option
@timeout_option
def create(
    names: tuple[str, ...],
    where: Where,
    partitions: int | None,
    replicas: int | None,
    settings: tuple[str, ...],
    may_exist: bool,
    dry_run: bool,
    timeout_s: float,
) -> None:
    """Create topics."""
    from kafkalite.client.cluster import ClientFailed
    from kafkalite.protocol.errors import Error

    given = key_values(settings)

    def act(cluster: Cluster) -> None:
        changes = changes_of(cluster, timeout_s, dry_run)

        def create_one(name: str) -> None:
            try:
                changes.create_topic(name, partitions or -1, replicas or -1, given)
            except ClientFailed as failure:
                if not may_exist or failure.code is not Error.TOPIC_ALREADY_EXISTS:
                    raise

        each_of(names, create_one, DRY_RUN_SAYS if dry_run else "is there")

    with_cluster(where, act)


@command.command()
@click.argument("names", nargs=-1, required=True, type=TopicName(), metavar="NAME…")
@cluster_options
@click.option("--if-exists", "may_be_absent", is_flag=True, help="None of that name is no failure.")
@yes_option
@timeout_option
def delete(
    names: tuple[str, ...], where: Where, may_be_absent: bool, is_sure: bool,
    timeout_s: float,
) -> None:  # fmt: skip
    """Delete topics and all that is in them."""
    from kafkalite.client.cluster import ClientFailed
    from kafkalite.protocol.errors import Error

    be_sure(is_sure, f"Delete {', '.join(names)} with all records?")

    def act(cluster: Cluster) -> None:
        changes = changes_of(cluster, timeout_s)

        def delete_one(name: str) -> None:
            try:
                changes.delete_topic(name)
            except ClientFailed as failure:
                if not may_be_absent or failure.code is not Error.UNKNOWN_TOPIC_OR_PARTITION:
                    raise

        each_of(names, delete_one, "is not there any more")

    with_cluster(where, act)


@command.command("add-partitions")
@click.argument("names", nargs=-1, required=True, type=TopicName(), metavar="NAME…")
@cluster_options
@click.option("--to", "count", type=click.IntRange(1, MOST_PARTITIONS), required=True,
              help="How many it has then.")
@dry_run_option
@timeout_option
def add_partitions(
    names: tuple[str, ...], where: Where, count: int, dry_run: bool, timeout_s: float
) -> None:
    """Give topics more partitions. Records with a key may go elsewhere from then on."""

    def act(cluster: Cluster) -> None:
        changes = changes_of(cluster, timeout_s, dry_run)
        done = DRY_RUN_SAYS if dry_run else f"has {count} partitions"
        each_of(names, lambda name: changes.add_partitions(name, count), done)

    with_cluster(where, act)


@command.command()
@click.argument("names", nargs=-1, required=True, type=TopicName(), metavar="NAME…")
@cluster_options
@click.option("--set", "settings", type=Text(), multiple=True, metavar="KEY=VALUE",
              help="May be repeated.")
@click.option("--unset", type=Text(), multiple=True, metavar="KEY",
              help="Back to the cluster's default; may be repeated.")
@dry_run_option
@timeout_option
def alter(
    names: tuple[str, ...], where: Where, settings: tuple[str, ...],
    unset: tuple[str, ...], dry_run: bool, timeout_s: float,
) -> None:  # fmt: skip
    """Change settings of topics."""
    from kafkalite.client.admin import Admin
    from kafkalite.client.settings import Kind
    from kafkalite.client.settings import alter as alter_settings

    given = key_values(settings)
    if not given and not unset:
        raise click.UsageError("nothing to change: give --set KEY=VALUE or --unset KEY")

    def act(cluster: Cluster) -> None:
        admin = Admin(cluster, timeout_s=timeout_s)
        done = DRY_RUN_SAYS if dry_run else "is changed"
        each_of(names, lambda name: alter_settings(
            admin, Kind.TOPIC, name, given, unset, is_tried=dry_run
        ), done)  # fmt: skip

    with_cluster(where, act)


@command.command()
@click.argument("name", type=TopicName())
@cluster_options
@click.option("-p", "--partition", "places", type=Text(), multiple=True, metavar="PARTITION:OFFSET",
              help="Delete what is before this offset; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="Delete all records there are.")
@yes_option
@timeout_option
def trim(
    name: str, where: Where, places: tuple[str, ...], everything: bool, is_sure: bool,
    timeout_s: float,
) -> None:  # fmt: skip
    """Delete the oldest records of a topic."""
    from kafkalite.client.changes import TO_THE_END
    from kafkalite.client.cluster import ClientFailed

    wanted = dict(map(_place, places))
    if bool(wanted) == everything:
        raise click.UsageError("which ones? give -p PARTITION:OFFSET, or --all")
    what = "all records" if everything else "records"
    be_sure(is_sure, f"Delete {what} of {name}?")

    def act(cluster: Cluster) -> None:
        leaders = cluster.topic(name, may_create=False).leaders
        if missing := wanted.keys() - leaders.keys():
            raise ClientFailed(f"topic {name} has no partition {min(missing)}")
        changes = changes_of(cluster, timeout_s)
        before = dict.fromkeys(leaders, TO_THE_END) if everything else wanted

        def trim_one(place: str) -> None:
            index = int(place.rpartition("-")[2])
            changes.delete_records(leaders[index], name, index, before[index])

        each_of([f"{name}-{index}" for index in sorted(before)], trim_one, "is trimmed")

    with_cluster(where, act)


def _place(text: str) -> tuple[int, int]:
    if not re.fullmatch(r"[0-9]{1,9}:[0-9]{1,18}", text):
        raise click.BadParameter(f"{text!r} is not PARTITION:OFFSET", param_hint="-p")
    index, _, offset = text.partition(":")
    return int(index), int(offset)


def key_values(texts: Iterable[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise click.UsageError(f"{text!r} is not KEY=VALUE")
        found[key] = value
    return found


def be_sure(is_sure: bool, question: str) -> None:
    """Asks, where somebody can answer; a script says --yes."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} Nobody can be asked here: say --yes")
    click.confirm(question, abort=True, err=True)


def changes_of(cluster: Cluster, timeout_s: float, is_tried: bool = False) -> Changes:
    from kafkalite.client.admin import Admin
    from kafkalite.client.changes import Changes

    return Changes(Admin(cluster, timeout_s=timeout_s), is_tried)
