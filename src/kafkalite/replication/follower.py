"""A partition's follower: what it asks its leader next, and what it does with the answer.

Owns the fetch state. It has no clock, no log and nobody to call: it is told what came and how its
own log is, and answers with effects, of which the log's are reported back when they are done.
Invariant: it asks only from the end of its log, and for records of the leader and the epoch that
the metadata named; the answer to anything else is dropped.

The rules are those of Apache Kafka's `AbstractFetcherThread`, with logs that part found out by the
fetch itself (KIP-595).
"""

from __future__ import annotations

from enum import Enum

from kafkalite.env.dataclasses import dataclass
from kafkalite.log.append import Writable
from kafkalite.log.epochs import LeaderEpochs
from kafkalite.protocol.errors import Error
from kafkalite.replication.leader import NO_EPOCH, Committed, Leadership

_BASE_OFFSET_BYTES = 8


class State(Enum):
    """What comes next."""

    STARTING = "starting"  # nothing was asked yet
    FETCHING = "fetching"
    LOST = "lost"  # out of the leader's range: it is asked where its log begins and ends
    CHANGING = "changing"  # the log is being appended to or cut
    FENCED = "fenced"  # newer metadata has to come first
    FAILED = "failed"  # nothing helps but a new epoch


@dataclass(slots=True, frozen=True)
class Copy:
    """The follower's own log at the moment."""

    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    epochs: LeaderEpochs


# --- what is asked, and answered ------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class FetchFrom:
    """Asks the leader for records, and says where the log ends."""

    leader_id: int
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    log_start_offset: int


@dataclass(slots=True, frozen=True)
class AskRange:
    """Asks the leader where its log begins and ends."""

    leader_id: int
    leader_epoch: int


@dataclass(slots=True, frozen=True)
class Fetched:
    """A leader's answer for the partition. `current_leader` is who leads instead (KIP-951)."""

    error: Error = Error.NONE
    records: Writable | None = None
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging: tuple[int, int] | None = None  # an epoch, and where it ends
    current_leader: tuple[int, int] | None = None  # and its epoch


@dataclass(slots=True, frozen=True)
class Range:
    """Where the leader's log begins and ends."""

    start_offset: int
    end_offset: int


# --- effects --------------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class Append:
    """Append records as they are, but none of an epoch that was not asked for; what the leader said
    of its log is for `appended`."""

    records: Writable
    leader_epoch: int
    high_watermark: int
    log_start_offset: int


@dataclass(slots=True, frozen=True)
class TruncateTo:
    """Cut what lies at an offset and above."""

    offset: int


@dataclass(slots=True, frozen=True)
class TruncateFullyAndStartAt:
    """Nothing here is of use: begin anew at an offset."""

    offset: int


@dataclass(slots=True, frozen=True)
class RaiseStart:
    """The leader has nothing below an offset any more."""

    offset: int


@dataclass(slots=True, frozen=True)
class Backoff:
    """Ask nothing before a time."""

    until_ms: int


Effect = Append | TruncateTo | TruncateFullyAndStartAt | RaiseStart | Committed | Backoff


