"""Assignments of replicas to brokers: the rules for those given by hand, and records of partitions.

Owns what is common to creating topics and adding partitions. Chooses nothing; see placement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kafkalite.coordinators.cluster.directories import UNASSIGNED
from kafkalite.coordinators.cluster.states import BrokerState
from kafkalite.coordinators.cluster.view import View
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import PartitionRecord


def check_assignment(view: View, broker_ids: Sequence[int], factor: int | None) -> None:
    """Raises INVALID_REPLICA_ASSIGNMENT unless these brokers may hold a partition."""
    start = "The manual partition assignment includes"
    why = None
    ordered = sorted(broker_ids)
    unknown = [broker for broker in ordered if broker not in view.image.brokers]
    doubled = [a for a, b in pairwise(ordered) if a == b]
    if not ordered:
        why = f"{start} an empty replica list."
    elif unknown:
        why = f"{start} broker {unknown[0]}, but no such broker is registered."
    elif doubled:
        why = f"{start} the broker {doubled[0]} more than once."
    elif factor is not None and len(ordered) != factor:
        why = (
            f"{start} a partition with {len(ordered)} replica(s), but this is not consistent "
            f"with previous partitions, which have {factor} replica(s)."
        )
    if why is not None:
        raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, why)



def check_alive(view: View, broker_ids: Sequence[int], index: int) -> None:
    """Raises INVALID_REPLICA_ASSIGNMENT unless one of these brokers is up."""
    if not any(view.image.brokers[broker_id].is_active for broker_id in broker_ids):
        why = (
            f"All brokers specified in the manual partition assignment for partition {index} "
            "are fenced or in controlled shutdown."
        )
        raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, why)



def partition_records(
    view: View, topic_id: bytes, first: int, assignments: list[list[int]]
) -> Iterator[PartitionRecord]:
    """Records of new partitions: in sync are those replicas whose brokers are up."""
    return (
        _partition_record(view, topic_id, first + offset, replicas)
        for offset, replicas in enumerate(assignments)
    )



def _partition_record(
    view: View, topic_id: bytes, index: int, replicas: list[int]
) -> PartitionRecord:
    isr = [broker for broker in replicas if view.image.brokers[broker].is_active]
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[default_directory(view, broker) for broker in replicas],
    )



def default_directory(view: View, broker_id: int) -> bytes:
    """The directory of a new replica: the only one that takes any, else left to the broker."""
    broker = view.image.brokers[broker_id]
    open_dirs = [each for each in broker.log_dirs if each not in (broker.cordoned_log_dirs or ())]
    return open_dirs[0] if len(open_dirs) == 1 else UNASSIGNED


def brokers_in_order(view: View) -> list[BrokerState]:
    """Every registered broker, by number."""
    return [view.image.brokers[broker_id] for broker_id in sorted(view.image.brokers)]
