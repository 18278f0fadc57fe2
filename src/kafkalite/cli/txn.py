"""`kafkalite txn`: transactions, and the end of one that hangs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._as_program import Text
from kafkalite.cli._output import moment, output_option, tell, timeout_option, with_cluster
from kafkalite.cli._where import Where, cluster_options
from kafkalite.cli.topic import be_sure, yes_option

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster
    from kafkalite.client.transactions import Described

LISTED = ("transactional_id", "coordinator", "producer_id", "state")
DESCRIBED = (
    "transactional_id", "state", "producer_id", "producer_epoch", "timeout_ms", "began",
    "partitions",
)  # fmt: skip
OPEN = ("producer_id", "producer_epoch", "coordinator_epoch", "begins")



class Place(click.ParamType[tuple[str, int]]):
    """TOPIC:PARTITION."""

    name = "TOPIC:PARTITION"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        topic, _, index = value.rpartition(":")
        if not topic or not re.fullmatch("[0-9]{1,9}", index):
            self.fail(f"{value!r} is not TOPIC:PARTITION", param, ctx)
        return topic, int(index)


@click.group()
def command() -> None:
    """List, describe and end transactions."""


@command.command("list")
@cluster_options
@output_option
@timeout_option
def list_transactions(where: Where, shape: str, timeout_s: float) -> None:
    """List transactional ids and the state of each."""

    def act(cluster: Cluster) -> None:
        from kafkalite.client.admin import Admin
        from kafkalite.client.transactions import listed

        rows: list[dict[str, Any]] = [
            {"transactional_id": each.transactional_id, "coordinator": each.coordinator,
             "producer_id": each.producer_id, "state": each.state}
            for each in listed(Admin(cluster, timeout_s=timeout_s), cluster)
        ]  # fmt: skip
        tell(shape, sorted(rows, key=lambda row: str(row["transactional_id"])), LISTED)

    with_cluster(where, act)


@command.command()
@click.argument("ids", nargs=-1, required=True, type=Text(), metavar="ID…")
@cluster_options
@output_option
@timeout_option
def describe(ids: tuple[str, ...], where: Where, shape: str, timeout_s: float) -> None:
    """Tell how a transaction is, since when it is under way, and where it has written."""

    def act(cluster: Cluster) -> None:
        from kafkalite.client.admin import Admin
        from kafkalite.client.transactions import described

        admin = Admin(cluster, timeout_s=timeout_s)
        tell(shape, [_row(described(admin, name)) for name in ids], DESCRIBED)

    with_cluster(where, act)


def _row(each: Described) -> dict[str, Any]:
    return {
        "transactional_id": each.transactional_id, "state": each.state,
        "producer_id": each.producer_id, "producer_epoch": each.producer_epoch,
        "timeout_ms": each.timeout_ms, "began": moment(each.began_ms),
        "partitions": [f"{topic}:{index}" for topic, index in each.partitions],
    }  # fmt: skip


@command.command("open")
@click.argument("place", type=Place())
@cluster_options
@output_option
@timeout_option
def open_transactions(
    place: tuple[str, int], where: Where, shape: str, timeout_s: float
) -> None:
    """Tell which transactions are open in a partition, the oldest first: readers of committed
    records get nothing that is behind it."""

    def act(cluster: Cluster) -> None:
        from kafkalite.client.admin import Admin
        from kafkalite.client.transactions import open_in

        found = open_in(Admin(cluster, timeout_s=timeout_s), cluster, *place)
        rows = [
            {"producer_id": each.producer_id, "producer_epoch": each.producer_epoch,
             "coordinator_epoch": each.coordinator_epoch, "begins": each.begins}
            for each in sorted(found, key=lambda each: each.begins)
        ]  # fmt: skip
        tell(shape, rows, OPEN)

    with_cluster(where, act)


@command.command()
@click.argument("place", type=Place())
@click.option("--begins", type=click.IntRange(min=0), required=True, metavar="OFFSET",
              help="Where it begins, as `txn open` tells.")
@cluster_options
@yes_option
@timeout_option
def abort(
    place: tuple[str, int], begins: int, where: Where, is_sure: bool, timeout_s: float
) -> None:
    """End a transaction that hangs in a partition: its coordinator does not know it any more."""
    topic, index = place
    be_sure(is_sure, f"Abort the transaction at offset {begins} of {topic}-{index}?")

    def act(cluster: Cluster) -> None:
        from kafkalite.client import transactions
        from kafkalite.client.admin import Admin
        from kafkalite.client.cluster import ClientFailed

        admin = Admin(cluster, timeout_s=timeout_s)
        found = transactions.open_in(admin, cluster, topic, index)
        for each in found:
            if each.begins == begins:
                transactions.abort(admin, cluster, topic, index, each)
                click.echo(f"{topic}-{index}: the transaction at {begins} is aborted")
                return
        raise ClientFailed(f"no open transaction begins at offset {begins} of {topic}-{index}")

    with_cluster(where, act, f"the transaction at {begins}")
