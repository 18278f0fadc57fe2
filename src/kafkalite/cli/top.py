"""`kafkalite top`: what is going on in a cluster, looked at again and again."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._output import Seconds, output_option, tell, tell_missing, with_cluster
from kafkalite.cli._where import JSON, TABLE, Where, cluster_options

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster
    from kafkalite.client.survey import Group, Survey

TOPICS = ("topic", "partitions", "records", "records_per_s", "bytes", "bytes_per_s", "not_in_sync")
GROUPS = ("group", "state", "members", "lag", "lag_per_s", "read_per_s")
FIRST_WAIT_S = 1.0  # until there are rates
CLEAR = "\x1b[H\x1b[J"
_OTHER_LINES = 6  # of a screen: what stands above, between and below the two tables

Rows = list[dict[str, Any]]


@click.command()
@cluster_options
@click.option("--every", "every_s", type=Seconds(0.1), default=2.0, show_default=True,
              metavar="SECONDS", help="How often to look.")
@click.option("-n", "--count", "times", type=click.IntRange(1, sys.maxsize),
              help="End after so many looks.")
@click.option("--internal", is_flag=True, help="The cluster's own topics, too.")
@output_option
def command(
    where: Where, every_s: float, times: int | None, internal: bool, shape: str
) -> None:
    """Show topics by how much is written to them, and groups by how far they are behind; Ctrl-C
    ends. With `-o json` each look is one line."""

    def act(cluster: Cluster) -> None:
        for look in islice(_looks(cluster, every_s, internal), times):
            _show(look, shape)

    with_cluster(where, act)


@dataclass(slots=True)
class Look:
    found: Survey
    topics: Rows
    groups: Rows


def _looks(cluster: Cluster, every_s: float, internal: bool) -> Iterator[Look]:
    from kafkalite.client.survey import survey

    before: Survey | None = None
    for number in count():
        began = time.monotonic()
        found = survey(cluster)
        per_s = _per_second(before, found)
        yield Look(found, _topics(before, found, per_s, internal), _groups(before, found, per_s))
        before = found
        wait_s = every_s if number else min(every_s, FIRST_WAIT_S)
        time.sleep(max(0.0, wait_s - (time.monotonic() - began)))


def _per_second(before: Survey | None, found: Survey) -> Callable[[int | None, int | None], Any]:
    passed_s = 0.0 if before is None else (found.at_ms - before.at_ms) / 1000

    def rate(old: int | None, new: int | None) -> float | None:
        return None if passed_s <= 0 or old is None or new is None else (new - old) / passed_s

    return rate


def _topics(
    before: Survey | None, found: Survey, per_s: Callable[..., Any], internal: bool
) -> Rows:
    sizes, old_sizes = _sizes(found), _sizes(before)
    rows = [
        {
            "topic": topic.name, "partitions": len(topic.partitions),
            "records": _records(found, topic.name, has_begun=True),
            "records_per_s": per_s(_records(before, topic.name), _records(found, topic.name)),
            "bytes": sizes.get(topic.name),
            "bytes_per_s": per_s(old_sizes.get(topic.name), sizes.get(topic.name)),
            "not_in_sync": sum(
                len(each.in_sync) < len(each.replicas) for each in topic.partitions.values()
            ),
        }
        for topic in found.topics.values()
        if internal or not topic.is_internal
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-(row["records_per_s"] or 0), row["topic"]))


def _records(found: Survey | None, name: str, *, has_begun: bool = False) -> int | None:
    """Where its partitions end, all together; less where they begin, what is there."""
    if found is None or name not in found.topics:
        return None
    total = 0
    for each in found.topics[name].partitions.values():
        if each.ends is None or each.begins is None:
            return None
        total += each.ends - (each.begins if has_begun else 0)
    return total


def _sizes(found: Survey | None) -> dict[str, int]:
    """Of the leaders' copies."""
    sizes: dict[str, int] = {}
    for (node_id, name, index), size in ({} if found is None else found.log_bytes).items():
        topic = None if found is None else found.topics.get(name)
        partition = None if topic is None else topic.partitions.get(index)
        if partition is not None and partition.leader == node_id:
            sizes[name] = sizes.get(name, 0) + size
    return sizes


def _groups(before: Survey | None, found: Survey, per_s: Callable[..., Any]) -> Rows:
    rows = []
    for group in found.groups.values():
        old = None if before is None else before.groups.get(group.group_id)
        lag = _lag(found, group)
        rows.append({
            "group": group.group_id, "state": group.state, "members": len(group.members),
            "lag": lag, "lag_per_s": per_s(None if old is None else _lag(before, old), lag),
            "read_per_s": per_s(
                None if old is None else sum(old.committed.values()),
                sum(group.committed.values()),
            ),
        })  # fmt: skip
    return sorted(rows, key=lambda row: (-(row["lag"] or 0), row["group"]))


def _lag(found: Survey | None, group: Group) -> int | None:
    if found is None or not group.committed:
        return None
    ends = {place: found.end(place) for place in group.committed}
    return sum(
        max(end - group.committed[place], 0) for place, end in ends.items() if end is not None
    )


def _show(look: Look, shape: str) -> None:
    found = look.found
    if shape == JSON:
        from kafkalite.client.rendering import as_json

        brokers = [each.node_id for each in found.brokers]
        whole = {
            "at_ms": found.at_ms, "cluster": found.cluster_id, "brokers": brokers,
            "topics": look.topics, "groups": look.groups, "missing": found.missing,
        }  # fmt: skip
        click.echo(as_json(whole))
    elif shape != TABLE:
        tell(shape, look.topics, TOPICS)
        tell(shape, look.groups, GROUPS)
    else:
        _show_screen(look)
    sys.stdout.flush()


def _show_screen(look: Look) -> None:
    """As much of it as a screen has room for; all of it where there is none."""
    found, topics, groups = look.found, look.topics, look.groups
    left = 0
    if is_screen := sys.stdout.isatty():
        room = max(shutil.get_terminal_size().lines - _OTHER_LINES - len(found.missing), 2)
        for_groups = min(len(groups), max(room // 2, room - len(topics)))
        left = len(topics) - (room - for_groups) + len(groups) - for_groups
        topics, groups = topics[: room - for_groups], groups[:for_groups]
    at = time.strftime("%H:%M:%S", time.localtime(found.at_ms / 1000))
    rest = f", {left} not shown" if left > 0 else ""
    click.echo(
        f"{CLEAR if is_screen else ''}{at}  cluster {found.cluster_id}, {len(found.brokers)} "
        f"brokers, controller {found.controller}{rest}"
    )
    tell(TABLE, topics, TOPICS)
    click.echo()
    tell(TABLE, groups, GROUPS)
    click.echo()
    tell_missing(found.missing)
