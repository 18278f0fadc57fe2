"""What a controller writes first when it takes the lead: it ends what another left undone, and
gives a new cluster the records that it begins with.

Owns those records. Those that formatting a directory left in `bootstrap.checkpoint` go before our
own, as with Apache Kafka: a release's feature levels, users. Reads only.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from kafkalite.coordinators.cluster.feature_levels import (
    METADATA_VERSION,
    SETTING,
    first_levels,
    not_as_wanted,
)
from kafkalite.coordinators.cluster.features import check_levels
from kafkalite.coordinators.cluster.image import ELR_VERSION
from kafkalite.coordinators.cluster.records import METADATA_TRANSACTIONS, UnknownMetadata, as_record
from kafkalite.coordinators.cluster.shard import ClusterShard
from kafkalite.coordinators.cluster.snapshots import read_snapshot
from kafkalite.coordinators.cluster.states import BROKER
from kafkalite.coordinators.effects import Record
from kafkalite.env.disk import Disk
from kafkalite.protocol.messages import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)

log = logging.getLogger(__name__)

BOOTSTRAP: Final = "bootstrap.checkpoint"


def activation_records(shard: ClusterShard, disk: Disk, path: str) -> list[Record]:
    """The records for what was read of a log directory; none when all is in order."""
    level, levels, messages = shard.image.metadata_version, shard.image.features, []
    wanted = shard.config.get_list(SETTING)
    if not levels:
        messages = _bootstrap(disk, f"{path}/{BOOTSTRAP}", first_levels(wanted))
        levels = _levels(messages)
        level = levels[METADATA_VERSION]
        messages = [*_first(shard, messages, level)]
    if missed := not_as_wanted(wanted, levels):
        log.warning(
            "the features of this cluster are those of its data, not %s: %s counts when a cluster"
            " is new, kafka-features changes them later", ", ".join(missed), SETTING,
        )  # fmt: skip
    if shard.is_in_transaction:
        if level < METADATA_TRANSACTIONS:
            raise UnknownMetadata(f"a transaction at metadata.version level {level}")
        messages = [AbortTransactionRecord(reason="Controller failover"), *messages]
    return [as_record(message, level) for message in messages]


def _bootstrap(disk: Disk, path: str, levels: dict[str, int]) -> list[object]:
    """What formatting left, or these levels."""
    if not disk.exists(path):
        return [FeatureLevelRecord(name=name, feature_level=levels[name]) for name in levels]
    messages = read_snapshot(disk, path).messages
    levels = _levels(messages)
    if METADATA_VERSION not in levels:
        raise UnknownMetadata(f"no metadata.version in the {BOOTSTRAP} beside it")
    check_levels(levels)
    return messages


def _levels(messages: list[object]) -> dict[str, int]:
    return {
        each.name: each.feature_level for each in messages if isinstance(each, FeatureLevelRecord)
    }


def _first(shard: ClusterShard, messages: list[object], level: int) -> Iterator[object]:
    """What a new cluster begins with; as Apache Kafka writes it, in a transaction if it can."""
    if level >= METADATA_TRANSACTIONS:
        yield BeginTransactionRecord(name="Bootstrap records")
    yield from messages
    if _levels(messages).get(ELR_VERSION, 0) > 0:
        # With eligible leader replicas the least in-sync count is the cluster's, not a broker's.
        yield ConfigRecord(
            resource_type=BROKER,
            resource_name="",
            name="min.insync.replicas",
            value=str(shard.config.get_int("min.insync.replicas")),
        )
    if level >= METADATA_TRANSACTIONS:
        yield EndTransactionRecord()
