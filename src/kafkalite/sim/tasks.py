"""Members of a streams group, and what each knows of the tasks that are its own.

The application reads a topic, writes what it reads by another key into a topic of its own, which
the broker makes, and counts there. Owns the judgement at every answer that brings tasks: nobody
else has them. Invariant: what it reports is false whatever was lost on the way, so a member is only
sure of a task while nobody could take it for gone or for too slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import StreamsGroupHeartbeatRequest
from kafkalite.sim.client import Ask, Client, Script
from kafkalite.sim.member import REBALANCE_MS, SESSION_MS, Member
from kafkalite.sim.places import Anomaly, Places

GROUP = "streamers"
LEAVES = -1
VERSION = 0
COUNTED = "streamers-by-key-repartition"
KEPT = "streamers-count-changelog"
READS, COUNTS = "0", "1"

Request = StreamsGroupHeartbeatRequest
Task = tuple[str, int]  # a subtopology and a partition


@dataclass(slots=True)
class Hold:
    """A task that is a member's, for sure."""

    who: str
    since_ms: int
    until_ms: int


@dataclass(slots=True)
class Working:
    """The evidence about one group that works on one topic."""

    topic: str
    partition_count: int
    now_ms: Callable[[], int]
    group_id: str = GROUP
    is_peaceful: bool = False
    is_over: bool = False
    found: list[Anomaly] = field(default_factory=list)
    _holds: dict[Task, Hold] = field(default_factory=dict)

    def hand(self, who: str, tasks: set[Task], asked_ms: int) -> None:
        """All that a member has, by an answer to what it asked at that time."""
        now_ms = self.now_ms()
        for task in sorted(tasks):
            hold = self._holds.get(task)
            if hold is not None and hold.who != who:
                if hold.since_ms < asked_ms and now_ms < hold.until_ms:
                    told = f"{task}, for {who}: {hold.who} has it until {hold.until_ms}"
                    self.found.append(("worked on by two", told))
                hold = None
            until_ms = asked_ms + min(SESSION_MS, REBALANCE_MS)
            self._holds[task] = Hold(who, hold.since_ms if hold else now_ms, until_ms)

    def let_go(self, who: str, tasks: set[Task]) -> None:
        for task in tasks:
            if task in self._holds and self._holds[task].who == who:
                del self._holds[task]

    @property
    def tasks(self) -> set[Task]:
        return {(name, index) for name in (READS, COUNTS) for index in range(self.partition_count)}


@dataclass(slots=True)
class Worker(Member):
    """One incarnation of a member, which is a process of its own."""

    membership: Working
    owned: set[Task] = field(default_factory=set)
    lives: int = 0
    has_missed: bool = False
    missed_ms: int | None = None  # since when it may have had to let go of a task

    def forget(self) -> None:
        Member.forget(self)
        self.lives, self.missed_ms = self.lives + 1, None
        self.member_id, self.epoch = f"{self.name}-{self.lives}", 0

    def has_left(self) -> None:
        Member.has_left(self)
        self.membership.let_go(self.member_id, self.owned)
        self.owned = set()

    def live(self) -> Script:
        request = self._request(self.epoch)
        if self.epoch == 0:
            request.topology = self._topology()
            request.process_id, request.client_tags = self.member_id, []
            request.rebalance_timeout_ms = REBALANCE_MS
        request.active_tasks = _task_ids(self.owned)
        request.standby_tasks, request.warmup_tasks = [], []
        asked_ms = self.membership.now_ms()
        [answer] = yield Ask([(request, VERSION)])
        if answer is None:
            self._miss(asked_ms)
        else:
            self._take(answer, asked_ms)
        yield self.beat()

    def leave(self) -> Script:
        self.membership.let_go(self.member_id, self.owned)
        yield Ask([(self._request(LEAVES), VERSION)])

    def _request(self, epoch: int) -> Request:
        return Request(
            group_id=self.membership.group_id, member_id=self.member_id, member_epoch=epoch
        )

    def _topology(self) -> Request.Topology:
        kept = Request.TopicInfo(
            name=KEPT, partitions=0, replication_factor=0,
            topic_configs=[Request.KeyValue(key="cleanup.policy", value="compact")],
        )
        counted = Request.TopicInfo(name=COUNTED, partitions=0, replication_factor=0)
        return Request.Topology(
            epoch=0,
            subtopologies=[
                Request.Subtopology(
                    subtopology_id=READS, source_topics=[self.membership.topic],
                    repartition_sink_topics=[COUNTED],
                ),
                Request.Subtopology(
                    subtopology_id=COUNTS, repartition_source_topics=[counted],
                    state_changelog_topics=[kept],
                ),
            ],
        )

    def _take(self, answer: Any, asked_ms: int) -> None:
        code = Error(answer.error_code)
        if code is not Error.NONE:
            self._miss(asked_ms)
            self.told(code, "StreamsGroupHeartbeat")
            return
        self.epoch, self.is_steady = answer.member_epoch, True
        for each in answer.status or ():
            self.history.count(f"streams members told of status {each.status_code}")
        if answer.active_tasks is not None:
            told = answer.active_tasks
            tasks = {(one.subtopology_id, index) for one in told for index in one.partitions}
            self.membership.let_go(self.member_id, self.owned - tasks)
            self.owned = tasks
            self.has_missed = False
        if self.has_missed:
            return  # the answer that did not come may have taken some away
        since_ms = asked_ms if self.missed_ms is None else self.missed_ms
        self.missed_ms = None
        self.membership.hand(self.member_id, self.owned, since_ms)

    def _miss(self, asked_ms: int) -> None:
        self.has_missed = True
        if self.missed_ms is None:
            self.missed_ms = asked_ms


def _task_ids(tasks: set[Task]) -> list[Request.TaskIds]:
    return [
        Request.TaskIds(
            subtopology_id=name, partitions=sorted(index for of, index in tasks if of == name)
        )
        for name in sorted({name for name, _ in tasks})
    ]


@dataclass(slots=True)
class Workers(Places[Worker]):
    """All members of the group."""

    membership: Working

    def make(self, number: int, incarnation: int, client: Client) -> Worker:
        self.world.history.count("members of a streams group")
        return Worker(
            f"worker-{number}.{incarnation}", self.world.random, self.world.history,
            self.membership,
        )

    def check(self) -> Iterator[Anomaly]:
        owners: dict[Task, list[str]] = {}
        for place in self.places:
            if not (place.client.is_running and place.member.is_steady):
                yield "not in the group", place.member.name
            for task in place.member.owned:
                owners.setdefault(task, []).append(place.member.name)
        for task in sorted(self.membership.tasks | owners.keys()):
            if len(owners.get(task, [])) != 1:
                yield "not worked on by one", f"{task}: {owners.get(task)}"
