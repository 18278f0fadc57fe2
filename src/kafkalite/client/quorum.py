"""The quorum of the metadata: who votes, who only follows, and how far each of them is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kafkalite.client.admin import Admin
from kafkalite.client.cluster import ClientFailed
from kafkalite.client.secrets import METADATA_TOPIC
from kafkalite.log.names import uuid_text
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeQuorumRequest

LEADER, VOTER, OBSERVER = "leader", "voter", "observer"


@dataclass(slots=True)
class Replica:
    """Times are -1 where nobody knows them."""

    node_id: int
    role: str
    directory: str
    log_end: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(slots=True)
class Standing:
    """With its leader before all others."""

    leader: int
    epoch: int
    high_watermark: int
    replicas: list[Replica]

    @property
    def log_end(self) -> int:
        """Where the leader's log ends."""
        return self.replicas[0].log_end


def standing(admin: Admin) -> Standing:
    """ClientFailed says why it is not told."""
    topic = DescribeQuorumRequest.Topic(
        topic_name=METADATA_TOPIC, partitions=[DescribeQuorumRequest.Partition(partition_index=0)]
    )
    answer = admin.ask(DescribeQuorumRequest(topics=[topic]))
    _check(answer)
    partition = answer.topics[0].partitions[0]
    _check(partition)
    voters = list(_replicas(partition.current_voters, VOTER))
    for each in voters:
        if each.node_id == partition.leader_id:
            each.role = LEADER
    voters.sort(key=lambda each: each.role != LEADER)
    if not voters or voters[0].role != LEADER:
        raise ClientFailed("the metadata has no leader: are most of its voters up?")
    return Standing(
        partition.leader_id, partition.leader_epoch, partition.high_watermark,
        [*voters, *_replicas(partition.observers, OBSERVER)],
    )  # fmt: skip


def _replicas(replicas: Iterable[Any], role: str) -> Iterable[Replica]:
    for each in replicas:
        yield Replica(
            each.replica_id, role, uuid_text(each.replica_directory_id), each.log_end_offset,
            each.last_fetch_timestamp, each.last_caught_up_timestamp,
        )  # fmt: skip


def _check(answer: Any) -> None:
    code = Error(answer.error_code)
    if code is not Error.NONE:
        raise ClientFailed(f"the quorum is not told: {code.name}: {code.message}", code)
