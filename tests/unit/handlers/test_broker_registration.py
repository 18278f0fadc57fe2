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
