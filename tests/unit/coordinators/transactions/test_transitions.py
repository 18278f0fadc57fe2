"""Every row of the table of states: a way to take it, and what the log then holds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkalite.coordinators.transactions.records import read_value
from kafkalite.coordinators.transactions.transaction import PREVIOUS, State
from kafkalite.protocol.errors import Error
from tests.unit.coordinators.transactions.world import World

A, B = ("a", 0), ("b", 3)
WEEK_MS = 7 * 86_400_000
HOUR_MS = 3_600_000


def ended(world: World, *, commit: bool) -> None:
    world.add(world.who, A)
    world.who = world.end(world.who, commit=commit)


def empty(world: World) -> None:
    """Nothing but the producer that the world begins with."""


def ongoing(world: World) -> None:
    world.add(world.who, A)


def committed(world: World) -> None:
    ended(world, commit=True)


def aborted(world: World) -> None:
    ended(world, commit=False)


def again(world: World) -> None:
    world.init()


def add(world: World) -> None:
    assert world.add(world.who, B) is None


def commit(world: World) -> None:
    world.end(world.who, commit=True)


def abort(world: World) -> None:
    world.end(world.who, commit=False)


def expire(world: World) -> None:
    world.clock.advance(WEEK_MS + HOUR_MS)
    assert world.describe() is Error.TRANSACTIONAL_ID_NOT_FOUND


Act = Callable[[World], None]
S = State
# (before, after) -> how to come to the state before, and what makes it the state after
WAYS: dict[tuple[State, State], tuple[Act, Act]] = {
    (S.EMPTY, S.EMPTY): (empty, again),
    (S.COMPLETE_COMMIT, S.EMPTY): (committed, again),
    (S.COMPLETE_ABORT, S.EMPTY): (aborted, again),
    (S.EMPTY, S.ONGOING): (empty, add),
    (S.ONGOING, S.ONGOING): (ongoing, add),
    (S.COMPLETE_COMMIT, S.ONGOING): (committed, add),
    (S.COMPLETE_ABORT, S.ONGOING): (aborted, add),
    (S.ONGOING, S.PREPARE_COMMIT): (ongoing, commit),
    (S.ONGOING, S.PREPARE_ABORT): (ongoing, abort),
    (S.EMPTY, S.PREPARE_ABORT): (empty, abort),
    (S.COMPLETE_COMMIT, S.PREPARE_ABORT): (committed, abort),
    (S.COMPLETE_ABORT, S.PREPARE_ABORT): (aborted, abort),
    (S.PREPARE_COMMIT, S.COMPLETE_COMMIT): (ongoing, commit),
    (S.PREPARE_ABORT, S.COMPLETE_ABORT): (ongoing, abort),
    # An id that is dead leaves no value behind.
    (S.EMPTY, S.DEAD): (empty, expire),
    (S.COMPLETE_COMMIT, S.DEAD): (committed, expire),
    (S.COMPLETE_ABORT, S.DEAD): (aborted, expire),
}


def states_in_log(world: World) -> list[State]:
    return [
        State.DEAD if record.value is None else read_value("t", record.value).state
        for record in world.partition.log.records()
    ]


@pytest.mark.parametrize(
    ("before", "after"), WAYS, ids=[f"{one.title}-{other.title}" for one, other in WAYS]
)
def test_transition_is_taken_and_survives_a_restart(before: State, after: State) -> None:
    world = World()
    world.who = world.init()
    prepare, act = WAYS[before, after]
    prepare(world)
    seen = len(states_in_log(world))
    act(world)
    states = states_in_log(world)
    assert (before, after) in zip(states[seen - 1 :], states[seen:], strict=False)
    found = world.describe()
    world.stop()
    world.start()
    if found is Error.TRANSACTIONAL_ID_NOT_FOUND:
        assert world.describe() is found
    else:
        assert world.describe().state is found.state


def test_every_row_has_its_way() -> None:
    assert set(WAYS) == {(before, after) for after, rows in PREVIOUS.items() for before in rows}
