"""Nothing leaves a transaction behind: not the clock, a late report, a lost wait, or a mistake."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.coordinators.runtime import APPEND_TIMEOUT_MS, RELOAD_PAUSE_MS, Runtime
from kafkalite.coordinators.transactions import events
from kafkalite.coordinators.transactions.marker_delivery import (
    MISTAKE_PAUSE_MS,
    ROUND_PAUSE_MS,
    Errands,
)
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError
from tests.unit.coordinators.transactions.world import FakeMarkers, World

A, B = ("a", 0), ("b", 3)
TIMEOUT_MS = 60_000


# --- the clock ------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump_ms", [-3_600_000, -1, 1, 3_600_000])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_transaction_has_its_time_and_no_more_however_the_clock_is_set(
    jump_ms: int, is_restarted: bool
) -> None:
    world = World()
    world.add(world.init(), A)
    world.clock.jump(jump_ms)
    if is_restarted:
        world.stop()
        world.start()
    else:
        world.clock.advance(TIMEOUT_MS - 1)
        assert world.state == "Ongoing"
    world.clock.advance(TIMEOUT_MS)
    assert world.state == "CompleteAbort"
    assert world.markers.written[A] == [((1000, 1), False)]


def test_time_that_is_up_for_one_transaction_is_not_for_the_next() -> None:
    """No producer id was to be had when the time of the first was up."""
    world = World()
    who = world.init()
    world.add(who, A)
    first = world.describe().started_ms
    world.clock.advance(1)
    world.add(world.end(who, commit=True), B)
    world.ask(events.TimedOut("t", first))
    assert world.state == "Ongoing"
    world.clock.advance(TIMEOUT_MS)
    assert world.state == "CompleteAbort"


# --- reports --------------------------------------------------------------------------------------


def test_a_late_report_ends_its_own_transaction_only() -> None:
    """A producer by the old flow has one epoch for all of its transactions."""
    world = World()
    who = world.init()
    world.add(who, A, version=0)
    world.partition.is_lagging = True
    first = world.transactions.submit(
        "t", events.EndTransaction("t", who.producer_id, who.producer_epoch, True, 0)
    )
    world.partition.commit()  # its markers are written and reported, and that is not committed
    assert first.is_resolved
    world.clock.advance(APPEND_TIMEOUT_MS)
    world.partition.is_lagging = False
    world.partition.commit()
    world.clock.advance(1)
    world.markers.failures[B] = [Error.NOT_LEADER_OR_FOLLOWER]
    world.add(who, B, version=0)
    world.end(who, commit=True, version=0)
    world.clock.advance(99)  # the report is made again, since it was not answered in time
    assert world.state == "PrepareCommit"
    world.clock.advance(100)
    assert world.state == "CompleteCommit"
    assert world.markers.written[B] == [(tuple_of(who), True)]


def tuple_of(who: events.ProducerIdentity) -> tuple[int, int]:
    return who.producer_id, who.producer_epoch


# --- waits and mistakes ---------------------------------------------------------------------------


def test_a_wait_that_ends_in_vain_leaves_no_transaction_behind() -> None:
    """The role is not lost: nobody else sends the markers of what may be in the log."""
    world = World()
    who = world.init()
    world.add(who, A)
    world.partition.is_lagging = True
    world.transactions.submit(
        "t", events.EndTransaction("t", who.producer_id, who.producer_epoch, True, 2)
    )
    world.partition.end(KafkaError(Error.NOT_LEADER_OR_FOLLOWER, "the log was cut"))
    world.partition.is_lagging = False
    world.partition.commit()
    assert not world.markers.written
    world.clock.advance(RELOAD_PAUSE_MS)
    assert world.state == "CompleteCommit"
    assert world.markers.written[A] == [((1000, 1), True)]


@pytest.mark.parametrize(
    "where", [(FakeMarkers, "write"), (Errands, "_route"), (Errands, "_settle")]
)
def test_a_mistake_on_the_way_leaves_no_transaction_behind(
    where: tuple[Any, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    who = world.init()
    world.add(who, A)

    def broken(*_: Any) -> Any:
        raise AssertionError("this never happens")

    with monkeypatch.context() as patched:
        patched.setattr(*where, broken)
        world.end(who, commit=True)
    assert "trying again" in caplog.text
    assert world.state == "PrepareCommit"
    world.clock.advance(MISTAKE_PAUSE_MS)
    assert world.state == "CompleteCommit"


def test_a_mistake_with_a_late_answer_leaves_no_transaction_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    who = world.init()
    world.add(who, A)
    answer: Later[Any] = Later()
    with monkeypatch.context() as patched:
        patched.setattr(FakeMarkers, "write", lambda *_: answer)
        world.end(who, commit=True)
    answer.resolve("what no leader says")
    assert "trying again" in caplog.text
    world.clock.advance(MISTAKE_PAUSE_MS)
    assert world.state == "CompleteCommit"


@pytest.mark.parametrize(
    "refusal", [Error.INVALID_PRODUCER_EPOCH, Error.TRANSACTION_COORDINATOR_FENCED]
)
def test_a_marker_that_is_refused_leaves_its_transaction_to_a_later_coordinator(
    refusal: Error, caplog: pytest.LogCaptureFixture
) -> None:
    """Called complete, what its partition still has open would end with the next one."""
    world = World()
    who = world.init()
    world.add(who, A, B)
    world.markers.failures = {A: [refusal], B: [Error.NOT_LEADER_OR_FOLLOWER]}
    world.end(who, commit=True)
    world.clock.advance(ROUND_PAUSE_MS)
    assert world.markers.written == {B: [((1000, 1), True)]}
    world.clock.advance(TIMEOUT_MS)
    assert world.state == "PrepareCommit"
    assert "stays prepared" in caplog.text
    assert not world.transactions.errands.under_way
    world.stop()
    world.start()
    assert world.state == "CompleteCommit"
    assert world.markers.written[A] == [((1000, 1), True)]


@pytest.mark.parametrize("fails", ["markers", "report"])
def test_an_answer_that_never_comes_by_a_mistake_leaves_no_transaction_behind(
    fails: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    who = world.init()
    world.add(who, A)
    written: Later[Any] = Later()
    reported: Later[Any] = Later()
    with monkeypatch.context() as patched:
        patched.setattr(FakeMarkers, "write", lambda *_: written)
        world.end(who, commit=True)
        patched.setattr(Runtime, "submit", lambda *_: reported)
        if fails == "report":
            written.resolve({A: Error.NONE})
    (reported if fails == "report" else written).fail(ZeroDivisionError())
    assert "trying again" in caplog.text
    assert world.state == "PrepareCommit"
    world.clock.advance(MISTAKE_PAUSE_MS)
    assert world.state == "CompleteCommit"


def test_errands_end_with_the_shard_that_sent_them() -> None:
    """Whoever has the role next sends its own, in its epoch."""
    world = World()
    who = world.init()
    world.add(who, A)
    world.markers.failures[A] = [Error.NOT_LEADER_OR_FOLLOWER] * 3
    world.end(who, commit=True)
    world.stop()
    world.clock.advance(1_000)
    assert not world.transactions.errands.under_way
    assert len(world.markers.failures[A]) == 2
    world.partition.leader_epoch = 2
    world.transactions.gained(0, world.partition)
    [errand] = world.transactions.errands.under_way
    assert errand.marker.coordinator_epoch == 2
    world.clock.advance(1_000)
    assert world.state == "CompleteCommit"
    assert not world.transactions.errands.under_way


def test_a_leader_is_looked_up_once_for_all_its_partitions() -> None:
    """To say who it is takes a look at the metadata and the listeners, and there may be 10,000."""
    asked: list[int] = []

    def nobody(node_id: int) -> None:
        asked.append(node_id)

    world = World()
    world.transactions.errands = Errands(world.clock, lambda _, index: index % 3, nobody)
    world.add(who := world.init(), *((topic, index) for topic in "ab" for index in range(99)))
    world.end(who, commit=True)
    assert sorted(asked) == [0, 1, 2]
    assert world.state == "PrepareCommit"
