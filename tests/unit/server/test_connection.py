"""A connection's frames, the order of its replies, and what it keeps: no I/O, no clock."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.server.common import RECEIVE_BUFFER_BYTES, SPARE_BYTES
from kafkalite.server.connection import SMALL_BYTES, UNSENT_BYTES
from kafkalite.server.in_turn import FRAMES_PER_SHARE
from kafkalite.server.limits import LEAVING_MS, SWEEP_MS, Limits
from kafkalite.server.terms import OWED_REPLIES
from tests.unit.server.support import FakeLink, World, frame


def start(limits=None, room=1 << 30, buffer_bytes=262_144):
    world, link = World(limits, buffer_bytes), FakeLink(room)
    return world, link, world.connect(link)


# --- frames -----------------------------------------------------------------------------------


def test_a_frame_is_answered():
    world, link, _ = start()
    world.feed(link, frame(b"hello"))
    assert link.replies() == [b"hello"]


def test_frames_that_come_together_leave_in_one_send():
    world, link, _ = start()
    world.feed(link, frame(b"one") + frame(b"two") + frame(b"three"))
    assert link.replies() == [b"one", b"two", b"three"]
    assert link.sends == 1


@pytest.mark.parametrize("buffer_bytes", [16_384, 262_144])
def test_frames_cut_at_every_point_are_the_same_frames(buffer_bytes):
    data = frame(b"one") + frame(b"") + frame(b"seventeen bytes!!") + frame(b"x" * 40)
    for first in range(len(data) + 1):
        for second in range(first, len(data) + 1):
            world, link, _ = start(buffer_bytes=buffer_bytes)
            for piece in (data[:first], data[first:second], data[second:]):
                assert world.feed(link, piece) == len(piece)
            assert world.service.requests == [b"one", b"", b"seventeen bytes!!", b"x" * 40]
            assert world.memory.used == 0


@given(
    sizes=st.lists(st.integers(0, 60_000), min_size=1, max_size=8),
    cuts=st.lists(st.integers(0, 200_000), max_size=12),
    buffer_bytes=st.sampled_from([16_384, 20_000, 65_536]),
)
def test_frames_of_any_size_in_any_pieces_are_the_same_frames(sizes, cuts, buffer_bytes):
    bodies = [random.Random(size).randbytes(size) for size in sizes]
    data = b"".join(map(frame, bodies))
    world, link, _ = start(buffer_bytes=buffer_bytes)
    points = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for left, right in pairwise(points):
        assert world.feed(link, data[left:right]) == right - left
    assert world.service.requests == bodies
    assert link.replies() == bodies
    assert world.memory.used == 0


def test_what_is_kept_grows_with_the_bytes_that_came_not_with_the_claim():
    world, link, _ = start()
    claim = (100_000_000).to_bytes(4, "big")
    world.feed(link, claim)
    assert world.memory.used == 4
    world.feed(link, b"x" * 20_000)
    assert world.memory.used <= 2 * 20_004
    world.feed(link, b"x" * 500_000)
    assert world.memory.used <= 2 * 520_004


def test_the_rest_of_a_large_frame_is_received_into_its_own_buffer():
    world, link, connection = start()
    world.feed(link, frame(b"x" * 100_000)[:50_000])
    assert len(connection.buffer()) <= 50_004
    assert connection.buffer().obj is not world.common.buffer.obj


def test_a_large_frame_takes_a_buffer_that_one_before_it_has_grown():
    world, link, connection = start()
    data = frame(b"x" * 500_000)
    world.feed(link, data)
    world.feed(link, data[:20_000])
    assert len(connection.buffer()) == len(data) - 20_000
    other = FakeLink()
    grows = world.connect(other)
    world.feed(other, data[:20_000])
    assert len(grows.buffer()) <= 20_000
    world.feed(link, data[20_000:])
    world.feed(other, data[20_000:])
    assert world.service.requests == [data[4:]] * 3
    assert world.memory.used == 0


def test_few_buffers_are_kept():
    world, _, _ = start()
    links = [FakeLink() for _ in range(16)]
    for link in links:
        world.connect(link)
        world.feed(link, frame(b"x" * 900_000)[:850_000])
    for link in links:
        world.feed(link, frame(b"x" * 900_000)[850_000:])
    assert len(world.service.requests) == len(links)
    assert SPARE_BYTES // 2 < world.common.spare_bytes <= SPARE_BYTES


def test_a_claim_beyond_the_limit_ends_the_connection_after_what_is_ready():
    world, link, _ = start(Limits(max_request_bytes=1000))
    world.feed(link, frame(b"first") + (1001).to_bytes(4, "big"))
    assert link.replies() == [b"first", b"refused"]
    assert link.is_ended
    assert world.service.refused == [1001]


def test_a_negative_size_ends_the_connection():
    world, link, _ = start()
    world.feed(link, b"\xff\xff\xff\xff")
    assert link.is_ended
    assert world.service.refused == [-1]


def test_a_frame_of_exactly_the_limit_is_taken():
    world, link, _ = start(Limits(max_request_bytes=1000))
    world.feed(link, frame(b"x" * 1000))
    assert link.replies() == [b"x" * 1000]


def test_a_handler_may_write_where_the_request_lies():
    """Frames out of the common buffer, a buffer of their own and a backlog are all writable."""
    world, link, _ = start()
    world.feed(link, frame(b"a") * 300 + frame(b"x" * 600_000))
    assert len(world.service.requests) == 301


# --- the order of replies ------------------------------------------------------------------------


def test_the_only_reply_that_is_owed_leaves_at_once_and_several_together():
    world, link, _ = start()
    world.feed(link, frame(b"later-1"))
    world.service.resolve(b"later-1")
    assert link.replies() == [b"later-1"]
    world.feed(link, frame(b"later-2") + frame(b"later-3"))
    world.service.resolve(b"later-2")
    world.service.resolve(b"later-3")
    assert link.sends == 1
    world.turn()
    assert link.replies() == [b"later-1", b"later-2", b"later-3"]
    assert link.sends == 2


def test_replies_keep_the_order_of_requests_whatever_comes_first():
    world, link, _ = start()
    world.feed(link, frame(b"later-1") + frame(b"now") + frame(b"later-2") + frame(b"end"))
    assert link.replies() == []
    world.service.resolve(b"later-2")
    world.turn()
    assert link.replies() == []
    world.service.resolve(b"later-1")
    world.turn()
    assert link.replies() == [b"later-1", b"now", b"later-2", b"end"]


@given(st.permutations([b"later-%d" % i for i in range(6)]))
def test_replies_keep_their_order_for_every_order_of_results(order):
    world, link, _ = start()
    world.feed(link, b"".join(frame(b"later-%d" % i) for i in range(6)))
    for name in order:
        world.service.resolve(name)
        world.turn()
    assert link.replies() == [b"later-%d" % i for i in range(6)]


def test_replies_that_become_ready_in_one_turn_leave_in_one_send():
    world, link, _ = start()
    world.feed(link, b"".join(frame(b"later-%d" % i) for i in range(5)))
    for i in range(5):
        world.service.resolve(b"later-%d" % i)
    world.turn()
    assert len(link.replies()) == 5
    assert link.sends == 1


def test_the_next_request_is_taken_while_a_reply_is_owed():
    world, link, _ = start()
    world.feed(link, frame(b"later-1") + frame(b"now"))
    assert world.service.requests == [b"later-1", b"now"]


def test_a_request_without_reply_leaves_no_place_in_the_order():
    world, link, _ = start()
    world.feed(link, frame(b"none") + frame(b"one"))
    assert link.replies() == [b"one"]


def test_an_answer_that_closes_lets_ready_replies_out_and_takes_no_more():
    world, link, _ = start()
    world.feed(link, frame(b"one") + frame(b"close") + frame(b"two"))
    assert link.replies() == [b"one"]
    assert link.is_ended
    assert world.service.requests == [b"one", b"close"]


def test_a_result_for_a_connection_that_has_ended_is_dropped():
    world, link, _ = start()
    world.feed(link, frame(b"later-1"))
    link.abort()
    world.service.resolve(b"later-1")
    world.turn()
    assert link.sent == b""


def test_what_waits_for_a_client_hears_that_it_has_gone():
    _, link, connection = start()
    heard = []
    connection.info.when_gone(lambda: heard.append("gone"))
    link.abort()
    assert heard == ["gone"]


def test_a_peer_that_asks_for_nothing_more_gets_what_it_is_owed():
    world, link, connection = start()
    world.feed(link, frame(b"later-1") + frame(b"now") + frame(b"later-2"))
    connection.finished()
    assert not link.is_ended
    world.service.resolve(b"later-1")
    world.turn()
    assert not link.is_ended
    world.service.resolve(b"later-2")
    world.turn()
    assert link.replies() == [b"later-1", b"now", b"later-2"]
    assert link.is_ended


def test_a_peer_that_asks_for_nothing_more_is_not_kept_for_ever():
    world, link, connection = start()
    world.feed(link, frame(b"later-1"))
    connection.finished()
    world.sweep(LEAVING_MS + SWEEP_MS)
    assert link.is_ended


def test_requests_that_have_come_are_answered_though_no_more_will():
    world, link, connection = start()
    requests = b"".join(frame(b"%d" % number) for number in range(3 * FRAMES_PER_SHARE))
    world.feed(link, requests, turns=False)
    connection.finished()
    world.turn()
    assert len(link.replies()) == 3 * FRAMES_PER_SHARE
    assert link.is_ended


def test_a_peer_that_is_owed_nothing_goes_at_once():
    world, link, connection = start()
    world.feed(link, frame(b"one") + frame(b"half")[:5])
    connection.finished()
    assert link.is_ended
    assert world.memory.used == 0


# --- back-pressure -------------------------------------------------------------------------------


def test_a_peer_that_takes_no_replies_is_read_no_further():
    world, link, _ = start(room=0)
    requests = frame(b"big-100000") * 100_000
    taken = world.feed(link, requests)
    assert taken <= RECEIVE_BUFFER_BYTES
    assert len(world.service.requests) <= UNSENT_BYTES // 100_000 + 1
    assert link.unsent_bytes <= UNSENT_BYTES + 100_004


def test_a_peer_that_takes_its_replies_at_last_gets_them_all():
    world, link, _ = start(room=0)
    requests = frame(b"big-100000") * 50
    position = world.feed(link, requests)
    for _ in range(200):
        link.peer_takes(50_000)
        world.turn()
        position += world.feed(link, requests[position:])
    assert len(link.replies()) == 50
    assert position == len(requests)
    assert world.memory.used == 0


def test_no_more_requests_are_begun_than_may_be_owed():
    world, link, _ = start()
    requests = b"".join(frame(b"later-%03d" % i) for i in range(OWED_REPLIES + 50))
    world.feed(link, requests)
    assert len(world.service.requests) == OWED_REPLIES
    assert not link.is_reading
    for i in range(OWED_REPLIES):
        world.service.resolve(b"later-%03d" % i)
    world.turn()
    assert len(world.service.requests) == OWED_REPLIES + 50
    assert link.is_reading


def test_one_connection_with_many_requests_lets_the_loop_turn():
    world, link, _ = start()
    world.feed(link, frame(b"a") * 1000, turns=False)
    assert len(world.service.requests) <= 1 + FRAMES_PER_SHARE
    world.turn()
    assert len(world.service.requests) == 1000
    assert link.is_reading


# --- memory over all connections -----------------------------------------------------------------


def connect_hog(world):
    """A connection that holds more than all the memory there is for requests."""
    hog = FakeLink()
    world.connect(hog)
    assert world.feed(hog, frame(b"x" * 1_000_000)[:800_000]) == 800_000
    return hog


def test_large_frames_wait_while_memory_is_short_and_small_ones_do_not():
    world, link, _ = start(Limits(max_queued_request_bytes=100_000))
    connect_hog(world)
    assert world.feed(link, frame(b"x" * 200_000)) < 100_000
    assert not link.is_reading
    other = FakeLink()
    world.connect(other)
    world.feed(other, frame(b"y" * 1000)[:500])
    world.feed(other, frame(b"y" * 1000)[500:])
    assert other.replies() == [b"y" * 1000]


def test_a_frame_that_waited_for_memory_goes_on_when_there_is_some():
    world, link, _ = start(Limits(max_queued_request_bytes=100_000))
    hog = connect_hog(world)
    data = frame(b"x" * 200_000)
    position = world.feed(link, data)
    hog.abort()
    assert world.feed(link, data[position:]) == len(data) - position
    assert link.replies() == [b"x" * 200_000]


def test_one_frame_may_be_larger_than_the_memory_for_all():
    world, link, _ = start(Limits(max_queued_request_bytes=100_000))
    world.feed(link, frame(b"x" * 1_000_000))
    assert link.replies() == [b"x" * 1_000_000]


def test_slow_frames_make_room_when_memory_is_short():
    world, link, _ = start(Limits(max_queued_request_bytes=100_000))
    hog = connect_hog(world)
    world.sweep(6_000)
    assert not hog.is_ended
    world.feed(link, frame(b"x" * 200_000))
    world.sweep()
    assert not hog.is_ended, "it has grown since it was looked at"
    world.sweep(6_000)
    assert hog.is_ended
    assert not link.is_ended
    assert link.is_reading
    assert "memory" in world.service.expired_reasons[0]


def test_memory_is_bounded_however_many_connections_send_parts_of_frames():
    world, _, _ = start(Limits(max_queued_request_bytes=1_000_000))
    for _ in range(100):
        link = FakeLink()
        world.connect(link)
        world.feed(link, frame(b"x" * 10_000_000)[:400_000])
    assert world.memory.used <= 1_000_000 + 2 * RECEIVE_BUFFER_BYTES + 100 * 4 * SMALL_BYTES


def test_uploads_that_move_all_arrive_however_short_memory_is():
    world, _, _ = start(Limits(max_queued_request_bytes=1_000_000))
    data = frame(b"x" * 300_000)
    links = [FakeLink() for _ in range(20)]
    for link in links:
        world.connect(link)
    positions = dict.fromkeys(range(20), 0)
    for _ in range(400):  # at 25 KB a second
        for number, link in enumerate(links):
            piece = data[positions[number] : positions[number] + 25_000]
            positions[number] += world.feed(link, piece)
        world.sweep(1_000)
    assert world.service.expired_reasons == []
    assert [len(link.replies()) for link in links] == [1] * 20
    assert world.memory.used == 0


def test_what_waits_for_its_answer_counts_as_memory():
    world, link, _ = start(Limits(max_queued_request_bytes=100_000))
    world.feed(link, frame(b"later-" + b"x" * 150_000))
    other = FakeLink()
    world.connect(other)
    world.feed(other, frame(b"y" * 60_000))
    assert world.memory.used >= 150_000
    world.service.resolve(b"later-" + b"x" * 150_000)
    world.turn()
    assert world.memory.used == 0


# --- deadlines -----------------------------------------------------------------------------------


def test_a_frame_that_grows_is_not_cut_off_however_long_it_takes():
    world, link, _ = start(Limits(frame_timeout_ms=5_000))
    data = frame(b"x" * 200_000)
    for position in range(0, len(data), 2_000):
        world.feed(link, data[position : position + 2_000])
        world.sweep(1_000)
    assert not link.is_ended
    assert len(link.replies()) == 1


def test_a_frame_that_drips_is_cut_off_at_its_deadline():
    world, link, _ = start(Limits(frame_timeout_ms=5_000))
    for byte in frame(b"x" * 100)[:40]:
        world.feed(link, bytes([byte]))
        world.sweep(200)
    assert link.is_ended
    assert len(world.service.expired_reasons) == 1


def test_frames_that_each_come_in_time_have_no_common_deadline():
    world, link, _ = start(Limits(frame_timeout_ms=5_000))
    data = frame(b"x" * 100)
    for _ in range(10):
        world.feed(link, data[:50])
        world.sweep(3_000)
        world.feed(link, data[50:] + data[:10])
        world.sweep(3_000)
        world.feed(link, data[10:])
    assert not link.is_ended


def test_a_silent_connection_is_closed_and_one_that_is_owed_a_reply_is_not():
    world, idle, _ = start(Limits(max_idle_ms=10_000))
    waiting = FakeLink()
    world.connect(waiting)
    world.feed(waiting, frame(b"later-1"))
    world.sweep(12_000)
    assert idle.is_ended
    assert not waiting.is_ended
    assert world.service.expired_reasons == []


def test_an_ended_connection_leaves_nothing_behind():
    world, link, connection = start()
    world.feed(link, frame(b"x" * 300_000)[:150_000])
    link.abort()
    assert world.ended == [connection]
    assert world.memory.used == 0
    world.sweep(60_000)
    assert world.service.expired_reasons == []


def test_peers_that_take_nothing_are_cut_off_when_replies_fill_the_memory():
    world, patient, _ = start(Limits(max_held_reply_bytes=1_000_000), room=0)
    world.feed(patient, frame(b"big-1000"))
    world.sweep(30_000)
    assert not patient.is_ended
    greedy = []
    for _ in range(5):
        greedy.append(FakeLink(room=0))
        world.connect(greedy[-1])
        world.feed(greedy[-1], frame(b"big-250000"))
    world.sweep()
    assert not any(link.is_ended for link in greedy)
    greedy[0].peer_takes(1_000)
    world.sweep(2_000)
    greedy[0].peer_takes(1_000)
    world.sweep()
    assert patient.is_ended
    assert not greedy[0].is_ended
    assert sum(link.unsent_bytes for link in greedy if not link.is_ended) <= 1_000_000
    assert any(not link.is_ended for link in greedy[1:])


def test_a_peer_that_has_taken_its_replies_is_no_slow_reader():
    world, link, _ = start(room=0)
    world.feed(link, frame(b"big-1000"))
    assert world.deadlines._readers
    link.peer_takes(10_000)
    assert not world.deadlines._readers
