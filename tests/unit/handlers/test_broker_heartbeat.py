"""BrokerHeartbeat: let in when it is ready, fenced when silent, let go when nobody needs it."""

from kafkalite.protocol.errors import Error
from tests.unit.handlers.quorum_desk import FAR, SESSION_MS
from tests.unit.handlers.test_assign_replicas_to_dirs import assignment


def leaders(desk):
    return [each.leader for each in desk.world.metadata.image.topics["t"].partitions.values()]


def test_is_let_in_once_it_has_applied_its_registration(desk):
    desk.register(7)
    early = desk.beat(7, current_metadata_offset=desk.broker(7).epoch - 1)
    assert (early.is_caught_up, early.is_fenced) == (False, True)
    assert desk.beat(7, want_fence=True).is_fenced
    ready = desk.beat(7, current_metadata_offset=desk.broker(7).epoch)
    assert (ready.is_caught_up, ready.is_fenced) == (True, False)
    assert not desk.broker(7).is_fenced


def test_who_is_silent_is_fenced_and_comes_back_with_a_heartbeat(desk):
    desk.enter(7)
    desk.world.create("t", 3, 2)
    assert 7 in leaders(desk)
    desk.world.clock.advance(SESSION_MS - 1_000)
    desk.beat(7)
    desk.world.clock.advance(SESSION_MS - 2_000)
    assert not desk.broker(7).is_fenced
    desk.world.clock.advance(SESSION_MS)
    assert desk.broker(7).is_fenced
    assert leaders(desk) == [1, 1, 1]
    assert not desk.beat(7).is_fenced
    assert not desk.broker(7).is_fenced


def test_a_broker_is_let_go_when_all_have_heard_that_it_leads_nothing(desk):
    desk.enter(7)
    desk.enter(8)
    desk.world.create("t", 6, 2)
    asked = desk.beat(7, want_shut_down=True)
    assert (asked.should_shut_down, asked.is_fenced) == (False, False)
    assert desk.broker(7).in_controlled_shutdown
    assert 7 not in leaders(desk)
    desk.beat(8, current_metadata_offset=desk.broker(7).epoch)
    assert desk.beat(7, want_shut_down=True).should_shut_down
    assert desk.broker(7).is_fenced


def test_one_that_was_let_go_may_come_back_at_once(desk):
    desk.enter(7)
    assert desk.beat(7, want_shut_down=True).should_shut_down
    assert desk.register(7, incarnation_id=b"n" * 16).error_code == Error.NONE


def test_another_life_and_an_unknown_broker_are_told(desk):
    desk.enter(7)
    stale = desk.beat(7, broker_epoch=desk.broker(7).epoch - 1)
    assert stale.error_code == Error.STALE_BROKER_EPOCH
    unknown = desk.beat(9)
    assert unknown.error_code == Error.BROKER_ID_NOT_REGISTERED


def test_directories_that_fail_and_that_take_nothing_new_are_noted(desk):
    one, two = b"a" * 16, b"b" * 16
    desk.enter(7, log_dirs=[one, two])
    desk.beat(7, offline_log_dirs=[one], cordoned_log_dirs=[two])
    assert desk.broker(7).log_dirs == (two,)
    assert desk.broker(7).cordoned_log_dirs == (two,)
    end = desk.world.metadata.offset
    desk.beat(7, cordoned_log_dirs=[two], current_metadata_offset=FAR)
    assert desk.world.metadata.offset == end  # what is so already is not written again


def test_who_comes_back_without_a_directory_leads_nothing_that_is_in_it(desk):
    """As when a disk hangs for longer than a session before it fails."""
    one, two = b"a" * 16, b"b" * 16
    desk.enter(7, log_dirs=[one, two])
    topic_id = desk.world.create("t", 4, 1)
    [first, second] = [index for index, leader in enumerate(leaders(desk)) if leader == 7]
    for directory, index in ((one, first), (two, second)):
        desk.world.ask(assignment(desk, directory, (topic_id, index)), 0)
    desk.world.clock.advance(2 * SESSION_MS)
    assert desk.broker(7).is_fenced
    assert not desk.beat(7, offline_log_dirs=[one]).is_fenced
    assert desk.broker(7).log_dirs == (two,)
    assert (leaders(desk)[first], leaders(desk)[second]) == (-1, 7)
