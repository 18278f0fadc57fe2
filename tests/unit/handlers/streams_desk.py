"""A whole broker with a topic that streams applications read, asked as their members ask."""

from __future__ import annotations

from typing import Any

from kafkalite.protocol.messages import (
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
)
from tests.unit.handlers.whole_broker import WholeBroker

GROUP, MEMBER, OTHER = "streamers", "a-member", "another"
GROUP_RESOURCE = 32
# Unless a test is about them, nobody waits for members or for the next assignment.
AT_ONCE = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}

Request = StreamsGroupHeartbeatRequest


def topic(
    name: str, partitions: int = 0, configs: dict[str, str] | None = None
) -> Request.TopicInfo:
    given = [Request.KeyValue(key=key, value=value) for key, value in (configs or {}).items()]
    return Request.TopicInfo(
        name=name, partitions=partitions, replication_factor=0, topic_configs=given
    )


def subtopology(name: str = "0", **fields: Any) -> Request.Subtopology:
    return Request.Subtopology(subtopology_id=name, **{"source_topics": ["t"], **fields})


def stateful(name: str = "0", changelog: str = "app-store-changelog") -> Request.Subtopology:
    kept = topic(changelog, configs={"cleanup.policy": "compact"})
    return subtopology(name, state_changelog_topics=[kept])


def topology(*subtopologies: Request.Subtopology, epoch: int = 0) -> Request.Topology:
    return Request.Topology(epoch=epoch, subtopologies=list(subtopologies or (subtopology(),)))


def tasks(told: list[Any] | None) -> dict[str, list[int]] | None:
    return None if told is None else {one.subtopology_id: one.partitions for one in told}


def task_ids(**said: list[int]) -> list[Request.TaskIds]:
    """Tasks by subtopology, which has a number for a name: `_0=[1, 2]`."""
    return [
        Request.TaskIds(subtopology_id=name.removeprefix("_"), partitions=indexes)
        for name, indexes in said.items()
    ]


def statuses(answer: Any) -> dict[int, str]:
    return {one.status_code: one.status_detail for one in answer.status}


def joining(member: str = MEMBER, what: Request.Topology | None = None, **fields: Any) -> Request:
    given = {
        "rebalance_timeout_ms": 30_000, "topology": what or topology(), "active_tasks": [],
        "standby_tasks": [], "warmup_tasks": [], "process_id": f"process of {member}",
        "client_tags": [], **fields,
    }  # fmt: skip
    return Request(group_id=GROUP, member_id=member, member_epoch=0, **given)


def beating(member: str, epoch: int, active: Any = None, **fields: Any) -> Request:
    if active is not None:
        fields = {"standby_tasks": [], "warmup_tasks": [], **fields, "active_tasks": active}
    return Request(group_id=GROUP, member_id=member, member_epoch=epoch, **fields)


class StreamsDesk(WholeBroker):
    def __init__(self, settings: dict[str, str] | None = None, partitions: int = 4, **more: Any):
        super().__init__({**AT_ONCE, **(settings or {})}, **more)
        if self.context.metadata.image.topic_id("t") is None:
            self.create("t", partitions)
        self.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 4)

    def started_again(self) -> StreamsDesk:
        return StreamsDesk(self.settings, disk=self.env.disk)

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

    def join(
        self, member: str = MEMBER, what: Request.Topology | None = None, **fields: Any
    ) -> Any:
        return self.ask(joining(member, what, **fields), 0)

    def beat(self, member: str, epoch: int, active: Any = None, **fields: Any) -> Any:
        return self.ask(beating(member, epoch, active, **fields), 0)

    def leave(self, member: str = MEMBER, **fields: Any) -> Any:
        return self.beat(member, -1, **fields)

    def described(self) -> Any:
        (group,) = self.ask(StreamsGroupDescribeRequest(group_ids=[GROUP]), 0).groups
        return group
