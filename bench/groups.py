"""Groups: how long a rebalance takes, and how many commits a second.

Members are raw connections that do at once what they are told, so that the time is the
coordinator's: 19 members join one that is there, until all are assigned; one leaves and the rest
are assigned again; 1,000 groups of one member each; commits of one partition, one after the other
and 8 at once. Then what 10,000 groups cost that nobody uses.
"""

from __future__ import annotations

import selectors
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.pair import OURS, THEIRS, Run, Target
from bench.raw_client import RawClient, decode_reply, frame_of, make_topic
from bench.rows import Row
from kafkalite.protocol import codec, headers, messages
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ConsumerProtocolSubscription,
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

SUITE = "groups"
REBALANCE_GOAL = 0.5
MEMBERS = 20
GROUPS = 1_000
COMMITS = 2_000
IN_FLIGHT = 8
IDLE_GROUPS, WARM = 11_000, 1_000  # the first of them fill pools that the others share
IDLE_BYTES, IDLE_SECONDS, IDLE_CORES = 2_000, 5, 0.02
# How soon a member hears of a rebalance: so soon that waiting for it is little of what is measured.
HEARTBEAT_SECONDS = 0.000_25
TOPIC = "groups-bench"
SUBSCRIPTION = b"\0\0" + codec.encode(ConsumerProtocolSubscription(topics=[TOPIC]), 0)
JOIN, SYNC, HEARTBEAT, COMMIT = 9, 5, 4, 9


class Wording:
    """An API in one version: frames and answers without a look at its spec, so that the members
    themselves take little of the time."""

    def __init__(self, request: Any, response: Any, version: int) -> None:
        self._encode = partial(codec.encode, version=version)
        self._decode = codec.decoder(response, version)
        body = codec.encode(request(), version)
        self._head = frame_of(request(), version, 0)[4 : -len(body)]
        self._answer_at = 4 + headers.response_header_version(response.API_KEY, version)

    def frame(self, request: Any) -> bytes:
        body = self._encode(request)
        return (len(self._head) + len(body)).to_bytes(4, "big") + self._head + body

    def answer(self, reply: memoryview) -> Any:
        return self._decode(reply, self._answer_at)


JOINING = Wording(JoinGroupRequest, JoinGroupResponse, JOIN)
SYNCING = Wording(SyncGroupRequest, SyncGroupResponse, SYNC)
BEATING = Wording(HeartbeatRequest, HeartbeatResponse, HEARTBEAT)


@dataclass(slots=True)
class Member:
    """One connection; a machine that goes from join to sync to heartbeats."""

    client: RawClient
    group_id: str
    member_id: str = ""
    generation: int = -1
    asked: Wording | None = None
    is_assigned: bool = False
    next_heartbeat: float = 0.0

    def send(self, wording: Wording, request: Any) -> None:
        self.asked = wording
        self.client.send(wording.frame(request))

    def join(self) -> None:
        self.is_assigned = False
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.Protocol(name="range", metadata=SUBSCRIPTION)],
        )
        self.send(JOINING, request)

    def heartbeat(self) -> None:
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=self.member_id
        )
        self.send(BEATING, request)

    def receive(self) -> None:
        asked, self.asked = self.asked, None
        assert asked is not None, "an answer to nothing"
        answer = asked.answer(self.client.receive())
        if asked is JOINING:
            self._joined(answer)
        elif asked is SYNCING:
            self._synced(answer)
        else:
            self._alive(answer)

    def _joined(self, answer: Any) -> None:
        self.member_id = answer.member_id or self.member_id
        if answer.error_code != Error.NONE:
            assert answer.error_code in (Error.MEMBER_ID_REQUIRED, Error.REBALANCE_IN_PROGRESS)
            self.join()
            return
        self.generation = answer.generation_id
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequest.Assignment(member_id=one.member_id, assignment=b"assignment")
                for one in answer.members
            ],
        )
        self.send(SYNCING, request)

    def _synced(self, answer: Any) -> None:
        if answer.error_code == Error.NONE:
            self.is_assigned = True
            self.next_heartbeat = time.perf_counter() + HEARTBEAT_SECONDS
        else:
            assert answer.error_code == Error.REBALANCE_IN_PROGRESS, answer
            self.join()

    def _alive(self, answer: Any) -> None:
        self.next_heartbeat = time.perf_counter() + HEARTBEAT_SECONDS
        if answer.error_code == Error.REBALANCE_IN_PROGRESS:
            self.join()


def drive(
    members: list[Member], is_done: Callable[[], bool], *, has_heartbeats: bool = True
) -> float:
    """Has the members do what they are told until it is done; the seconds that took."""
    start = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for member in members:
            selector.register(member.client, selectors.EVENT_READ, member)
        while not is_done():
            assert time.perf_counter() < start + 120, "the group does not settle"
            for key, _ in selector.select(HEARTBEAT_SECONDS / 4):
                key.data.receive()
            now = time.perf_counter()
            for member in members if has_heartbeats else ():
                if member.asked is None and member.is_assigned and now >= member.next_heartbeat:
                    member.heartbeat()
    return time.perf_counter() - start


def in_one_generation(members: list[Member]) -> bool:
    return all_assigned(members) and len({member.generation for member in members}) == 1


def all_assigned(members: list[Member]) -> bool:
    return all(member.is_assigned for member in members)


