"""Share and streams groups by hand: made, used and left there.

Owns one member of each while it lives. What a share group has read lies in __share_group_state,
what a streams group has read among the offsets of all groups.
"""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from uuid import UUID

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    OffsetCommitRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)
from tests.out_and_in.asking import PATIENCE_S, SHARE, Asker

ACCEPT = 1
PAUSE_S = 0.05
SUBTOPOLOGY = "0"


def member_id_of(number: int) -> str:
    """Kafka's text of a UUID, which share members have as their ids."""
    return urlsafe_b64encode(UUID(int=number, version=4).bytes).decode().rstrip("=")


class ShareMember:
    """A member of a share group that takes one topic's records and accepts them."""

    def __init__(self, asker: Asker, group_id: str, topic: str, topic_id: bytes, seed: int) -> None:
        self.asker, self.group_id, self.topic, self.topic_id = asker, group_id, topic, topic_id
        self.member_id = member_id_of(seed)
        self.epoch = 0
        self.partitions: list[int] = []
        asker.find(group_id)
        asker.find(f"{group_id}:{member_id_of(1)}:0", SHARE)

    def beat(self) -> None:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            subscribed_topic_names=[self.topic] if self.epoch == 0 else None,
        )
        answer = self.asker.patiently(request, 1)
        assert answer.error_code == Error.NONE, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            given = answer.assignment.topic_partitions
            self.partitions = [index for one in given for index in one.partitions]

    def read(self, least: int) -> int:
        """Takes and accepts at least so many records."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.partitions:
            assert time.monotonic() < deadline, "no partitions for a share member"
            self.beat()
            time.sleep(PAUSE_S)
        taken: dict[int, list[tuple[int, int]]] = {}
        session, count = 0, 0
        while count < least:
            assert time.monotonic() < deadline, f"{count} of {least} records for a share member"
            taken = self._fetch(session, taken)
            session += 1
            count += sum(last - first + 1 for ranges in taken.values() for first, last in ranges)
        self._fetch(-1, taken)
        return count

    def _fetch(
        self, session: int, accepted: dict[int, list[tuple[int, int]]]
    ) -> dict[int, list[tuple[int, int]]]:
        """Accepts what was taken before, and takes more unless the session ends."""
        wanted = [
            ShareFetchRequest.Partition(
                partition_index=index,
                acknowledgement_batches=[
                    ShareFetchRequest.AcknowledgementBatch(
                        first_offset=first, last_offset=last, acknowledge_types=[ACCEPT]
                    )
                    for first, last in accepted.get(index, [])
                ],
            )
            for index in self.partitions
        ]
        request = ShareFetchRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=session,
            max_wait_ms=0 if session < 0 else 200,
            min_bytes=0 if session < 0 else 1,
            max_bytes=0 if session < 0 else 1 << 20,
            max_records=0 if session < 0 else 500,
            batch_size=0 if session < 0 else 500,
            topics=[ShareFetchRequest.Topic(topic_id=self.topic_id, partitions=wanted)],
        )
        answer = self.asker.patiently(request, 1)
        assert answer.error_code == Error.NONE, answer
        got: dict[int, list[tuple[int, int]]] = {}
        for topic in answer.responses:
            for one in topic.partitions:
                assert one.acknowledge_error_code == Error.NONE, one
                ranges = [(each.first_offset, each.last_offset) for each in one.acquired_records]
                if ranges:
                    got[one.partition_index] = ranges
        return got

    def leave(self) -> None:
        self.epoch = -1
        self.beat()


class StreamsMember:
    """The one member of a streams group whose topology reads a topic and keeps no state."""

    def __init__(self, asker: Asker, group_id: str, topic: str, seed: int) -> None:
        self.asker, self.group_id, self.topic = asker, group_id, topic
        self.member_id = str(UUID(int=seed, version=4))
        self.epoch = 0
        self.partitions: list[int] | None = None
        asker.find(group_id)

    def beat(self) -> None:
        is_first = self.epoch == 0
        subtopology = StreamsGroupHeartbeatRequest.Subtopology(
            subtopology_id=SUBTOPOLOGY, source_topics=[self.topic]
        )
        topology = StreamsGroupHeartbeatRequest.Topology(epoch=0, subtopologies=[subtopology])
        owned = None
        if is_first:
            owned = []
        elif self.partitions:
            owned = [
                StreamsGroupHeartbeatRequest.TaskIds(
                    subtopology_id=SUBTOPOLOGY, partitions=self.partitions
                )
            ]
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=30_000 if is_first else -1,
            topology=topology if is_first else None,
            active_tasks=owned,
            standby_tasks=[] if owned is not None else None,
            warmup_tasks=[] if owned is not None else None,
            process_id="process" if is_first else None,
            client_tags=[] if is_first else None,
            shutdown_application=False,
        )
        answer = self.asker.patiently(request, 0)
        assert answer.error_code == Error.NONE, answer
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.partitions = [index for one in answer.active_tasks for index in one.partitions]

    def join(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self.partitions:
            assert time.monotonic() < deadline, "no tasks for a streams member"
            self.beat()
            time.sleep(PAUSE_S)
        self.beat()

    def commit(self, offset: int) -> None:
        partitions = [
            OffsetCommitRequest.Partition(
                partition_index=index, committed_offset=offset, committed_metadata="task"
            )
            for index in self.partitions or []
        ]
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            topics=[OffsetCommitRequest.Topic(name=self.topic, partitions=partitions)],
        )
        answer = self.asker.ask(request, 9)
        codes = {one.error_code for topic in answer.topics for one in topic.partitions}
        assert codes == {Error.NONE}, answer

    def leave(self) -> None:
        self.epoch = -1
        self.beat()
