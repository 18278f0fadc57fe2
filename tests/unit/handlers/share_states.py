"""The requests that brokers ask share coordinators, about one partition, by hand."""

from __future__ import annotations

from typing import Any

from kafkalite.protocol.messages import (
    DeleteShareGroupStateRequest,
    FindCoordinatorRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    WriteShareGroupStateRequest,
)
from tests.unit.handlers.share_desk import SETTINGS
from tests.unit.handlers.whole_broker import WholeBroker

GROUP = "g"
KINDS = {
    "initialize": InitializeShareGroupStateRequest,
    "read": ReadShareGroupStateRequest,
    "write": WriteShareGroupStateRequest,
    "delete": DeleteShareGroupStateRequest,
    "summarize": ReadShareGroupStateSummaryRequest,
}


class StateDesk(WholeBroker):
    """With a topic of two partitions, and a coordinator."""

    def __init__(self, settings: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__({**SETTINGS, **(settings or {})}, **more)
        self.topic_id = self.context.metadata.image.topic_id("t") or self.create("t", 2)
        key = f"{GROUP}:{'A' * 22}:0"
        self.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6)

    def started_again(self) -> StateDesk:
        return StateDesk(self.settings, disk=self.env.disk)

    def of(self, what: str, version: int | None = None, **fields: Any) -> Any:
        """The answer about a partition, the first unless another is named."""
        kind: Any = KINDS[what]
        group_id, topic_id = fields.pop("group_id", GROUP), fields.pop("topic_id", self.topic_id)
        entry = kind.Partition(**{"partition": 0, **fields})
        request = kind(
            group_id=group_id, topics=[kind.Topic(topic_id=topic_id, partitions=[entry])]
        )
        newest = kind.SPEC.api.versions.stop - 1
        answer = self.ask(request, newest if version is None else version)
        if not answer.results:
            return None
        return answer.results[0].partitions[0]

    def write(self, *batches: tuple[int, int, int, int], **fields: Any) -> Any:
        """First and last offset, state and count of each."""
        kind = WriteShareGroupStateRequest.StateBatch
        told = [
            kind(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in batches
        ]
        values = {"state_epoch": 0, "leader_epoch": 0, "start_offset": 0, **fields}
        return self.of("write", state_batches=told, **values)

    def known(self, **fields: Any) -> list[tuple[int, int, int, int]]:
        answer = self.of("read", **{"leader_epoch": -1, **fields})
        assert answer.error_code == 0, answer
        return [
            (one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
            for one in answer.state_batches
        ]
