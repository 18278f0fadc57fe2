"""Share groups and streams groups: how fast records are handed out and done with, and how soon what
a member says of one is written; how long tasks take to come to their members.

One raw member reads a topic from its beginning and accepts everything: each request for records
says what became of those before, as stock members do. Then it accepts records one by one, in
requests of their own. Of a streams group 20 members come, to an application with 40 tasks.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.pair import OURS, THEIRS, Run, Target
from bench.raw_client import Produce, RawClient, make_batch, make_topic
from bench.raw_client import run as run_load
from bench.rows import Row
from kafkalite.protocol import messages
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)

SUITE = "sharing"
GOAL = 1.0
TOPIC, TASKS_TOPIC = "sharing-bench", "tasks-bench"
RECORDS, QUICK_RECORDS = 1_000_000, 100_000
RECORD_BYTES, BATCH_RECORDS = 100, 200
FETCH_RECORDS = 500  # as many as a stock member asks for
SAID = 200  # records that are accepted one by one
TASKS, MEMBERS = 40, 20
SETTLE_SECONDS = 120
HEARTBEAT_PAUSE = 0.005
GROUP_RESOURCE, FINDS_GROUPS = 32, 0
ACCEPT = 1
HEARTBEAT, FETCH, ACKNOWLEDGE, STREAMS = 1, 1, 1, 0

Range = tuple[int, int]


@dataclass(slots=True)
class Sharer:
    """One member with a session, which has one partition."""

    client: RawClient
    topic_id: bytes
    group_id: str
    member_id: str
    epoch: int = 0
    session_epoch: int = 0

    def join(self) -> None:
        """Until it has its partition."""
        deadline = time.perf_counter() + SETTLE_SECONDS
        while not self._beat():
            assert time.perf_counter() < deadline, "the member has no partition"
            time.sleep(0.05)

    def _beat(self) -> bool:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch,
            subscribed_topic_names=[TOPIC],
        )
        answer = self.client.call(request, HEARTBEAT, messages.ShareGroupHeartbeatResponse)
        if answer.error_code != Error.NONE:
            assert answer.error_code in _NOT_YET, answer
            return False
        self.epoch = answer.member_epoch
        return bool(answer.assignment and answer.assignment.topic_partitions)

    def fetch(self, accepted: list[Range], most: int = FETCH_RECORDS) -> list[Range]:
        """More records, and what became of those before; none when this is still unknown."""
        request = ShareFetchRequest(
            share_session_epoch=self.session_epoch, max_wait_ms=500, min_bytes=1,
            max_bytes=1 << 24, max_records=most, batch_size=most,
            **self._about(ShareFetchRequest, accepted),
        )
        answer = self.client.call(request, FETCH, messages.ShareFetchResponse)
        assert answer.error_code == Error.NONE, answer
        self.session_epoch += 1
        found: list[Range] = []
        for topic in answer.responses:
            for one in topic.partitions:
                assert one.error_code in (Error.NONE, *_NOT_YET), one
                assert one.acknowledge_error_code == Error.NONE, one
                found += [(each.first_offset, each.last_offset) for each in one.acquired_records]
        return found

    def accept(self, accepted: list[Range]) -> None:
        request = ShareAcknowledgeRequest(
            share_session_epoch=self.session_epoch,
            **self._about(ShareAcknowledgeRequest, accepted),
        )
        answer = self.client.call(request, ACKNOWLEDGE, messages.ShareAcknowledgeResponse)
        assert answer.error_code == answer.responses[0].partitions[0].error_code == 0, answer
        self.session_epoch += 1

    def _about(self, kind: Any, accepted: list[Range]) -> dict[str, Any]:
        batches = [
            kind.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=[ACCEPT]
            )
            for first, last in accepted
        ]
        partition = kind.Partition(partition_index=0, acknowledgement_batches=batches)
        topics = [kind.Topic(topic_id=self.topic_id, partitions=[partition])]
        return {"group_id": self.group_id, "member_id": self.member_id, "topics": topics}


_NOT_YET = (
    Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
)  # fmt: skip


def sharer(target: Target) -> Sharer:
    """The only member of a new group, from the beginning on."""
    client = RawClient(target.host, target.port)
    group_id = uuid.uuid4().hex
    find(client, group_id)
    kind = IncrementalAlterConfigsRequest
    config = kind.Config(name="share.auto.offset.reset", config_operation=0, value="earliest")
    resource = kind.Resource(
        resource_type=GROUP_RESOURCE, resource_name=group_id, configs=[config]
    )
    changed = client.call(
        kind(resources=[resource]), 1, messages.IncrementalAlterConfigsResponse
    )
    assert changed.responses[0].error_code == Error.NONE, changed
    wanted = MetadataRequest.Topic(name=TOPIC)
    known = client.call(MetadataRequest(topics=[wanted]), 12, messages.MetadataResponse)
    member = Sharer(client, known.topics[0].topic_id, group_id, str(uuid.uuid4()))
    member.join()
    return member


def find(client: RawClient, group_id: str) -> None:
    request = messages.FindCoordinatorRequest(
        key_type=FINDS_GROUPS, coordinator_keys=[group_id]
    )
    for _ in range(500):
        found = client.call(request, 4, messages.FindCoordinatorResponse).coordinators[0]
        if found.error_code == Error.NONE:
            return
        time.sleep(0.02)
    raise AssertionError(f"nobody coordinates {group_id}")


def shared(target: Target, count: int) -> dict[str, float]:
    """Records a second from the first to the last that is accepted."""
    member = sharer(target)
    accepted: list[Range] = []
    while not accepted:  # until its state is there
        accepted = member.fetch([])
    done, start = 0, time.perf_counter()
    while accepted and done < count:
        done += sum(last - first + 1 for first, last in accepted)
        if done < count:
            accepted = member.fetch(accepted)
    member.accept(accepted)
    seconds = time.perf_counter() - start
    member.client.close()
    assert done >= count, f"{done} of {count} records"
    return {f"records of {count:,} shared and accepted": done / seconds}


def said(target: Target) -> dict[str, float]:
    """Milliseconds until what is said of one record is written."""
    member = sharer(target)
    accepted: list[Range] = []
    while not accepted:
        accepted = member.fetch([])
    offsets = [offset for first, last in accepted for offset in range(first, last + 1)][:SAID]
    start = time.perf_counter()
    for offset in offsets:
        member.accept([(offset, offset)])
    seconds = time.perf_counter() - start
    member.client.close()
    return {"one record accepted": 1000 * seconds / len(offsets)}


# --- streams groups -------------------------------------------------------------------------------


def tasks_given(target: Target) -> dict[str, float]:
    """All members come at once, and beat until all tasks are theirs."""
    clients = [RawClient(target.host, target.port) for _ in range(MEMBERS)]
    group_id = uuid.uuid4().hex
    find(clients[0], group_id)
    epochs, owned = dict.fromkeys(range(MEMBERS), 0), {n: set[int]() for n in range(MEMBERS)}
    start = time.perf_counter()
    while sum(map(len, owned.values())) < TASKS or len(set(epochs.values())) > 1:
        assert time.perf_counter() < start + SETTLE_SECONDS, "the group does not settle"
        for number, client in enumerate(clients):
            request = _working(group_id, number, epochs[number], owned[number])
            answer = client.call(request, STREAMS, messages.StreamsGroupHeartbeatResponse)
            if answer.error_code in _NOT_YET:
                continue
            assert answer.error_code == Error.NONE, answer
            epochs[number] = answer.member_epoch
            if answer.active_tasks is not None:
                owned[number] = {n for one in answer.active_tasks for n in one.partitions}
        time.sleep(HEARTBEAT_PAUSE)
    seconds = time.perf_counter() - start
    for client in clients:
        client.close()
    return {f"{TASKS} tasks to {MEMBERS} members": seconds}


def _working(
    group_id: str, number: int, epoch: int, owned: set[int]
) -> StreamsGroupHeartbeatRequest:
    kind = StreamsGroupHeartbeatRequest
    tasks = [kind.TaskIds(subtopology_id="0", partitions=sorted(owned))] if owned else []
    request = kind(
        group_id=group_id, member_id=f"member-{number}", member_epoch=epoch,
        active_tasks=tasks, standby_tasks=[], warmup_tasks=[],
    )
    if epoch == 0:
        request.rebalance_timeout_ms = 60_000
        request.process_id, request.client_tags = f"process-{number}", []
        subtopology = kind.Subtopology(subtopology_id="0", source_topics=[TASKS_TOPIC])
        request.topology = kind.Topology(epoch=0, subtopologies=[subtopology])
    return request


# --- rows -----------------------------------------------------------------------------------------


def prepare(target: Target, count: int) -> None:
    client = RawClient(target.host, target.port)
    make_topic(client, TOPIC)
    make_topic(client, TASKS_TOPIC, TASKS)
    batch, records = make_batch(BATCH_RECORDS * RECORD_BYTES, RECORD_BYTES)
    run_load(client, Produce(TOPIC, batch, records), in_flight=4, requests=count // records + 10)
    client.close()


def measure(run: Run, targets: list[Target]) -> Iterator[Row]:
    count = QUICK_RECORDS if run.is_quick else RECORDS
    for target in targets:
        run.tell(f"sharing: {count} records for {target.name}")
        prepare(target, count)
    loads: tuple[tuple[Callable[[Target], dict[str, float]], str, float | None], ...] = (
        (partial(shared, count=count), "records/s", GOAL),
        (said, "ms", GOAL),
        (tasks_given, "s", None),
    )
    for load, unit, goal in loads:
        found = run.turns(targets, load, "sharing")
        for name in found[OURS][0]:
            ours, theirs = ([each[name] for each in found[side]] for side in (OURS, THEIRS))
            is_rate = unit.endswith("/s")
            yield Row(SUITE, name, unit, ours, theirs, goal=goal, is_rate=is_rate)
