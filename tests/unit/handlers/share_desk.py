"""A whole broker with a topic and a group that shares it, asked as members ask."""

from __future__ import annotations

from typing import Any

from kafkalite.env.clock import ManualClock
from kafkalite.protocol.messages import (
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from tests.unit.handlers.whole_broker import WholeBroker

GROUP, MEMBER, OTHER = "sharers", "a-member", "another"
GROUP_RESOURCE = 32
SETTINGS = {"share.coordinator.state.topic.num.partitions": "2"}
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


class ShareDesk(WholeBroker):
    def __init__(self, settings: dict[str, str] | None = None, partitions: int = 1, **more: Any):
        super().__init__({**SETTINGS, **(settings or {})}, **more)
        self.partitions = partitions
        known = self.context.metadata.image.topic_id("t")
        self.topic_id = known or self.create("t", partitions)
        self.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 4)

    def started_again(self) -> ShareDesk:
        return ShareDesk(self.settings, self.partitions, disk=self.env.disk)

    def configure(self, **settings: str) -> None:
        """Of the group, with underscores for dots."""
        kind = IncrementalAlterConfigsRequest
        configs = [
            kind.Config(name=name.replace("_", "."), config_operation=0, value=value)
            for name, value in settings.items()
        ]
        asked = kind.Resource(
            resource_type=GROUP_RESOURCE, resource_name=GROUP, configs=configs
        )
        (answer,) = self.ask(kind(resources=[asked]), 1).responses
        assert answer.error_code == 0, answer

    # --- the group --------------------------------------------------------------------------------

    def beat(self, member: str = MEMBER, epoch: int = 0, topics: list[str] | None = None) -> Any:
        names = ["t"] if epoch == 0 and topics is None else topics
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP, member_id=member, member_epoch=epoch, subscribed_topic_names=names
        )
        return self.ask(request, 1)

    def join(self, member: str = MEMBER) -> int:
        """Until it has partitions; returns its epoch."""
        first = self.beat(member).member_epoch
        self.clock.advance(5_000)
        epoch: int = self.beat(member, first).member_epoch
        assert epoch > 0
        return epoch

    def leave(self, member: str = MEMBER) -> Any:
        return self.beat(member, -1)

    # --- records ----------------------------------------------------------------------------------

    def fetch_request(
        self, member: str = MEMBER, epoch: int = 0, said: Any = (), **fields: Any
    ) -> ShareFetchRequest:
        kind = ShareFetchRequest
        values = {
            "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500,
            "batch_size": 500, **fields,
        }  # fmt: skip
        partition = kind.Partition(
            partition_index=0,
            acknowledgement_batches=[
                kind.AcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=list(types)
                )
                for first, last, *types in said
            ],
        )
        topics = [kind.Topic(topic_id=self.topic_id, partitions=[partition])]
        return kind(
            group_id=GROUP, member_id=member, share_session_epoch=epoch, topics=topics, **values
        )

    def fetch(self, member: str = MEMBER, epoch: int = 0, said: Any = (), **fields: Any) -> Any:
        return self.ask(self.fetch_request(member, epoch, said, **fields), 2)

    def acquired(
        self, member: str = MEMBER, epoch: int = 0, said: Any = (), **fields: Any
    ) -> list[tuple[int, int, int]]:
        """First and last offset, and how often it was delivered, of what a fetch brings."""
        answer = self.fetch(member, epoch, said, **fields)
        assert answer.error_code == 0, answer
        return [
            (each.first_offset, each.last_offset, each.delivery_count)
            for topic in answer.responses
            for one in topic.partitions
            for each in one.acquired_records
        ]

    def acknowledge_request(
        self, *said: Any, member: str = MEMBER, epoch: int = 1, **fields: Any
    ) -> ShareAcknowledgeRequest:
        """What each of `said` says: first and last offset, and a kind for all or for each."""
        kind = ShareAcknowledgeRequest
        batches = [
            kind.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=list(types)
            )
            for first, last, *types in said
        ]
        partition = kind.Partition(partition_index=0, acknowledgement_batches=batches)
        topics = [kind.Topic(topic_id=self.topic_id, partitions=[partition])]
        return kind(
            group_id=GROUP, member_id=member, share_session_epoch=epoch, topics=topics, **fields
        )

    def acknowledge(self, *said: Any, version: int = 2, **fields: Any) -> Any:
        return self.ask(self.acknowledge_request(*said, **fields), version)

    def code_of(self, *said: Any, **fields: Any) -> int:
        """The error of the one partition."""
        answer = self.acknowledge(*said, **fields)
        assert answer.error_code == 0, answer
        code: int = answer.responses[0].partitions[0].error_code
        return code


def desk_with(
    count: int = 10, clock: ManualClock | None = None, **settings: str
) -> ShareDesk:
    """A member that has joined, and so many records that nobody was handed."""
    desk = ShareDesk(clock=clock)
    desk.configure(share_auto_offset_reset="earliest", **settings)
    if count:
        desk.append(*(b"%d" % number for number in range(count)))
    desk.join()
    return desk
