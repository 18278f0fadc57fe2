"""What a transactional producer may do, and when: the coordinator by its answers."""

from __future__ import annotations

import pytest

from kafkalite.coordinators.transactions import events
from kafkalite.coordinators.transactions.ending import BEFORE_VERSION_2, SINCE_VERSION_2
from kafkalite.coordinators.transactions.peer import Admission
from kafkalite.coordinators.transactions.transaction import (
    LAST_CLIENT_EPOCH,
    PREVIOUS,
    SETTLED,
    State,
)
from kafkalite.protocol.errors import Error
from tests.unit.coordinators.transactions.world import World

A, B = ("a", 0), ("b", 3)
Identity = events.ProducerIdentity


def test_a_new_id_gets_a_producer_id_at_epoch_0() -> None:
    world = World()
    assert world.init() == Identity(1000, 0)
    assert world.state == "Empty"


def test_initializing_again_raises_the_epoch() -> None:
    world = World()
    world.init()
    assert world.init() == Identity(1000, 1)


@pytest.mark.parametrize(("version", "epoch_after"), [(0, -1), (2, 1)])
@pytest.mark.parametrize("commit", [True, False])
def test_every_partition_gets_the_marker_once(version: int, epoch_after: int, commit: bool) -> None:
    world = World()
    who = world.init()
    assert world.add(who, A, B, version=version) is None
    assert world.state == "Ongoing"
    answer = world.end(who, commit=commit, version=version)
    assert answer.producer_epoch == epoch_after
    assert world.state == ("CompleteCommit" if commit else "CompleteAbort")
    epoch = max(epoch_after, who.producer_epoch)
    assert world.markers.written == {A: [((1000, epoch), commit)], B: [((1000, epoch), commit)]}


def test_a_repeated_end_is_answered_as_the_first_was() -> None:
    world = World()
    who = world.init()
    world.add(who, A)
    first = world.end(who, commit=True)
    assert world.end(who, commit=True) == first == Identity(1000, 1)
    assert world.markers.written[A] == [((1000, 1), True)]


def test_a_late_end_cannot_touch_the_next_transaction() -> None:
    world = World()
    who = world.init()
    world.add(who, A)
    successor = world.end(who, commit=True)
    world.add(successor, A)
    assert world.end(who, commit=False) is Error.PRODUCER_FENCED
    assert world.state == "Ongoing"


def test_aborting_nothing_raises_the_epoch_since_version_2() -> None:
    world = World()
    who = world.init()
    assert world.end(who, commit=False) == Identity(1000, 1)
    assert world.state == "CompleteAbort"
    assert world.end(world.init(), commit=True) is Error.INVALID_TXN_STATE


def test_committing_what_was_aborted_is_refused_before_version_2() -> None:
    world = World()
    who = world.init()
    world.add(who, A, version=0)
    world.end(who, commit=False, version=0)
    assert world.end(who, commit=True, version=0) is Error.INVALID_TXN_STATE
    assert world.end(who, commit=False, version=0) == Identity(-1, -1)


@pytest.mark.parametrize("server_version", [0, 2])
def test_a_second_producer_aborts_and_fences_the_first(server_version: int) -> None:
    world = World(server_version)
    first = world.init()
    world.add(first, A, version=server_version)
    assert world.init() is Error.CONCURRENT_TRANSACTIONS
    assert world.markers.written[A] == [((1000, 1), False)]
    second = world.init()
    assert second == Identity(1000, 2)
    assert world.add(first, B) is Error.PRODUCER_FENCED
    assert world.end(first, commit=True, version=server_version) is Error.PRODUCER_FENCED
    assert world.add(second, B) is None


def test_another_producer_id_is_not_mapped() -> None:
    world = World()
    world.init()
    assert world.add(Identity(5, 0), A) is Error.INVALID_PRODUCER_ID_MAPPING
    assert world.end(Identity(5, 0), commit=True) is Error.INVALID_PRODUCER_ID_MAPPING


def test_a_producer_that_says_who_it_was_goes_on() -> None:
    world = World()
    who = world.init()
    again = world.init(expected_producer_id=who.producer_id, expected_epoch=who.producer_epoch)
    assert again == Identity(1000, 1)
    # The answer was lost and the request comes again: no second bump.
    assert world.init(expected_producer_id=1000, expected_epoch=0) == Identity(1000, 1)
    assert world.init(expected_producer_id=77, expected_epoch=0) is Error.PRODUCER_FENCED


def test_a_fenced_producer_cannot_go_on() -> None:
    world = World()
    who = world.init()
    world.init()
    had = {"expected_producer_id": who.producer_id, "expected_epoch": who.producer_epoch}
    assert world.init(**had) is Error.PRODUCER_FENCED


def test_the_transaction_is_aborted_when_its_time_is_up() -> None:
    world = World()
    who = world.init()
    world.add(who, A)
    world.clock.advance(59_999)
    assert world.state == "Ongoing"
    world.clock.advance(1)
    assert world.state == "CompleteAbort"
    assert world.markers.written[A] == [((1000, 1), False)]
    assert world.end(who, commit=True) is Error.INVALID_TXN_STATE


def test_no_timer_is_left_after_the_end() -> None:
    world = World()
    who = world.init()
    world.add(who, A)
    world.end(who, commit=True)
    world.clock.advance(120_000)
    assert world.state == "CompleteCommit"


