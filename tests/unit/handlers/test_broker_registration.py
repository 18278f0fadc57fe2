"""BrokerRegistration: who may enter, and what an earlier life of a broker leaves behind."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import BrokerRegistrationRequest
from tests.unit.handlers.quorum_desk import SESSION_MS

Feature = BrokerRegistrationRequest.Feature
HIGH_ONLY = [Feature(name="metadata.version", min_supported_version=7, max_supported_version=8)]


def test_a_broker_enters_fenced_and_its_epoch_is_its_offset(desk):
    answer = desk.register(7)
    broker = desk.broker(7)
    assert answer.broker_epoch == broker.epoch == desk.world.metadata.offset
    assert broker.is_fenced
    assert broker.endpoints[0].port == 9097


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"cluster_id": "another"}, Error.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": []}, Error.INVALID_REGISTRATION),
        ({"log_dirs": [b"d" * 16] * 2}, Error.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(15) + b"\x02"]}, Error.INVALID_REGISTRATION),
        ({"is_migrating_zk_broker": True}, Error.INVALID_REGISTRATION),
        ({"features": []}, Error.INVALID_REGISTRATION),
        ({"features": HIGH_ONLY}, Error.UNSUPPORTED_VERSION),
    ],
)
def test_who_may_not_enter_is_told_why(desk, changes, error):
    assert desk.register(7, **changes).error_code == error
    assert 7 not in desk.world.metadata.image.brokers


def test_a_directory_of_another_broker_is_refused(desk):
    desk.register(7, log_dirs=[b"d" * 16])
    assert desk.register(8, log_dirs=[b"d" * 16]).error_code == Error.INVALID_REGISTRATION


def test_two_of_one_id_are_told_apart_while_the_first_lives(desk):
    desk.enter(7)
    second = {"incarnation_id": b"n" * 16}
    assert desk.register(7, **second).error_code == Error.DUPLICATE_BROKER_REGISTRATION
    desk.world.clock.advance(2 * SESSION_MS)
    assert desk.register(7, **second).error_code == Error.NONE
    assert desk.broker(7).incarnation_id == b"n" * 16


def test_the_same_life_says_anew_what_it_is_and_keeps_its_epoch(desk):
    desk.enter(7)
    epoch = desk.broker(7).epoch
    assert desk.register(7, rack="r").broker_epoch == epoch
    assert (desk.broker(7).rack, desk.broker(7).is_fenced) == ("r", False)


@pytest.mark.parametrize(("is_clean", "eligible"), [(True, (7,)), (False, ())])
def test_what_may_be_lost_is_neither_in_sync_nor_eligible(desk, is_clean, eligible):
    desk.enter(7)
    desk.world.create("t", 4, 1)
    [state] = [
        each
        for each in desk.world.metadata.image.topics["t"].partitions.values()
        if each.replicas == (7,)
    ][:1]
    epoch = desk.broker(7).epoch
    assert desk.beat(7, want_shut_down=True).is_fenced is False
    desk.beat(7, want_shut_down=True)
    before = desk.world.metadata.image.topics["t"].partitions[state.index]
    assert (before.leader, before.elr) == (-1, (7,))
    previous = epoch if is_clean else -1
    desk.register(7, incarnation_id=b"n" * 16, previous_broker_epoch=previous)
    after = desk.world.metadata.image.topics["t"].partitions[state.index]
    assert after.elr == eligible


def over_but_not_looked_at(desk):
    """Broker 7's session has ended, and nobody has noticed yet."""
    desk.world.clock.advance(500)
    desk.beat(7)
    desk.world.clock.advance(SESSION_MS + 100)
    assert not desk.broker(7).is_fenced


def test_what_an_earlier_life_led_is_led_by_others_when_the_next_begins(desk):
    desk.enter(7)
    desk.world.create("t", 4, 2)
    epoch = desk.broker(7).epoch
    over_but_not_looked_at(desk)
    answer = desk.register(7, incarnation_id=b"n" * 16, previous_broker_epoch=epoch)
    assert answer.error_code == Error.NONE
    states = desk.world.metadata.image.topics["t"].partitions.values()
    assert [(each.leader, each.isr) for each in states] == [(1, (1,))] * 4


def test_a_life_begins_without_what_was_heard_of_the_one_before(desk):
    desk.enter(7)
    desk.register(8)
    desk.beat(8, current_metadata_offset=desk.broker(8).epoch)
    desk.world.create("t", 6, 2)
    desk.beat(7, want_shut_down=True)
    over_but_not_looked_at(desk)
    desk.enter(7, incarnation_id=b"n" * 16)
    desk.world.create("u", 6, 2)
    desk.beat(8, current_metadata_offset=desk.world.metadata.offset)
    desk.beat(7, want_shut_down=True)
    assert not desk.beat(7, want_shut_down=True).should_shut_down  # 8 has not heard of it
