"""The deterministic runtime under every coordinator: one shard on one partition's log.

Owns the order of things: decide, append, replay, park the reply, reply when the high watermark
covers it. It knows no message of any protocol and keeps no state that is not the fold of the
log, but for what is parked. Invariant: when an append fails, nothing has changed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar

from kafkalite.coordinators.appending import append_marker, coordinator_error, write
from kafkalite.coordinators.asked import (
    REFUSALS,
    Asked,
    Loaded,
    Marker,
    Parked,
    Reply,
    State,
    Waiter,
)  # fmt: skip
from kafkalite.coordinators.by_turns import ByTurns
from kafkalite.coordinators.deadlines import Deadlines
from kafkalite.coordinators.effects import NO_REPLY, Effects, Failed, Producer, Record, name_of
from kafkalite.coordinators.events import Event
from kafkalite.coordinators.loading import Loading
from kafkalite.coordinators.outbox import Outbox
from kafkalite.coordinators.ports import Partition, Shard
from kafkalite.coordinators.uncommitted import Uncommitted, waiters_of
from kafkalite.coordinators.underway import Underway
from kafkalite.env import Env
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, finish
from kafkalite.log.failures import Kind, kind_of
from kafkalite.protocol.errors import Error, KafkaError

log = logging.getLogger(__name__)

APPEND_RETRY_MS = 500
APPEND_TIMEOUT_MS = 5_000
RELOAD_PAUSE_MS = 1_000
FAILED_TIMER_MS = 5_000
BUSY_TIMER_MS = 10
# More records than that are encoded and replayed a slice per turn.
RECORDS_AT_ONCE = 256
_WRITE_TIMEOUT = ("runtime", "write-timeout")
_RELOAD = ("runtime", "reload")

R = TypeVar("R")
T = TypeVar("T")

# What an event needs, and the event: answered by the event that has it.
Supply = Callable[[object, Event[object]], Later[Event[object] | KafkaError]]


@dataclass(slots=True)
class Runtime:
    """Runs the shard that `make_shard` builds on the log of `partition`."""

    env: Env
    partition: Partition
    make_shard: Callable[[], Shard]
    name: str = "coordinator"
    append_timeout_ms: int = APPEND_TIMEOUT_MS
    on_loaded: Callable[[], None] | None = None
    deliver: Callable[[object], None] | None = None
    supply: Supply | None = None
    state: State = State.UNLOADED
    shard: Shard | None = None
    _loading: Loading | None = None
    _loaded_at_ms: int = 0
    deadlines: Deadlines[Event[object] | None] = field(init=False)
    _inbox: deque[Asked] = field(default_factory=deque)
    _outbox: Outbox = field(default_factory=Outbox)
    _busy: bool = False
    # An event's work that takes several turns: the others wait in the inbox.
    _underway: Underway = field(init=False)
    _turns: ByTurns = field(init=False)
    _tickets: dict[int, Waiter] = field(default_factory=dict)
    _incomplete: dict[Waiter, None] = field(default_factory=dict)  # their events need something
    _parked: Uncommitted = field(default_factory=Uncommitted)
    _written_end: int = 0

    def __post_init__(self) -> None:
        self.deadlines = Deadlines(self.env.clock, self._on_deadline)
        self._underway = Underway(self.env.clock, self.env.slices)
        self._turns = ByTurns(self.env.slices, self._do_some)

    def load(self) -> None:
        """Starts (again) from the log; requests get COORDINATOR_LOAD_IN_PROGRESS meanwhile."""
        self.state = State.LOADING
        self._drop(Error.NOT_COORDINATOR)
        self._loaded_at_ms = self.env.clock.monotonic_ms()
        shard = self.shard = self.make_shard()
        self._loading = Loading(self.env.slices, self.partition, shard, self._on_load)
        self._loading.start()

    def unload(self) -> None:
        """Gives the partition up: whatever waits is answered NOT_COORDINATOR."""
        self.state = State.UNLOADED
        self._drop(Error.NOT_COORDINATOR)

    def submit(self, event: Event[R]) -> Later[R | KafkaError]:
        """Hands an event to the shard; the reply is the shard's own or a KafkaError. It never
        raises: what others do wrong with their answers is theirs."""
        if self.state is not State.ACTIVE:
            return Later.of(KafkaError(REFUSALS[self.state]))
        later: Later[R | KafkaError] = Later()
        self._inbox.append(Asked(event, later))
        self._drain()
        return later

    def end_transaction(
        self,
        producer: Producer,
        coordinator_epoch: int,
        committed: bool,
        transaction_version: int = 0,
    ) -> Later[KafkaError | None]:
        """Writes the marker that ends a transaction here."""
        return self.submit(Marker(producer, coordinator_epoch, committed, transaction_version))

    @property
    def waiting_errands(self) -> list[object]:
        """Those that go out when what they follow is committed."""
        return self._parked.errands

    # -- one event at a time ---------------------------------------------------------------

    def _drain(self) -> None:
        """Works the inbox off; what replies submit in turn waits for its place in the line."""
        if not self._busy:
            self._turns.go_on()

    def _do_some(self, most: int) -> bool:
        self._busy = True
        try:
            most = self._outbox.hand_over(most) if self._outbox else most
            while most > 0 and self._inbox and not self._underway.is_busy:
                self._guarded(self._inbox.popleft())
                most = self._outbox.hand_over(most - 1)
            return not self._outbox and (not self._inbox or self._underway.is_busy)
        finally:
            self._busy = False

    def _work_off(
        self, steps: Steps[T], asked: Asked, go_on: Callable[[T | Exception], None]
    ) -> None:
        """Has it done a slice per turn, before all else here, and goes on with what came of it."""

        def done(outcome: T | Exception) -> None:
            self._busy = True
            try:
                go_on(outcome)
            except Exception as error:  # noqa: BLE001 - what it means is decided there
                self._fail_on(asked, error)
            finally:
                self._busy = False
            self._drain()

        self._underway.work_off(steps, asked.later, done)

    def _now_ms(self) -> int:
        return self.env.clock.now_ms()

    def _answer(self, later: Waiter | None, value: object) -> None:
        if later is not None:
            self._outbox.replies.append((later, value))

    def _guarded(self, asked: Asked) -> None:
        if self.state is not State.ACTIVE:
            self._answer(asked.later, KafkaError(REFUSALS[self.state]))
            return
        try:
            self._process(asked)
        except Exception as error:  # noqa: BLE001 - what it means is decided there
            self._fail_on(asked, error)

    def _fail_on(self, asked: Asked, error: Exception) -> None:
        """A bug of ours: the shard starts again from its log, unless it is as it was before."""
        name = name_of(asked.event)
        log.error("%s failed on %s; loading it again", self.name, name, exc_info=error)
        self._answer(asked.later, KafkaError(Error.NOT_COORDINATOR))
        self._load_again()

    def _process(self, asked: Asked) -> None:
        event = asked.event
        assert self.shard is not None
        if isinstance(event, Marker):
            self._process_marker(event, asked)
            return
        before = self.shard.mark(event)
        try:
            decision: Effects | InSteps | Exception = self.shard.decide(event, self._now_ms())
        except Exception as error:  # noqa: BLE001 - what it means is decided there
            decision = error
        if isinstance(decision, InSteps):
            self._work_off(
                decision.steps, asked, lambda made: self._decided(made, before, asked, is_long=True)
            )
        else:
            self._decided(decision, before, asked)

    def _decided(
        self, decision: Effects | Exception, before: object, asked: Asked, *, is_long: bool = False
    ) -> None:
        event, later, timer = asked
        assert self.shard is not None
        if isinstance(decision, KafkaError):
            # Not with its stack, which has the answer and would be had by it: a circle.
            self._answer(later, decision.with_traceback(None))
        elif isinstance(decision, Exception):
            if self.shard.mark(event) != before:
                raise decision
            # Whatever is wrong with this event, nobody else's should suffer.
            log.error(
                "%s failed on %s; nothing has changed", self.name, name_of(event),
                exc_info=decision,
            )  # fmt: skip
            self._answer(later, KafkaError(Error.UNKNOWN_SERVER_ERROR))
            if timer is not None:
                self.deadlines.arm(timer, FAILED_TIMER_MS, event)
        elif decision.needs is not None:
            self._complete_event(decision.needs, asked)
        else:
            self._enact(decision, asked, is_long)

    def _complete_event(self, needs: object, asked: Asked) -> None:
        """Has others give what the event lacks, and decides it then: others may come before it."""
        event, later, timer = asked
        shard, supply = self.shard, self.supply
        assert supply is not None, f"nobody supplies {needs}"
        if later is not None:
            self._incomplete[later] = None

        def supplied(complete: Event[object] | KafkaError) -> None:
            if self.shard is not shard:
                return  # answered when that was dropped
            if later is not None:
                del self._incomplete[later]
            if not isinstance(complete, KafkaError):
                self._inbox.append(Asked(complete, later, timer))
            elif timer is not None:
                self.deadlines.arm(timer, APPEND_RETRY_MS, event)
            else:
                self._answer(later, coordinator_error(complete))
            self._drain()

        def mistaken(error: Exception) -> None:
            log.error("%s did not have %s given", self.name, name_of(event), exc_info=error)
            supplied(KafkaError(Error.UNKNOWN_SERVER_ERROR))

        ask = partial(supply, needs)
        self._outbox.errands.append(lambda: Later.of(event).then_ask(ask).then(supplied, mistaken))

    def _enact(self, effects: Effects, asked: Asked, is_long: bool = False) -> None:
        if not effects.records:
            self._written(None, effects, asked)
            return
        assert self.shard is not None
        replay = self.shard.replay

        def written(end_offset: int, record: Record) -> None:
            if end_offset != self._written_end:  # the first of its batch
                assert record.offset >= self._written_end, "offsets of a coordinator's log fell"
                self._written_end = end_offset
            replay(record)

        steps = write(self.partition, effects, self._now_ms(), written)
        if len(effects.records) <= RECORDS_AT_ONCE and not is_long:
            self._written(finish(steps), effects, asked)
        else:
            self._work_off(steps, asked, lambda failure: self._written(failure, effects, asked))

    def _written(self, failure: Exception | None, effects: Effects, asked: Asked) -> None:
        """All is in the log and replayed, or it could not be written."""
        if failure is not None:
            self._on_append_failed(effects, asked, failure)
            return
        self._arm(effects)
        if effects.then_decide is None:
            self._park(self._collect_replies(effects, asked.later), effects)
            return
        # Whoever this step answers does not wait for the next one, which has answers of its own.
        self._park(self._collect_answers(effects), effects)
        rest = Asked(effects.then_decide, asked.later)
        if effects.pause_ms is None:
            self._process(rest)
        else:  # decided before all else here
            self._inbox.appendleft(rest)
            self._underway.pause(effects.pause_ms, self._drain)

    def _process_marker(self, marker: Marker, asked: Asked) -> None:
        assert self.shard is not None
        try:
            self._written_end = append_marker(
                self.partition, marker.producer, marker.coordinator_epoch, marker.committed,
                self._now_ms(), marker.transaction_version,
            )  # fmt: skip
        except KafkaError as error:
            self._answer(asked.later, coordinator_error(error))
            return

        def replayed(failure: Exception | None) -> None:
            if failure is not None:
                raise failure
            self._park([] if asked.later is None else [(asked.later, None)], Effects())

        steps = self.shard.replay_end_transaction(marker.producer, marker.committed)
        if steps is None:
            replayed(None)
        else:
            self._work_off(steps, asked, replayed)

    def _on_append_failed(self, effects: Effects, asked: Asked, failure: Exception) -> None:
        event, later, timer = asked
        if not isinstance(failure, KafkaError):
            raise failure
        if failure.code == Error.MESSAGE_TOO_LARGE:
            log.warning("%s cannot write %s: %s", self.name, name_of(event), failure.message)
        error = coordinator_error(failure)
        if timer is not None:
            self.deadlines.arm(timer, APPEND_RETRY_MS, event)
        if effects.on_failed is None:
            for waiting, _ in self._collect_answers(effects):
                self._answer(waiting, error)
            self._answer(later, error)
            return
        if effects.ticket is not None and later is not None:
            self._tickets[effects.ticket] = later
        else:
            self._answer(later, error)
        self._inbox.append(Asked(Failed(effects.on_failed, error)))
        self._drain()

    # -- replies ---------------------------------------------------------------------------

    def _collect_replies(self, effects: Effects, later: Waiter | None) -> list[Reply]:
        replies: list[Reply] = []
        if effects.ticket is not None and later is not None:
            self._tickets[effects.ticket] = later
        elif later is not None:
            assert effects.reply is not NO_REPLY, "a request got neither reply nor ticket"
            replies.append((later, effects.reply))
        return replies + self._collect_answers(effects)

    def _collect_answers(self, effects: Effects) -> list[Reply]:
        answers: list[Reply] = []
        for ticket, answer in effects.answers:
            waiting = self._tickets.pop(ticket, None)
            if waiting is not None:
                answers.append((waiting, answer))
        return answers

    def _park(self, replies: list[Reply], effects: Effects) -> None:
        if not replies and effects.on_committed is None and not effects.sends:
            return
        if not self._parked and self._written_end <= self.partition.high_watermark:
            self._complete(effects.on_committed, effects.sends, replies)
            return
        deadline_ms = self.env.clock.monotonic_ms() + self.append_timeout_ms
        self._parked.add(Parked(
            self._written_end, deadline_ms, replies, effects.on_committed, effects.on_failed,
            effects.sends,
        ))  # fmt: skip
        if _WRITE_TIMEOUT not in self.deadlines:
            self.deadlines.arm(_WRITE_TIMEOUT, self.append_timeout_ms, None)
        self.partition.when_committed(self._written_end).then(self._on_committed)

    def _on_committed(self, error: KafkaError | None) -> None:
        for entry in self._parked.covered(self.partition.high_watermark):
            self._complete(entry.on_committed, entry.sends, entry.replies)
        if error is not None and self._parked:
            # Neither role nor disk: what becomes of the records, and what follows their commit, is
            # decided by who has them next. That is this shard again if nobody drops it.
            for entry in self._parked.give_up():
                self._fail(entry, coordinator_error(error))
            self.deadlines.arm(_RELOAD, RELOAD_PAUSE_MS, None)
        if not self._parked:
            self.deadlines.cancel(_WRITE_TIMEOUT)
        self._drain()

    def _complete(
        self, event: Event[object] | None, sends: list[object], replies: list[Reply]) -> None:
        if event is not None:
            self._inbox.append(Asked(event))
        if sends and self.deliver is not None:
            self._outbox.errands.extend(partial(self.deliver, errand) for errand in sends)
        self._outbox.replies.extend(replies)

    def _fail(self, entry: Parked, error: KafkaError) -> None:
        """Tells whoever waits for the write; what was to follow its commit is left in place."""
        if entry.on_failed is not None:
            self._inbox.append(Asked(Failed(entry.on_failed, error)))
            entry.on_failed = entry.on_committed = None  # of the two the shard hears one
        for later, _ in entry.replies:
            self._answer(later, error)
        entry.replies = []

    def _expire_parked(self) -> None:
        """Clients wait so long and no longer; the records stay, and what follows their commit."""
        now = self.env.clock.monotonic_ms()
        error = KafkaError(Error.COORDINATOR_NOT_AVAILABLE)
        for entry in self._parked.late(now):
            self._fail(entry, error)
        next_ms = self._parked.next_deadline_ms(now)
        if next_ms is not None:
            self.deadlines.arm(_WRITE_TIMEOUT, next_ms - now, None)

    # -- timers ----------------------------------------------------------------------------

    def _arm(self, effects: Effects) -> None:
        for timer in effects.timers:
            if timer.delay_ms is None:
                self.deadlines.cancel(timer.key)
            elif not timer.only_if_absent or timer.key not in self.deadlines:
                self.deadlines.arm(timer.key, timer.delay_ms, timer.event)

    def _on_deadline(self) -> None:
        self.env.slices.run(self.deadlines.meet(self._meet), lambda _: None)

    def _meet(self, key: Hashable, event: Event[object] | None) -> None:
        assert not self._busy, "the clock fired inside an event"
        self._busy = True
        try:
            self._on_due(key, event)
        finally:
            self._busy = False
        self._drain()

    def _on_due(self, key: Hashable, event: Event[object] | None) -> None:
        if key is _WRITE_TIMEOUT:
            self._expire_parked()
        elif key is _RELOAD:
            self.load()
        elif self._underway.is_busy or self._turns.is_behind:  # what waits may arm it anew
            self.deadlines.arm(key, BUSY_TIMER_MS, event)
        else:
            assert event is not None, f"the timer {key} brings nothing"
            self._guarded(Asked(event, timer=key))

    # -- loading and unloading -------------------------------------------------------------

    def _on_load(self, loading: Loading, failure: BaseException | None) -> None:
        if loading is not self._loading:
            return  # unloaded or loaded anew meanwhile
        self._loading = None
        assert self.shard is not None
        if failure is not None:
            log.error("%s could not load its log", self.name, exc_info=failure)
            self.state = State.FAILED
            if kind_of(failure) is Kind.REQUEST:  # no descriptor was left: it passes
                self.deadlines.arm(_RELOAD, FAILED_TIMER_MS, None)
            return
        self.state = State.ACTIVE
        self._written_end = self.partition.log.log_end_offset
        try:
            self._enact(self.shard.loaded(self._now_ms()), Asked(Loaded()))
        except Exception:
            log.exception("%s failed after it was loaded", self.name)
            self.state = State.FAILED
            return
        if self.on_loaded is not None:
            self.on_loaded()
        self._drain()

    def _load_again(self) -> None:
        """After a bug: at once, but not more often than every RELOAD_PAUSE_MS."""
        age_ms = self.env.clock.monotonic_ms() - self._loaded_at_ms
        if age_ms >= RELOAD_PAUSE_MS:
            self.load()
            return
        self.state = State.LOADING
        self._drop(Error.NOT_COORDINATOR)
        self.deadlines.arm(_RELOAD, RELOAD_PAUSE_MS - age_ms, None)

    def _drop(self, code: Error) -> None:
        """Forgets the shard and answers everyone who waits."""
        if self._loading is not None:
            self._loading.abandon()
            self._loading = None
        self.shard = None
        self.deadlines.clear()
        at_work = self._underway.give_up()
        waiting = [] if at_work is None else [at_work]
        waiting += [*waiters_of(self._parked.give_up()), *self._tickets.values(), *self._incomplete]
        waiting += [one.later for one in self._inbox if one.later is not None]
        self._outbox.errands.clear()
        self._tickets.clear()
        self._incomplete.clear()
        self._inbox.clear()
        self._written_end = 0
        self._outbox.replies.extend((later, KafkaError(code)) for later in waiting)
        self._drain()
