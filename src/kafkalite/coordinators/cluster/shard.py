"""The state machine of the cluster's metadata: who decides on which event, and the fold.

Owns the table from events to deciding functions, and records held back between the bounds of a
transaction in the log. Deterministic: chance comes from the random source it was given, and no
clock is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster import brokers, configs, features, quotas, reassignments, scram
from kafkalite.coordinators.cluster.create_partitions import create_partitions
from kafkalite.coordinators.cluster.create_topics import create_topics
from kafkalite.coordinators.cluster.deciding import View
from kafkalite.coordinators.cluster.delete_topics import delete_topics
from kafkalite.coordinators.cluster.elect_leaders import elect_leaders
from kafkalite.coordinators.cluster.image import Changes, Image
from kafkalite.coordinators.cluster.records import decode_record
from kafkalite.coordinators.effects import Effects, Record
from kafkalite.protocol.messages import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    AlterUserScramCredentialsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    UpdateFeaturesRequest,
)

if TYPE_CHECKING:
    from random import Random

Decision = Callable[[View, Any], Effects]
DECISIONS: dict[type[Any], Decision] = {
    CreateTopicsRequest: create_topics,
    DeleteTopicsRequest: delete_topics,
    CreatePartitionsRequest: create_partitions,
    configs.AlterConfigs: configs.alter_configs,
    AlterClientQuotasRequest: quotas.alter_client_quotas,
    AlterUserScramCredentialsRequest: scram.alter_user_scram_credentials,
    UpdateFeaturesRequest: features.update_features,
    ElectLeadersRequest: elect_leaders,
    AlterPartitionReassignmentsRequest: reassignments.alter_partition_reassignments,
    brokers.RegisterBroker: brokers.register_broker,
    brokers.FenceBroker: brokers.fence_broker,
    brokers.UnregisterBroker: brokers.unregister_broker,
    brokers.AllocateProducerIds: brokers.allocate_producer_ids,
}


class ClusterShard:
    """Decides and folds; the log and those who wait for changes are `cluster.Cluster`'s."""

    __slots__ = ("_held_back", "changes", "config", "image", "view")

    def __init__(self, config: BrokerConfig, chance: Random) -> None:
        self.image = Image()
        self.config = config
        self.changes = Changes()
        self.view = View(self.image, config, chance)
        # Records since a BeginTransactionRecord: they count when the transaction ends.
        self._held_back: list[Any] | None = None

    def decide(self, event: Any, now_ms: int) -> Effects:
        """What shall be written and answered; raises KafkaError for a refusal as a whole."""
        return DECISIONS[type(event)](self.view, event)

    def replay(self, record: Record) -> None:
        """Folds one record of the log in."""
        assert record.value is not None, "a metadata record without a value"
        message = record.decoded if record.decoded is not None else decode_record(record.value)
        self.fold(message)

    def fold(self, message: Any) -> None:
        """Folds one message in, or holds it back until its transaction ends."""
        kind = type(message).__name__
        if kind == "BeginTransactionRecord":
            assert self._held_back is None, "a metadata transaction within another"
            self._held_back = []
        elif kind == "EndTransactionRecord":
            held_back, self._held_back = self._held_back or [], None
            for each in held_back:
                self.image.apply(each, self.changes)
        elif kind == "AbortTransactionRecord":
            self._held_back = None
        elif self._held_back is not None:
            self._held_back.append(message)
        else:
            self.image.apply(message, self.changes)

    def take_changes(self) -> Changes:
        """What was changed since this was last asked."""
        changes, self.changes = self.changes, Changes()
        return changes

    def loaded(self, now_ms: int) -> Effects:
        """An unfinished transaction at the log's end never happened."""
        self._held_back = None
        return Effects()