def rebalances(broker: Target, group_id: str) -> dict[str, float]:
    """One member is there, the others come at once; then one leaves."""
    members = [Member(RawClient(broker.host, broker.port), group_id) for _ in range(MEMBERS)]
    members[0].join()
    drive(members, lambda: members[0].is_assigned)
    members[0].next_heartbeat = 0.0
    for member in members[1:]:
        member.join()
    joining = drive(members, lambda: in_one_generation(members))
    leaver = members.pop()
    drive([leaver], lambda: leaver.asked is None)
    generation = leaver.generation
    request = LeaveGroupRequest(
        group_id=group_id, members=[LeaveGroupRequest.Member(member_id=leaver.member_id)]
    )
    start = time.perf_counter()
    leaver.client.call(request, 5, messages.LeaveGroupResponse)
    for member in members:
        member.next_heartbeat = 0.0
    drive(
        members,
        lambda: in_one_generation(members) and members[0].generation > generation,
    )
    leaving = time.perf_counter() - start
    for member in [*members, leaver]:
        member.client.close()
    return {f"{MEMBERS} members join": joining, "one of them leaves": leaving}


def many_groups(broker: Target, prefix: str) -> dict[str, float]:
    """1,000 groups of one, over 20 connections."""
    clients = [RawClient(broker.host, broker.port) for _ in range(MEMBERS)]
    start = time.perf_counter()
    for first in range(0, GROUPS, MEMBERS):
        members = [
            Member(client, f"{prefix}-{first + number}") for number, client in enumerate(clients)
        ]
        for member in members:
            member.join()
        drive(members, partial(all_assigned, members), has_heartbeats=False)
    seconds = time.perf_counter() - start
    for client in clients:
        client.close()
    return {f"{GROUPS} groups of one": seconds}


def commits(broker: Target, group_id: str) -> dict[str, float]:
    client = RawClient(broker.host, broker.port)
    frames = [frame_of(commit_of(group_id), COMMIT, 0)] * COMMITS
    rates = {}
    for in_flight in (1, IN_FLIGHT):
        start = time.perf_counter()
        send_commits(client, frames, in_flight)
        rates[f"commits, {in_flight} at once"] = COMMITS / (time.perf_counter() - start)
    client.close()
    return rates


def commit_of(group_id: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.Partition(partition_index=0, committed_offset=1)
    topics = [OffsetCommitRequest.Topic(name=TOPIC, partitions=[partition])]
    return OffsetCommitRequest(group_id=group_id, topics=topics)


def send_commits(client: RawClient, frames: list[bytes], in_flight: int) -> None:
    sent = 0
    for received in range(len(frames)):
        while sent < len(frames) and sent - received < in_flight:
            client.send(frames[sent])
            sent += 1
        answer = decode_reply(client.receive(), OffsetCommitResponse, COMMIT)
        assert answer.topics[0].partitions[0].error_code == Error.NONE, answer


def idle_groups(target: Target) -> Iterator[Row]:
    """What groups cost that have offsets and no members: memory, and no processor time."""
    prefix = uuid.uuid4().hex
    frames = [frame_of(commit_of(f"{prefix}-{n}"), COMMIT, 0) for n in range(IDLE_GROUPS)]
    client = RawClient(target.host, target.port)
    send_commits(client, frames[:WARM], IN_FLIGHT)
    memory = target.memory()
    send_commits(client, frames[WARM:], IN_FLIGHT)
    client.close()
    grown = (target.memory() - memory) / (IDLE_GROUPS - WARM)
    before = target.cpu_seconds()
    time.sleep(IDLE_SECONDS)
    busy = (target.cpu_seconds() - before) / IDLE_SECONDS
    name = f"of {IDLE_GROUPS - WARM:,} idle groups"
    yield Row(SUITE, f"memory of one {name}", "bytes", [grown], is_rate=False, limit=IDLE_BYTES)
    yield Row(SUITE, f"processor {name}", "cores", [busy], is_rate=False, limit=IDLE_CORES)


def prepare(target: Target) -> None:
    client = RawClient(target.host, target.port)
    make_ready(client)
    client.close()
    time.sleep(2)


def make_ready(client: RawClient) -> None:
    """The offsets topic and our own are there, and the coordinator has loaded."""
    make_topic(client, TOPIC)
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["warm"])
    for _ in range(500):
        found = client.call(request, 4, messages.FindCoordinatorResponse).coordinators[0]
        if found.error_code == Error.NONE:
            break
        time.sleep(0.02)


def measure(run: Run, targets: list[Target]) -> Iterator[Row]:
    for target in targets:
        prepare(target)
        for name in ("warm-a", "warm-b"):
            rebalances(target, name)
    yield from _rows(run, targets, rebalances, "s")
    if not run.is_quick:
        yield from _rows(run, targets, many_groups, "s")
    yield from _rows(run, targets, commits, "commits/s")
    # Of kafkalite alone: the size of a Java heap tells nothing of what is in it.
    yield from idle_groups(next(target for target in targets if target.name == OURS))


def _rows(
    run: Run, targets: list[Target], load: Callable[[Target, str], dict[str, float]], unit: str
) -> Iterator[Row]:
    found = run.turns(targets, lambda target: load(target, f"g-{uuid.uuid4().hex[:8]}"), "groups")
    for name in found[OURS][0]:
        ours, theirs = ([each[name] for each in found[side]] for side in (OURS, THEIRS))
        goal = REBALANCE_GOAL if load is rebalances else None
        yield Row(SUITE, name, unit, ours, theirs, goal=goal, is_rate=unit != "s")
