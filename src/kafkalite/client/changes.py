"""What changes a cluster: topics, their records, groups and what they have committed.

Owns which request that takes and who is asked. Each change concerns one thing, and says in one
sentence why it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafkalite.client.admin import Admin, check
from kafkalite.client.cluster import ClientFailed
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    OffsetCommitRequest,
)

CHANGE_TIMEOUT_MS = 30_000
TO_THE_END = -1


@dataclass(slots=True)
class Changes:
    """is_tried: it is only asked whether it would be done, where brokers can be asked that."""

    admin: Admin
    is_tried: bool = False

    def create_topic(
        self, name: str, partitions: int, replicas: int, settings: Mapping[str, str]
    ) -> None:
        """-1 stands for what the cluster has as its default."""
        configs = [CreateTopicsRequest.Config(name=key, value=settings[key]) for key in settings]
        topic = CreateTopicsRequest.Topic(
            name=name, num_partitions=partitions, replication_factor=replicas, configs=configs
        )
        request = CreateTopicsRequest(
            topics=[topic], timeout_ms=CHANGE_TIMEOUT_MS, validate_only=self.is_tried
        )
        answer = self.admin.ask_controller(request, lambda answer: _codes(answer.topics))
        check(f"topic {name} is not created", answer.topics[0])

    def delete_topic(self, name: str) -> None:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.Topic(name=name)], topic_names=[name],
            timeout_ms=CHANGE_TIMEOUT_MS,
        )  # fmt: skip
        answer = self.admin.ask_controller(request, lambda answer: _codes(answer.responses))
        check(f"topic {name} is not deleted", answer.responses[0])

    def add_partitions(self, name: str, count: int) -> None:
        """Until it has so many."""
        topic = CreatePartitionsRequest.Topic(name=name, count=count, assignments=None)
        request = CreatePartitionsRequest(
            topics=[topic], timeout_ms=CHANGE_TIMEOUT_MS, validate_only=self.is_tried
        )
        answer = self.admin.ask_controller(request, lambda answer: _codes(answer.results))
        check(f"topic {name} does not get {count} partitions", answer.results[0])

    def delete_records(self, leader: int, name: str, partition: int, before: int) -> None:
        place = DeleteRecordsRequest.Partition(partition_index=partition, offset=before)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsRequest.Topic(name=name, partitions=[place])],
            timeout_ms=CHANGE_TIMEOUT_MS,
        )
        answer = self.admin.ask_broker(leader, request).topics[0].partitions[0]
        check(f"the records of {name}-{partition} are not deleted", answer)

    def delete_group(self, group_id: str) -> None:
        request = DeleteGroupsRequest(groups_names=[group_id])
        answer = self.admin.ask_coordinator(
            group_id, request, lambda answer: _codes(answer.results)
        )
        check(f"group {group_id} is not deleted", answer.results[0])

    def commit(self, group_id: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """In the place of a group that has no members."""
        topics: dict[str, list[Any]] = {}
        for (name, index), offset in offsets.items():
            topics.setdefault(name, []).append(OffsetCommitRequest.Partition(
                partition_index=index, committed_offset=offset, committed_metadata=""
            ))  # fmt: skip
        request = OffsetCommitRequest(
            group_id=group_id,
            topics=[
                OffsetCommitRequest.Topic(name=name, partitions=topics[name]) for name in topics
            ],
        )
        answer = self.admin.ask_coordinator(
            group_id, request,
            lambda answer: [code for topic in answer.topics for code in _codes(topic.partitions)],
        )  # fmt: skip
        for topic in answer.topics:
            for each in topic.partitions:
                if each.error_code == Error.UNKNOWN_MEMBER_ID:
                    raise ClientFailed(
                        f"group {group_id} has members, which would not hear of it: stop them",
                        Error.UNKNOWN_MEMBER_ID,
                    )
                what = f"group {group_id} keeps its offset of {topic.name}-{each.partition_index}"
                check(what, each)


def _codes(entries: list[Any]) -> list[int]:
    return [each.error_code for each in entries]
