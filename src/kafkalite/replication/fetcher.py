"""Copies partitions from one other broker that leads them.

Owns which partitions follow that broker, and the round that they take together: what each asks
next goes into one request, and each does with its part of the answer what its role wants, a slice
per turn of the loop. A partition is in a round from its question to the end of what its answer
brought; one that waits asks in a later one. Invariant: of each partition one question at most is
open, and after `stop`, or once it has left, nothing more is done to its log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from kafkalite.env import Env
from kafkalite.env.clock import Timer
from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps, Work
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import FetchRequest, FetchResponse, ListOffsetsResponse
from kafkalite.replication import fetching
from kafkalite.replication.acting import Acts, copy_of, follow
from kafkalite.replication.fetching import FetchSettings
from kafkalite.replication.follower import AskRange, Fetched, FetchFrom, Follower, State
from kafkalite.replication.partition import Partition
from kafkalite.replication.session import LOST, Session, Wanted
from kafkalite.replication.throttle import Throttle

logger = logging.getLogger(__name__)

ASKED_PER_STEP = 32  # partitions
HELD_BACK_MS = 100  # until a throttled partition is looked at again

T = TypeVar("T")


class Way(Protocol):
    """The way to the other broker: every question is answered once."""

    def ask(self, request: Any, versions: range) -> Later[Any]: ...


class Fetcher:
    """Of one leader."""

    def __init__(
        self,
        env: Env,
        way: Way,
        broker_id: int,
        broker_epoch: Callable[[], int],
        settings: FetchSettings,
        throttle: Throttle,
    ) -> None:
        """`broker_id` and `broker_epoch` are those of who copies."""
        self._env, self._way, self._settings, self._throttle = env, way, settings, throttle
        self._broker_id, self._broker_epoch = broker_id, broker_epoch
        self._session = Session()
        self._partitions: dict[Partition, None] = {}
        self._is_under_way = False  # a round
        self._timer: Timer | None = None
        self._due_ms = 0
        self._is_stopped = False
        # Those that wait for their disk, or have asked for a range.
        self._waiting: set[Partition] = set()

    def __len__(self) -> int:
        return len(self._partitions)

    def add(self, partition: Partition) -> None:
        """Has it copied from here on, or from its new epoch on."""
        self._partitions[partition] = None
        self._go_on()

    def remove(self, partition: Partition) -> None:
        """Copies it no more."""
        self._partitions.pop(partition, None)

    def leader_is_back(self) -> None:
        """Asks at once."""
        for partition in self._partitions:
            if isinstance(partition.role, Follower):
                partition.role.leader_is_back()
        self._go_on()

    def stop(self) -> None:
        """Asks nothing more, and does nothing with what is answered."""
        self._is_stopped = True
        self._partitions.clear()
        self._rest()
        self._env.slices.drop(self)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _now_ms(self) -> int:
        return self._env.clock.monotonic_ms()

    # --- a round ----------------------------------------------------------------------------------

    def _go_on(self, delay_ms: int = 0) -> None:
        """Has a round begun, unless one is under way: it is followed by the next."""
        if self._is_under_way or self._is_stopped:
            return
        due_ms = self._now_ms() + delay_ms
        if self._timer is not None and self._due_ms <= due_ms:
            return
        self._rest()
        self._due_ms = due_ms
        self._timer = self._env.clock.call_later(delay_ms, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._is_under_way = True
        self._run(self._questions(), self._ask)

    def _run(self, steps: Steps[Any], done: Callable[[Any], None]) -> None:
        self._env.slices.begin(Work(steps, done, self._over, owner=self))

    def _over(self, _: object = None) -> None:
        """The next one begins at once, or when somebody has waited long enough."""
        self._is_under_way = False
        now_ms, waits = self._now_ms(), list[int]()
        for partition in self._partitions:
            role = partition.role
            if isinstance(role, Follower) and role.is_asking and partition not in self._waiting:
                waits.append(max(0, role.delayed_until_ms - now_ms))
        if waits:
            self._go_on(min(waits))

    def _questions(self) -> Steps[tuple[Wanted, FetchRequest] | None]:
        wanted: Wanted = {}
        for count, each in enumerate(list(self._partitions), 1):
            yield from self._guarded(each, self._question(each, wanted))
            if count % ASKED_PER_STEP == 0:
                yield
        if not wanted:
            return None
        question = yield from self._session.question(wanted)
        request = yield from fetching.fetch_request(
            question, self._broker_id, self._broker_epoch(), self._settings
        )
        return wanted, request

    def _question(self, partition: Partition, wanted: Wanted) -> Steps[None]:
        """What it asks now; where its leader's log begins and ends it asks by itself."""
        role = partition.role
        if partition in self._waiting or not isinstance(role, Follower):
            return
        if partition.log.being_cut is not None:  # for a role that was
            self._waits_for(partition, partition.log.being_cut)
            return
        if role.state is State.STARTING:
            effects = role.start(copy_of(partition))
            is_over = yield from self._act(partition, follow(partition, effects, self._now_ms()))
            if not is_over:
                return
        if partition not in self._partitions or self._has_to_last(partition):
            return
        if self._is_held_back(partition, role):
            role.delayed_until_ms = max(role.delayed_until_ms, self._now_ms() + HELD_BACK_MS)
        asked = role.ask(copy_of(partition), self._now_ms())
        if isinstance(asked, AskRange):
            self._ask_range(partition, asked)
        elif asked is not None:
            wanted[partition.topic_id, partition.index] = (partition, asked)

    def _is_held_back(self, partition: Partition, role: Follower) -> bool:
        """One that has all that is committed is asked for what comes, or would leave."""
        has_all = role.lag == 0
        return not has_all and self._throttle.concerns(partition) and self._throttle.is_exceeded

    def _has_to_last(self, partition: Partition) -> bool:
        """Whoever asks from an offset on says that it has all below it: on its disk, where that is
        promised."""
        log = partition.log
        if log.is_durable_on_append or log.durability.durable_offset >= log.log_end_offset:
            return False
        self._waits_for(partition, log.when_durable(log.log_end_offset))
        return True

    def _waits_for(self, partition: Partition, later: Later[Any]) -> None:
        self._waiting.add(partition)
        later.then(lambda _: self._waits_no_more(partition))

    def _waits_no_more(self, partition: Partition) -> None:
        self._waiting.discard(partition)
        self._go_on()

    def _ask(self, asking: tuple[Wanted, FetchRequest] | None) -> None:
        if asking is None:
            self._over()
            return
        wanted, request = asking
        self._way.ask(request, fetching.FETCH_VERSIONS).then(partial(self._answered, wanted))

    def _answered(self, wanted: Wanted, answer: FetchResponse | KafkaError) -> None:
        if self._is_stopped:
            return
        if isinstance(answer, KafkaError):
            self._session.failed()
        else:
            self._session.answered(answer)
        self._run(self._take(wanted, answer), self._over)

    def _take(self, wanted: Wanted, answer: FetchResponse | KafkaError) -> Steps[None]:
        if not isinstance(answer, KafkaError) and answer.error_code in LOST:
            return  # all of it is asked again at once, in a new one
        if isinstance(answer, KafkaError) or answer.error_code != Error.NONE:
            for partition, asked in wanted.values():
                self._unanswered(partition, asked)
                yield
            return
        for key, found in fetching.fetched(answer):
            if key in wanted:
                partition, asked = wanted[key]
                yield from self._guarded(partition, self._fetched(partition, asked, found))
                yield

    # --- one partition ----------------------------------------------------------------------------

    def _fetched(self, partition: Partition, asked: FetchFrom, found: Fetched) -> Steps[None]:
        role = partition.role
        if partition in self._partitions and isinstance(role, Follower):
            if found.records:  # an answer has an end: the others come first in the next round
                self._partitions[partition] = self._partitions.pop(partition)
                if self._throttle.concerns(partition):
                    self._throttle.record(len(found.records))
            now_ms, copy = self._now_ms(), copy_of(partition)
            if not role.takes_watermarks(asked, found, copy):
                self._session.failed()  # else the leader holds them for known
            effects = role.fetched(asked, found, copy, now_ms)
            yield from self._act(partition, follow(partition, effects, now_ms))

    def _unanswered(self, partition: Partition, asked: FetchFrom | AskRange) -> None:
        role = partition.role
        if partition in self._partitions and isinstance(role, Follower):
            role.unanswered(asked, self._now_ms())

    def _ask_range(self, partition: Partition, asked: AskRange) -> None:
        """Two questions, one behind the other on the same way."""
        self._waiting.add(partition)
        first, last = (
            self._way.ask(
                fetching.range_request(partition, asked, self._broker_id, place),
                fetching.RANGE_VERSIONS,
            )
            for place in (fetching.EARLIEST, fetching.LATEST)
        )
        Later.all([first, last]).then(partial(self._told_range, partition, asked))

    def _told_range(
        self, partition: Partition, asked: AskRange, answers: list[ListOffsetsResponse | KafkaError]
    ) -> None:
        if not self._is_stopped:
            self._go_through(partition, self._ranged(partition, asked, answers))

    def _ranged(
        self, partition: Partition, asked: AskRange, answers: list[ListOffsetsResponse | KafkaError]
    ) -> Steps[bool]:
        role, now_ms = partition.role, self._now_ms()
        if partition not in self._partitions or not isinstance(role, Follower):
            return True
        answer = fetching.range_in(answers)
        if answer is None:
            role.unanswered(asked, now_ms)
        else:
            effects = role.told_range(asked, answer, copy_of(partition), now_ms)
            return (yield from self._act(partition, follow(partition, effects, now_ms)))
        return True

    # --- what takes its time ----------------------------------------------------------------------

    def _act(self, partition: Partition, acts: Acts[object]) -> Steps[bool]:
        """Does what its role wants; what waits for the disk goes on apart from the round, and the
        partition asks nothing until then. True when all is done."""
        for awaited in acts:
            if awaited is not None and not awaited.is_resolved:
                self._waiting.add(partition)
                awaited.then(lambda _: self._act_on(partition, acts))
                return False
            yield
        return True

    def _act_on(self, partition: Partition, acts: Acts[object]) -> None:
        if not self._is_stopped:
            self._go_through(partition, self._act(partition, acts))

    def _go_through(self, partition: Partition, steps: Steps[bool]) -> None:
        """Apart from the round, of which the partition is again a part when all is done."""

        def done(is_over: bool | None) -> None:
            if is_over is not False:
                self._waits_no_more(partition)

        self._run(self._guarded(partition, steps), done)

    def _guarded(self, partition: Partition, steps: Steps[T]) -> Steps[T | None]:
        """What fails by a mistake of ours is this partition's alone."""
        try:
            return (yield from steps)
        except Exception:
            logger.exception("%s-%d follows no longer", partition.topic, partition.index)
            if isinstance(partition.role, Follower):
                partition.role.state = State.FAILED
        return None
