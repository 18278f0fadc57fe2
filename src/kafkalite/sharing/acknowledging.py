"""What a member says of records that it was handed: accepted, released, rejected, or still at work.

Owns the checks, in Apache Kafka's words, and the step from what is said to what is to be written. A
request that is refused somewhere has changed nothing, but for locks that were renewed. However much
is said, it is taken in steps, between which others may have their say. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafkalite.env.dataclasses import dataclass
from kafkalite.env.slicing import ELEMENTS_PER_STEP, Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.sharing.in_flight import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    NOBODY,
    Batch,
    RecordState,
    Run,
    Transition,
)
from kafkalite.sharing.window import Window

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
# Of a gap there is no record, and nobody will ask for it again.
_STATES = {GAP: ARCHIVED, ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE, REJECT: ARCHIVED}


class Said(NamedTuple):
    """Of the records from `first` to `last`: one kind for all, or one for each."""

    first: int
    last: int
    kinds: tuple[int, ...]

    def within(self, first: int, last: int) -> Said:
        """What of it concerns these records."""
        begin, end = max(first, self.first), min(last, self.last)
        if len(self.kinds) == 1:
            return Said(begin, end, self.kinds)
        return Said(begin, end, self.kinds[begin - self.first : end - self.first + 1])

    def pieces(self) -> Iterator[tuple[int, int, int]]:
        """Stretches of which the same is said."""
        if len(self.kinds) == 1:
            yield self.first, self.last, self.kinds[0]
            return
        begin = 0
        for place in range(1, len(self.kinds) + 1):
            if place == len(self.kinds) or self.kinds[place] != self.kinds[begin]:
                yield self.first + begin, self.first + place - 1, self.kinds[begin]
                begin = place


@dataclass(slots=True, frozen=True)
class Speaker:
    """Who says it, and what its group allows."""

    member: str
    until_ms: int  # when locks that are renewed expire
    most_deliveries: int
    may_renew: bool


def acknowledge(
    window: Window, speaker: Speaker, said: Iterable[Said]
) -> Steps[Transition]:
    """What is to be written; raises KafkaError when something was said that cannot be."""
    transition = Transition()
    try:
        count = 0
        for one in said:
            for batch in _batches(window, one) if one.last >= window.start_offset else ():
                if batch.last >= window.start_offset:
                    yield from _of_batch(window, speaker, transition, batch, one)
                count += 1
                if count % ELEMENTS_PER_STEP == 0:
                    yield
            count += 1
            if count % ELEMENTS_PER_STEP == 0:
                yield
    except KafkaError:
        take_back(window, transition)
        raise
    return transition


def release(window: Window, member: str, most_deliveries: int) -> Steps[Transition]:
    """All that a member has, when it has gone."""
    transition = Transition()
    count = 0
    for batch in window.batches.copy():
        for run in batch.runs.copy():
            if run.state is ACQUIRED and run.member == member and run.pending is None:
                for part in window.parts(batch, run):
                    is_over = part.last < window.start_offset
                    part.begin(transition, ARCHIVED if is_over else AVAILABLE, most_deliveries)
                    if part.state.is_terminal:
                        window.complete_count += window.count_from_start(part)
            count += 1
            if count % ELEMENTS_PER_STEP == 0:
                yield
    return transition


def take_back(window: Window, transition: Transition) -> None:
    """Nothing of it was written, and no time has passed."""
    end(window, transition, is_written=False, now_ms=-1)


def end(window: Window, transition: Transition, *, is_written: bool, now_ms: int) -> None:
    """What it changed holds from now on, or is taken back."""
    for run in transition.runs:
        was_done = run.state.is_terminal
        run.end(is_written=is_written, now_ms=now_ms)
        if run.state is AVAILABLE:
            window.must_look = True
        if was_done and not run.state.is_terminal:
            window.complete_count -= window.count_from_start(run)
    transition.runs.clear()
    if is_written:
        window.move_start()


def _batches(window: Window, said: Said) -> list[Batch]:
    floor = window.floor(said.first)
    if floor is None and said.first < window.start_offset <= said.last:
        floor = window.floor(window.start_offset)
    if floor is None:
        raise KafkaError(
            Error.INVALID_RECORD_STATE,
            "Batch record not found. The request batch offsets are not found in the cache.",
        )
    found = window.beginning_in(floor.first, said.last)
    for offset, what in ((said.first, "first"), (said.last, "last")):
        if offset > found[-1].last:
            raise KafkaError(
                Error.INVALID_REQUEST,
                f"Batch record not found. The {what} offset in request is past acquired records.",
            )
    return found


def _of_batch(
    window: Window, speaker: Speaker, transition: Transition, batch: Batch, said: Said
) -> Steps[None]:
    if not batch.is_split:
        _check_owner(batch.whole, speaker.member)
    is_part = not batch.is_within(said.first, said.last)
    if is_part or len(said.kinds) > 1 or window.reaches_over_start(batch):
        if not batch.is_split and batch.whole.state is not ACQUIRED:
            raise _refused(
                "The batch cannot be acknowledged. The subset batch is not in the acquired state."
            )
        batch.is_split = True
    is_whole = not batch.is_split
    for number, part in enumerate(_parts(batch, said)):
        if number:
            yield
        for run, kind in _runs(window, batch, part):
            if is_whole and run.state is not ACQUIRED:
                raise _refused(
                    "The batch cannot be acknowledged. The batch is not in the acquired state."
                )
            if not is_whole:
                _check(run, speaker.member)
            _say(window, speaker, transition, run, kind)


def _parts(batch: Batch, said: Said) -> list[Said]:
    """What is said of a batch, no more at a time than a step can take."""
    said = said.within(batch.first, batch.last)
    if max(len(said.kinds), len(batch.runs)) <= ELEMENTS_PER_STEP:
        return [said]
    if len(said.kinds) > 1:
        begins = list(range(said.first, said.last + 1, ELEMENTS_PER_STEP))
    else:
        firsts = (run.first for run in batch.runs[::ELEMENTS_PER_STEP])
        begins = [said.first, *(each for each in firsts if said.first < each <= said.last)]
    ends = [*(each - 1 for each in begins[1:]), said.last]
    return [said.within(begin, end) for begin, end in zip(begins, ends, strict=True)]


def _runs(window: Window, batch: Batch, said: Said) -> Iterator[tuple[Run, int]]:
    """The runs that something is said of, each with that."""
    pieces = list(said.pieces())
    if len(pieces) > 1:
        batch.cut([first for first, _, _ in pieces])
    place = 0
    for run in batch.between(max(said.first, window.start_offset), said.last):
        while pieces[place][1] < run.first:
            place += 1
        yield run, pieces[place][2]


def _check_owner(run: Run, member: str) -> None:
    if run.member == NOBODY:
        raise _refused("The batch cannot be acknowledged. The batch is not in the acquired state.")
    if run.member != member:
        raise _refused("Member is not the owner of batch record")


def _check(run: Run, member: str) -> None:
    if run.state is not ACQUIRED:
        raise _refused("The offset cannot be acknowledged. The offset is not acquired.")
    if run.member != member:
        raise _refused("Member is not the owner of offset")


def _say(
    window: Window, speaker: Speaker, transition: Transition, run: Run, kind: int
) -> None:
    if kind == RENEW:
        if not speaker.may_renew:
            raise _refused("Renewing acquisition locks is not enabled for the group.")
        run.locked_until_ms = speaker.until_ms
        return
    state: RecordState = _STATES[kind]
    run.begin(transition, state, speaker.most_deliveries)
    if run.state.is_terminal:
        window.complete_count += run.size


def _refused(why: str) -> KafkaError:
    return KafkaError(Error.INVALID_RECORD_STATE, why)