def test_an_id_that_nobody_uses_is_forgotten() -> None:
    world = World()
    world.init()
    world.clock.advance(8 * 86_400_000)
    assert world.describe() is Error.TRANSACTIONAL_ID_NOT_FOUND
    world.stop()
    world.start()
    assert world.describe() is Error.TRANSACTIONAL_ID_NOT_FOUND
    assert world.clock.next_due_ms() is None


def test_used_up_epochs_bring_a_new_producer_id() -> None:
    world = World()
    who = world.init()
    for _ in range(LAST_CLIENT_EPOCH):
        who = world.init()
    assert who == Identity(1000, LAST_CLIENT_EPOCH)
    world.add(who, A)
    after = world.end(who, commit=True)
    assert after == Identity(1001, 0)
    assert world.markers.written[A] == [((1000, LAST_CLIENT_EPOCH + 1), True)]
    assert world.end(who, commit=True) == after
    assert world.add(after, B) is None


def test_markers_are_written_again_until_every_partition_has_one() -> None:
    world = World()
    world.markers.failures[A] = [Error.NOT_LEADER_OR_FOLLOWER, Error.KAFKA_STORAGE_ERROR]
    who = world.init()
    world.add(who, A, B)
    world.end(who, commit=True)
    assert world.state == "PrepareCommit"
    assert world.init() is Error.CONCURRENT_TRANSACTIONS
    world.clock.advance(1_000)
    assert world.state == "CompleteCommit"
    assert world.markers.written == {A: [((1000, 1), True)], B: [((1000, 1), True)]}


def test_while_the_markers_are_on_their_way_everybody_waits() -> None:
    """Also who goes on with what it has after the end, which may be another id (KAFKA-18464)."""
    world = World()
    who = world.init()
    world.add(who, A)
    world.markers.failures[A] = [Error.NOT_LEADER_OR_FOLLOWER]
    after = world.end(who, commit=True)
    for told in (who, after, Identity(1000, 7), Identity(1001, 0)):
        for commit in (True, False):
            assert world.end(told, commit=commit) is Error.CONCURRENT_TRANSACTIONS
        assert world.add(told, B) is Error.CONCURRENT_TRANSACTIONS
        again = world.init(
            expected_producer_id=told.producer_id, expected_epoch=told.producer_epoch
        )
        assert again is Error.CONCURRENT_TRANSACTIONS
    world.clock.advance(1_000)
    assert world.end(after, commit=False) == Identity(1000, 2)


def test_while_markers_of_the_old_flow_are_on_their_way_who_asks_is_looked_at_first() -> None:
    world = World()
    who = world.init()
    world.add(who, A, version=0)
    world.markers.failures[A] = [Error.NOT_LEADER_OR_FOLLOWER]
    world.end(who, commit=True, version=0)
    answers = {
        Identity(1000, 0): Error.CONCURRENT_TRANSACTIONS,
        Identity(1000, 1): Error.PRODUCER_FENCED,
        Identity(1001, 0): Error.INVALID_PRODUCER_ID_MAPPING,
    }
    for told, answer in answers.items():
        for commit in (True, False):
            assert world.end(told, commit=commit, version=0) is answer


def test_a_deleted_partition_needs_no_marker() -> None:
    world = World()
    who = world.init()
    world.add(who, A)
    world.leaders[A] = None
    world.end(who, commit=True)
    assert world.state == "CompleteCommit"


def test_nothing_is_sent_before_the_decision_is_committed() -> None:
    world = World()
    who = world.init()
    world.add(who, A)
    world.partition.is_lagging = True
    event = events.EndTransaction("t", who.producer_id, who.producer_epoch, True, 2)
    answer = world.transactions.submit("t", event)
    assert not answer.is_resolved
    assert not world.markers.written
    world.partition.is_lagging = False
    world.partition.commit()
    assert answer.value == Identity(1000, 1)
    assert world.markers.written[A] == [((1000, 1), True)]


def test_admission_verifies_or_adds() -> None:
    world = World()
    who = world.init()

    def admit(*, is_adding: bool, knows_abortable: bool = True, epoch: int = 0) -> dict:
        admission = Admission("t", who.producer_id, epoch, (A,), is_adding)
        asked = world.transactions.ask(admission, knows_abortable=knows_abortable)
        assert asked.is_resolved
        return {where: error.code for where, error in asked.value.items()}

    assert admit(is_adding=False) == {A: Error.TRANSACTION_ABORTABLE}
    assert admit(is_adding=False, knows_abortable=False) == {A: Error.INVALID_TXN_STATE}
    assert admit(is_adding=True, epoch=5) == {A: Error.INVALID_PRODUCER_EPOCH}
    assert admit(is_adding=True) == {}
    assert world.describe().partitions == (A,)
    assert admit(is_adding=False) == {}


def test_admission_waits_for_the_transaction_before() -> None:
    world = World()
    world.markers.failures[A] = [Error.NOT_LEADER_OR_FOLLOWER]
    who = world.init()
    world.add(who, A)
    after = world.end(who, commit=True)
    admission = Admission("t", after.producer_id, after.producer_epoch, (B,), is_adding=True)
    asked = world.transactions.ask(admission, knows_abortable=True)
    assert not asked.is_resolved
    world.clock.advance(100)
    assert asked.value == {}


def test_every_state_has_its_row() -> None:
    ends = {State.ONGOING, *SETTLED}  # in the others everybody waits
    assert {state for state, _ in BEFORE_VERSION_2} == ends
    assert {state for state, _, _ in SINCE_VERSION_2} == ends
    assert set(PREVIOUS) == set(State) - {State.PREPARE_EPOCH_FENCE}
