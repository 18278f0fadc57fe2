"""Who waits for an offset is told once, in the loop's next turn, whatever the others do."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.log.watermark import Outcome, Watermark
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.waiting import Parked, Waiting, Watched

Moved = Collection[Watched] | None
GONE = KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION)


class Told:
    """Waiters for the offsets 1, 2, 3 …, and what each was told."""

    def __init__(self, count: int = 3) -> None:
        self.clock = ManualClock()
        self.watermark = Watermark(self.clock, 0)
        self.outcomes: dict[int, Outcome] = {}
        for offset in range(1, count + 1):
            self.watermark.wait_for(offset).then(self._note(offset))

    def _note(self, offset: int) -> Callable[[Outcome], None]:
        def note(outcome: Outcome) -> None:
            assert offset not in self.outcomes
            self.outcomes[offset] = outcome

        return note


def test_those_whose_offset_is_covered_are_told_in_the_next_turn() -> None:
    told = Told()
    told.watermark.raise_to(2)
    assert told.outcomes == {}
    told.clock.advance(0)
    assert told.outcomes == {1: None, 2: None}
    told.watermark.raise_to(3)
    told.clock.advance(0)
    assert told.outcomes == {1: None, 2: None, 3: None}


def test_what_was_covered_before_the_end_came_is_no_failure() -> None:
    told = Told()
    told.watermark.raise_to(1)
    told.watermark.fail(GONE)
    told.watermark.fail(KafkaError(Error.KAFKA_STORAGE_ERROR))
    told.watermark.raise_to(3)
    told.clock.advance(0)
    assert told.outcomes == {1: None, 2: GONE, 3: GONE}


def test_only_what_lies_above_a_cut_fails() -> None:
    told = Told()
    told.watermark.fail(GONE, above=2)
    told.clock.advance(0)
    assert told.outcomes == {3: GONE}


def test_it_rises_falls_with_a_cut_and_tells_who_waited_above() -> None:
    told = Told()
    assert told.watermark.raise_to(2)
    assert not told.watermark.raise_to(1)
    assert told.watermark.offset == 2
    told.watermark.cut_to(1)
    assert told.watermark.offset == 1
    told.clock.advance(0)
    assert told.outcomes[1] is told.outcomes[2] is None
    cut = told.outcomes[3]
    assert cut is not None
    assert cut.code == Error.NOT_LEADER_OR_FOLLOWER
    assert told.watermark.wait_for(1).value is None
    assert not told.watermark.wait_for(2).is_resolved


def test_what_has_to_be_covered_again_is_waited_for() -> None:
    told = Told()
    told.watermark.lower_to(0)
    told.clock.advance(0)
    assert told.outcomes == {}
    told.watermark.raise_to(3)
    told.clock.advance(0)
    assert told.outcomes == {1: None, 2: None, 3: None}


def test_nobody_is_forgotten_when_one_of_them_fails() -> None:
    told = Told(0)

    def fail(_: Outcome) -> None:
        raise ValueError("a planted bug")

    told.watermark.wait_for(1).then(fail)
    told.watermark.wait_for(2).then(told._note(2))
    told.watermark.raise_to(2)
    with pytest.raises(ValueError, match="planted"):
        told.clock.advance(0)
    told.clock.advance(0)
    assert told.outcomes == {2: None}


def test_no_parked_attempt_is_forgotten_when_another_fails() -> None:
    clock = ManualClock()
    waiting = Waiting(clock)
    tried: list[str] = []

    class Here:
        """Something that is watched."""

        def watch(self, parked: Parked) -> None: ...

        def unwatch(self, parked: Parked) -> None: ...

    def fail(moved: Moved) -> bool:
        raise ValueError("a planted bug")

    def attempt(moved: Moved) -> bool:
        tried.append("last" if moved is None else "tried")
        return True

    here = Here()
    answer: Later[object] = Later()
    for each in (fail, attempt):
        waiting.park([here], 1_000, each, answer).moved(here)
    clock.advance(0)
    assert tried == ["tried"]
    assert isinstance(answer.value, ValueError)  # whoever waits for it is answered with that
