"""`kafkalite cluster`: its brokers, and whether all is well with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._as_program import FOUND
from kafkalite.cli._output import (
    moment,
    output_option,
    tell,
    tell_missing,
    timeout_option,
    with_cluster,
)
from kafkalite.cli._where import JSON, TABLE, Where, cluster_options

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster
    from kafkalite.client.survey import Survey

BROKERS = ("broker", "host", "port", "rack", "leads", "replicas", "bytes", "is_controller")
FEATURES = ("feature", "level", "lowest", "highest")
QUORUM = ("node", "role", "log_end", "lag", "last_fetch", "last_caught_up", "directory")
PROBLEMS = ("partition", "problem")
UNWELL = FOUND  # exit code


@click.group()
def command() -> None:
    """Look at a cluster as a whole."""


@command.command()
@cluster_options
@output_option
def info(where: Where, shape: str) -> None:
    """Tell the cluster's id and its brokers, and what each of them holds."""
    from kafkalite.client.survey import survey

    def act(cluster: Cluster) -> None:
        found = survey(cluster, with_groups=False)
        if shape == TABLE:
            click.echo(f"cluster {found.cluster_id}, {len(found.topics)} topics")
        tell(shape, list(_brokers(found)), BROKERS)
        tell_missing(found.missing)

    with_cluster(where, act)


def _brokers(found: Survey) -> Iterator[dict[str, Any]]:
    partitions = [each for topic in found.topics.values() for each in topic.partitions.values()]
    for broker in found.brokers:
        sizes = [size for (node_id, _, _), size in found.log_bytes.items()
                 if node_id == broker.node_id]  # fmt: skip
        yield {
            "broker": broker.node_id, "host": broker.host, "port": broker.port,
            "rack": broker.rack,
            "leads": sum(each.leader == broker.node_id for each in partitions),
            "replicas": sum(broker.node_id in each.replicas for each in partitions),
            "bytes": sum(sizes) if sizes else None,
            "is_controller": broker.node_id == found.controller,
            "cluster": found.cluster_id,
        }  # fmt: skip


@command.command()
@cluster_options
@output_option
@timeout_option
def features(where: Where, shape: str, timeout_s: float) -> None:
    """Tell which features are at which level, and which levels the broker that is asked knows."""

    def act(cluster: Cluster) -> None:
        from kafkalite.client.admin import Admin
        from kafkalite.protocol.messages import ApiVersionsRequest

        answer = Admin(cluster, timeout_s=timeout_s).ask(ApiVersionsRequest(
            client_software_name="kafkalite", client_software_version="0"
        ))  # fmt: skip
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        rows = [
            {"feature": each.name, "level": levels.get(each.name, 0),
             "lowest": each.min_version, "highest": each.max_version}
            for each in sorted(answer.supported_features, key=lambda each: str(each.name))
        ]  # fmt: skip
        tell(shape, rows, FEATURES)

    with_cluster(where, act)


@command.command()
@cluster_options
@output_option
@timeout_option
def quorum(where: Where, shape: str, timeout_s: float) -> None:
    """Tell who keeps the metadata: voters, observers, and how far each of them is."""
    from kafkalite.client.quorum import standing

    def act(cluster: Cluster) -> None:
        from kafkalite.client.admin import Admin

        found = standing(Admin(cluster, timeout_s=timeout_s))
        if shape == TABLE:
            click.echo(f"leader {found.leader} since epoch {found.epoch}, "
                       f"{found.high_watermark} records are everybody's")  # fmt: skip
        rows = [
            {
                "node": each.node_id, "role": each.role, "log_end": each.log_end,
                "lag": found.log_end - each.log_end, "last_fetch": moment(each.last_fetch_ms),
                "last_caught_up": moment(each.last_caught_up_ms), "directory": each.directory,
                "epoch": found.epoch, "high_watermark": found.high_watermark,
            }
            for each in found.replicas
        ]  # fmt: skip
        tell(shape, rows, QUORUM)

    with_cluster(where, act)


@command.command()
@cluster_options
@output_option
def health(where: Where, shape: str) -> None:
    """Tell what is not well: partitions without a leader, replicas that are behind, brokers that do
    not answer. Exits with 3 when there is something."""
    from kafkalite.client.survey import survey

    def act(cluster: Cluster) -> None:
        found = survey(cluster, with_groups=False)
        rows = list(_problems(found))
        if rows or shape == JSON:
            tell(shape, rows, PROBLEMS)
        elif shape == TABLE and not found.missing:
            click.echo(f"all is well: {len(found.brokers)} brokers, {len(found.topics)} topics")
        tell_missing(found.missing)
        if rows or found.missing:
            sys.stdout.flush()
            sys.exit(UNWELL)

    with_cluster(where, act)


def _problems(found: Survey) -> Iterator[dict[str, Any]]:
    if found.controller < 0:
        yield {"partition": None, "problem": "there is no controller"}
    for topic in found.topics.values():
        for index, each in topic.partitions.items():
            behind = [node_id for node_id in each.replicas if node_id not in each.in_sync]
            if each.leader < 0:
                problem = "no leader: it can be neither read nor written"
            elif behind:
                problem = f"not in sync: {', '.join(map(str, behind))}"
            else:
                continue
            yield {"partition": f"{topic.name}-{index}", "problem": problem}
