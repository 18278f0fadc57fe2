"""`kafkalite log`: where the brokers of any cluster keep their logs, and how large these are."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._as_program import Text, exit_code
from kafkalite.cli._output import (
    is_meant,
    output_option,
    tell,
    tell_missing,
    timeout_option,
    with_cluster,
)
from kafkalite.cli._where import Where, cluster_options

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster
    from kafkalite.client.log_directories import Directory

DIRECTORIES = ("directory", "broker", "partitions", "bytes", "usable", "total", "failure")
PARTITIONS = ("topic", "partition", "broker", "directory", "bytes", "behind", "is_coming")


@click.group()
def command() -> None:
    """Look at the logs of brokers."""


@command.command()
@click.argument("patterns", nargs=-1, type=Text(), metavar="[TOPIC]…")
@cluster_options
@click.option("--broker", "brokers", type=click.IntRange(min=0), multiple=True,
              help="Only of this one; may be repeated.")
@click.option("--partitions", "is_by_partition", is_flag=True,
              help="Each copy of a partition, the largest first.")
@output_option
@timeout_option
def dirs(
    patterns: tuple[str, ...], where: Where, brokers: tuple[int, ...], is_by_partition: bool,
    shape: str, timeout_s: float,
) -> None:  # fmt: skip
    """Tell the log directories of brokers: what is in them, and what is free; TOPIC may have * and
    ? in it."""

    def act(cluster: Cluster) -> None:
        from kafkalite.client.admin import Admin
        from kafkalite.client.cluster import ClientFailed
        from kafkalite.client.log_directories import directories
        from kafkalite.protocol.messages import MetadataRequest

        admin = Admin(cluster, timeout_s=timeout_s)
        answer = admin.ask(MetadataRequest(topics=[], allow_auto_topic_creation=False))
        there = sorted(each.node_id for each in answer.brokers)
        if absent := [each for each in brokers if each not in there]:
            raise ClientFailed(f"there is no broker {absent[0]}: there are {_listed(there)}")
        rows: list[dict[str, Any]] = []
        missing: list[ClientFailed] = []
        for node_id in brokers or there:
            try:
                for each in directories(admin, node_id):
                    rows += _rows(node_id, each, patterns, is_by_partition)
            except ClientFailed as failure:
                missing.append(failure)
        if is_by_partition:
            rows.sort(key=lambda row: -row["bytes"])
        tell(shape, rows, PARTITIONS if is_by_partition else DIRECTORIES)
        tell_missing(map(str, missing))
        if missing:
            sys.stdout.flush()
            sys.exit(exit_code(missing[-1]))

    with_cluster(where, act)


def _listed(brokers: list[int]) -> str:
    return ", ".join(map(str, brokers))


def _rows(
    broker: int, directory: Directory, patterns: tuple[str, ...], is_by_partition: bool
) -> list[dict[str, Any]]:
    copies = [each for each in directory.copies if is_meant(each.topic, patterns)]
    if not is_by_partition:
        return [{
            "directory": directory.path, "broker": broker, "partitions": len(copies),
            "bytes": sum(each.bytes for each in copies), "usable": directory.usable,
            "total": directory.total, "failure": directory.failure,
        }]  # fmt: skip
    return [
        {
            "topic": each.topic, "partition": each.partition, "broker": broker,
            "directory": directory.path, "bytes": each.bytes, "behind": each.lag,
            "is_coming": each.is_coming,
        }
        for each in copies
    ]  # fmt: skip