@dataclass(slots=True)
class Follower:
    """This broker's role for a partition that another one leads."""

    leader_id: int
    leader_epoch: int
    partition_epoch: int
    state: State = State.STARTING
    backoff_ms: int = 1_000  # replica.fetch.backoff.ms
    delayed_until_ms: int = 0
    lag: int | None = None  # behind what is committed, as of the last answer

    def take(self, said: Leadership) -> bool:
        """Takes over what the metadata says; True when that begins a new epoch."""
        if said.partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = said.leader_epoch > self.leader_epoch
        self.partition_epoch = said.partition_epoch
        if is_new_epoch:
            self.leader_id, self.leader_epoch = said.leader_id, said.leader_epoch
            self.state, self.delayed_until_ms, self.lag = State.STARTING, 0, None
        return is_new_epoch

    def start(self, copy: Copy) -> list[Effect]:
        """Goes to the log's end. A log that knows no epochs cannot tell its leader which of its
        records it shares with it: only what is committed is sure."""
        self.state = State.FETCHING
        if copy.epochs.latest != NO_EPOCH or copy.log_end_offset == copy.high_watermark:
            return []
        return self._change(TruncateTo(copy.high_watermark))

    @property
    def is_asking(self) -> bool:
        """Whether it has something to ask, now or when it has waited."""
        return self.state in (State.STARTING, State.FETCHING, State.LOST)

    def ask(self, copy: Copy, now_ms: int) -> FetchFrom | AskRange | None:
        """What to ask the leader now, if anything."""
        if now_ms < self.delayed_until_ms:
            return None
        if self.state is State.LOST:
            return AskRange(self.leader_id, self.leader_epoch)
        if self.state is not State.FETCHING:
            return None
        return FetchFrom(
            self.leader_id, self.leader_epoch, copy.log_end_offset, copy.epochs.latest,
            copy.log_start_offset,
        )  # fmt: skip

    # --- answers ----------------------------------------------------------------------------------

    def fetched(
        self, asked: FetchFrom, answer: Fetched, copy: Copy, now_ms: int
    ) -> list[Effect]:
        """The leader's answer. Its watermarks count only when the logs agree: not before a cut."""
        if not self._awaits(asked, copy):
            return []
        if answer.error is Error.OFFSET_OUT_OF_RANGE:
            self.state = State.LOST
            return []
        if answer.error is not Error.NONE:
            return self._refused(answer.error, answer.current_leader, now_ms)
        if answer.diverging is not None:
            return self._change(TruncateTo(_shared_end(copy, *answer.diverging)))
        if not answer.records:
            return self._agreed(answer.high_watermark, answer.log_start_offset, copy)
        return self._appends(
            Append(
                answer.records, self.leader_epoch, answer.high_watermark, answer.log_start_offset
            ),
            copy,
        )

    def takes_watermarks(self, asked: FetchFrom, answer: Fetched, copy: Copy) -> bool:
        """Whether those of an answer count: who says them may not say them again."""
        return answer.diverging is None and self._awaits(asked, copy)

    def told_range(
        self, asked: AskRange, answer: Range | Error, copy: Copy, now_ms: int
    ) -> list[Effect]:
        """Where the leader's log is. When it ends behind ours, what lies above its end was never
        committed, or lost by an unclean election."""
        if not self._is_awaited(asked, State.LOST):
            return []
        if isinstance(answer, Error):
            return self._refused(answer, None, now_ms)
        self.state = State.FETCHING
        if answer.end_offset < copy.log_end_offset:
            return self._change(TruncateTo(answer.end_offset))
        if answer.start_offset > copy.log_end_offset:
            return self._change(TruncateFullyAndStartAt(answer.start_offset))
        return []

    def unanswered(self, asked: FetchFrom | AskRange, now_ms: int) -> list[Effect]:
        """The leader was not reached, or did not answer."""
        is_ours = (asked.leader_id, asked.leader_epoch) == (self.leader_id, self.leader_epoch)
        return self._back_off(now_ms) if is_ours else []

    # --- what became of the effects ---------------------------------------------------------------

    def appended(self, done: Append, copy: Copy) -> list[Effect]:
        """The records are in the log, and what the leader said of its own counts as far as ours
        goes."""
        self.state = State.FETCHING
        return self._agreed(done.high_watermark, done.log_start_offset, copy)

    def begin_again(self) -> list[Effect]:
        """The log was cut, or is another now: from its end on it is asked again, where the leader
        may find that more has to go."""
        self.state = State.FETCHING
        return []

    def leader_is_back(self) -> None:
        """Whom it could not reach may be asked at once."""
        self.delayed_until_ms = 0

    def not_done(self, error: Error, now_ms: int) -> list[Effect]:
        """The log refused: what came damaged may come whole the next time, the rest stays."""
        if error in (Error.CORRUPT_MESSAGE, Error.INVALID_RECORD):
            self.state = State.FETCHING
            return self._back_off(now_ms)
        self.state = State.FAILED
        return []

    def hindered(self, now_ms: int) -> list[Effect]:
        """The log takes nothing now, and may take it later: its disk is full."""
        self.state = State.FETCHING
        return self._back_off(now_ms)

    # --- rules ------------------------------------------------------------------------------------

    def _agreed(self, high_watermark: int, log_start_offset: int, copy: Copy) -> list[Effect]:
        self.lag = max(0, high_watermark - copy.log_end_offset)
        effects: list[Effect] = []
        if min(high_watermark, copy.log_end_offset) > copy.high_watermark:
            effects.append(Committed(min(high_watermark, copy.log_end_offset)))
        if log_start_offset > copy.log_start_offset:
            effects.append(RaiseStart(log_start_offset))
        return effects

    def _awaits(self, asked: FetchFrom, copy: Copy) -> bool:
        return self._is_awaited(asked, State.FETCHING) and asked.offset == copy.log_end_offset

    def _is_awaited(self, asked: FetchFrom | AskRange, state: State) -> bool:
        is_ours = asked.leader_epoch == self.leader_epoch
        return is_ours and self.state is state

    def _refused(
        self, error: Error, current_leader: tuple[int, int] | None, now_ms: int
    ) -> list[Effect]:
        """A leader of a later epoch will not answer us in this one, however often it is asked; all
        else may be over soon."""
        is_behind = current_leader is not None and current_leader[1] > self.leader_epoch
        if error is Error.FENCED_LEADER_EPOCH or is_behind:
            self.state = State.FENCED
            return []
        return self._back_off(now_ms)

    def _appends(self, append: Append, copy: Copy) -> list[Effect]:
        """The first batch may begin below the end of an empty log, when the leader's log begins in
        the middle of it; anywhere else offsets would be given twice."""
        first = int.from_bytes(memoryview(append.records)[:_BASE_OFFSET_BYTES], "big")
        if first >= copy.log_end_offset:
            return self._change(append)
        if copy.log_start_offset != copy.log_end_offset:
            self.state = State.FAILED
            return []
        return self._change(TruncateFullyAndStartAt(first), append)

    def _change(self, *effects: Effect) -> list[Effect]:
        self.state = State.CHANGING
        return list(effects)

    def _back_off(self, now_ms: int) -> list[Effect]:
        self.delayed_until_ms = now_ms + self.backoff_ms
        return [Backoff(self.delayed_until_ms)]


def _shared_end(copy: Copy, epoch: int, end_offset: int) -> int:
    """Up to where our log can be the leader's, which has nothing of ours above the end of an epoch.
    If that epoch is not ours, ours of an earlier one end before it, and it is asked again there."""
    end = copy.log_end_offset
    own_epoch, own_end_offset = copy.epochs.end_offset_for(epoch, end)
    if own_epoch == NO_EPOCH:
        return min(end_offset, end)
    if own_epoch != epoch:
        return min(own_end_offset, end)
    return min(own_end_offset, end_offset, end)
