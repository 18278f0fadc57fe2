"""On what terms frames are taken: who answers them, one by one, how large, for how long."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.config.listeners import SASL_SSL
from kafkalite.env.later import Later
from kafkalite.handlers.call import ANONYMOUS
from kafkalite.server import limits
from kafkalite.server.limits import CROWDED_LOGIN_MS, SWEEP_MS, Limits
from kafkalite.server.terms import NewTerms, Outcome, Terms
from tests.unit.server.support import FakeLink, FakeService, World, frame

LOGIN_MS = 5_000
MOST_BYTES = 1_000
ROOM = 16_384  # of the buffers that large frames begin in
LARGE = frame(b"l" * 4 * ROOM)


class Login(FakeService):
    """Lets a peer through at `enter`, or when `resolve_entry` is called after `enter-later`."""

    def __init__(self, behind):
        super().__init__()
        self.behind = Terms(behind)
        self.entry: Later[Outcome] = Later.of([])

    @property
    def terms(self):
        return Terms(self, MOST_BYTES, owed_replies=1, login_ms=LOGIN_MS)

    def answer(self, frame_, connection):
        body = bytes(frame_)
        if body == b"enter":
            self.requests.append(body)
            connection.principal = "User:somebody"
            return NewTerms([frame(b"come in")], self.behind)
        if body == b"enter-later":
            self.requests.append(body)
            self.entry = Later()
            return self.entry
        return super().answer(frame_, connection)

    def resolve_entry(self):
        self.entry.resolve(NewTerms([frame(b"come in")], self.behind))


def start(room=1 << 30):
    world, link = World(), FakeLink(room)
    login = Login(world.service)
    return world, link, login, world.connect(link, login.terms)


def test_a_frame_waits_for_the_reply_to_the_one_before():
    world, link, login, _ = start()
    world.feed(link, frame(b"later-1") + frame(b"two") + frame(b"three"))
    assert login.requests == [b"later-1"]
    assert not link.is_reading
    login.resolve(b"later-1")
    world.turn()
    assert login.requests == [b"later-1", b"two", b"three"]
    assert link.replies() == [b"later-1", b"two", b"three"]
    assert link.is_reading
    assert world.memory.used == 0


def test_nothing_is_read_behind_a_request_that_is_not_answered():
    world, link, login, _ = start()
    world.feed(link, frame(b"later-1") + frame(b"two")[:3])
    assert not link.is_reading
    login.resolve(b"later-1")
    world.turn()
    world.feed(link, frame(b"two")[3:])
    assert link.replies() == [b"later-1", b"two"]


def test_what_comes_behind_the_entry_is_for_the_service_behind():
    world, link, login, connection = start()
    assert connection.info.principal == ANONYMOUS
    world.feed(link, frame(b"hello") + frame(b"enter") + frame(b"later-1") + frame(b"later-2"))
    assert login.requests == [b"hello", b"enter"]
    assert world.service.requests == [b"later-1", b"later-2"]
    assert link.replies() == [b"hello", b"come in"]
    assert connection.info.principal == "User:somebody"


def test_an_entry_that_is_granted_later_holds_for_what_waits():
    world, link, login, _ = start()
    world.feed(link, frame(b"enter-later") + frame(b"one") + frame(b"two"))
    assert (login.requests, world.service.requests) == ([b"enter-later"], [])
    login.resolve_entry()
    world.turn()
    assert (login.requests, world.service.requests) == ([b"enter-later"], [b"one", b"two"])
    assert link.replies() == [b"come in", b"one", b"two"]


@pytest.mark.parametrize("token", [b"", b"\0", b"\xff" * 7, b"n,,n=user,r=nonce"])
def test_a_frame_needs_no_header(token):
    world, link, login, _ = start()
    world.feed(link, frame(token))
    assert login.requests == [token]


def test_a_frame_beyond_the_terms_is_refused_by_their_service():
    world, link, login, _ = start()
    world.feed(link, frame(b"x" * MOST_BYTES) + (MOST_BYTES + 1).to_bytes(4, "big"))
    assert login.requests == [b"x" * MOST_BYTES]
    assert (login.refused, world.service.refused) == ([MOST_BYTES + 1], [])
    assert link.replies()[-1] == b"refused"
    assert link.is_ended


def test_what_has_come_and_waits_is_bounded():
    world, link, _, connection = start()
    assert len(connection.buffer()) == MOST_BYTES + 4
    world.feed(link, frame(b"later-1") + frame(b"y" * 80) * 100)
    assert world.memory.used <= MOST_BYTES + 4


def test_other_terms_have_the_limits_of_all_frames():
    world, link, login, connection = start()
    world.feed(link, frame(b"enter"))
    assert len(connection.buffer()) > 100 * MOST_BYTES
    world.feed(link, frame(b"x" * 50_000))
    assert world.service.requests == [b"x" * 50_000]
    assert login.refused == []


def test_who_does_not_log_in_in_time_is_cut_off():
    world, link, login, _ = start()
    world.sweep(LOGIN_MS - SWEEP_MS)
    world.feed(link, frame(b"hello"))
    assert not link.is_ended
    world.sweep()
    world.sweep()
    assert link.is_ended
    assert login.expired_reasons == [f"it did not log in within {LOGIN_MS} ms"]


def test_who_has_logged_in_may_stay():
    world, link, _, _ = start()
    world.feed(link, frame(b"enter"))
    for _ in range(3 * LOGIN_MS // SWEEP_MS):
        world.sweep()
    assert not link.is_ended


@pytest.mark.parametrize("entry", [b"enter-later", b"hello"])
def test_who_has_gone_is_not_waited_for(entry):
    world, link, login, _ = start()
    world.feed(link, frame(entry))
    link.abort()
    if not login.entry.is_resolved:
        login.resolve_entry()
    for _ in range(3 * LOGIN_MS // SWEEP_MS):
        world.sweep()
    assert login.expired_reasons == world.service.expired_reasons == []
    assert world.memory.used == 0


def test_what_strangers_send_is_in_a_memory_of_their_own_until_they_are_let_in():
    world, link, login, _ = start()
    strangers = world.deadlines.strangers_memory
    world.feed(link, frame(b"x" * 900)[:600])
    assert (world.memory.used, strangers.used) == (0, 1024)
    world.feed(link, frame(b"x" * 900)[600:] + frame(b"enter-later") + frame(b"later-1")[:7])
    assert (world.memory.used, strangers.used) == (0, len(b"enter-later") + 7)
    login.resolve_entry()
    world.turn()
    assert (world.memory.used, strangers.used) == (7, 0)
    world.feed(link, frame(b"later-1")[7:])
    world.service.resolve(b"later-1")
    world.turn()
    assert world.memory.used == 0


def test_who_waited_for_the_memory_of_strangers_goes_on_in_that_of_others(monkeypatch):
    monkeypatch.setattr(limits, "STRANGERS_BYTES", 2_048)
    world, link, login, _ = start()
    greedy = [FakeLink(), FakeLink()]
    for each in greedy:
        world.connect(each, login.terms)
        world.feed(each, frame(b"g" * MOST_BYTES)[:1_000])
    world.feed(link, frame(b"enter-later") + frame(b"x" * MOST_BYTES)[:400])
    assert link.is_reading is False
    login.resolve_entry()
    world.turn()
    world.feed(link, frame(b"x" * MOST_BYTES)[400:])
    assert world.service.requests == [b"x" * MOST_BYTES]


def waits_for_memory(monkeypatch) -> tuple[World, Login, FakeLink, FakeLink, FakeLink]:
    """Somebody of whom a login was asked again, and whose next frame finds no memory."""
    monkeypatch.setattr(limits, "STRANGERS_BYTES", 1 << 20)
    world = World(Limits(max_queued_request_bytes=3 * ROOM))
    login = Login(world.service)
    other, first, link = FakeLink(), FakeLink(), FakeLink()
    for each, count in ((other, ROOM + 10), (first, ROOM), (link, 0)):
        world.connect(each, Terms(login))
        world.feed(each, LARGE[: min(count, 10_000)])
        world.feed(each, LARGE[10_000:count])
    assert world.memory.used == 4 * ROOM, "one of them may pass the limit"
    login.behind = Terms(world.service, 5 * ROOM, owed_replies=1, login_ms=LOGIN_MS)
    world.feed(link, frame(b"enter-later") + LARGE[:10_000])
    world.feed(link, LARGE[10_000:])
    assert not link.is_reading
    return world, login, other, first, link


def test_memory_that_changes_hands_is_not_taken_by_who_gives_it_back(monkeypatch):
    world, login, other, first, link = waits_for_memory(monkeypatch)
    strangers = world.deadlines.strangers_memory
    other.abort()
    assert not link.is_reading
    login.resolve_entry()
    world.turn()
    assert (world.memory.used, strangers.used) == (2 * ROOM, 2 * ROOM)
    link.abort()
    first.abort()
    assert len(world.ended) == 3
    assert (world.memory.used, strangers.used) == (0, 0)


def test_who_waits_for_memory_goes_on_where_there_is_some(monkeypatch):
    world, login, _, _, link = waits_for_memory(monkeypatch)
    login.resolve_entry()
    world.turn()
    assert link.is_reading
    world.feed(link, LARGE[ROOM:])
    assert world.service.requests == [LARGE[4:]]


def test_what_is_held_on_wide_terms_has_room_on_narrow_ones(monkeypatch):
    monkeypatch.setattr(limits, "STRANGERS_BYTES", 2_048)
    world, login, link = World(), Login(None), FakeLink()
    world.connect(link, Terms(login))
    login.behind = Terms(world.service, 10_000, owed_replies=1, login_ms=LOGIN_MS)
    world.feed(link, frame(b"enter-later") + frame(b"x" * 6_000)[:4_000])
    login.resolve_entry()
    world.turn()
    world.feed(link, frame(b"x" * 6_000)[4_000:])
    assert world.service.requests == [b"x" * 6_000]
    assert world.deadlines.strangers_memory.used == 0


def test_who_holds_memory_that_other_strangers_wait_for_is_cut_off(monkeypatch):
    monkeypatch.setattr(limits, "STRANGERS_BYTES", 4_096)
    world, _, login, _ = start()
    terms = Terms(login, 10_000, owed_replies=1, login_ms=LOGIN_MS)
    greedy, patient = [FakeLink(), FakeLink()], FakeLink()
    for link in greedy:  # the second may pass the limit, as one at a time may
        world.connect(link, terms)
        world.feed(link, frame(b"g" * 9_000)[:4_000])
    world.sweep(CROWDED_LOGIN_MS)
    assert not any(link.is_ended for link in greedy), "nobody waits"
    world.connect(patient, terms)
    taken = world.feed(patient, frame(b"p" * 9_000))
    assert taken < 2_000
    world.sweep()
    assert all(link.is_ended for link in greedy)
    assert not patient.is_ended
    assert "memory for logins was short" in login.expired_reasons[0]
    world.feed(patient, frame(b"p" * 9_000)[taken:])
    assert login.requests == [b"p" * 9_000]


def test_of_very_many_encrypted_strangers_the_first_are_cut_off(monkeypatch):
    monkeypatch.setattr(limits, "MOST_STRANGERS", 2)
    world, _, login, _ = start()
    links = [FakeLink() for _ in range(5)]
    world.connect(links[0], login.terms, SASL_SSL)
    world.feed(links[0], frame(b"later-0"))  # it is this side that lets it wait
    for link in links[1:]:
        world.connect(link, login.terms, SASL_SSL)
    for _ in range(100):
        world.connect(FakeLink(), login.terms, "SASL_PLAINTEXT")
    patience_ms = CROWDED_LOGIN_MS * 2 // 5
    world.sweep(patience_ms // SWEEP_MS * SWEEP_MS)
    assert not any(link.is_ended for link in links)
    world.sweep()
    assert [link.is_ended for link in links] == [False, True, True, True, False]
    assert login.expired_reasons == [
        f"it did not log in within {patience_ms} ms, and very many had not"
    ] * 3


def test_few_strangers_have_their_time(monkeypatch):
    monkeypatch.setattr(limits, "MOST_STRANGERS", 2)
    world, _, login, _ = start()
    links = [FakeLink(), FakeLink()]
    for link in links:
        world.connect(link, login.terms, SASL_SSL)
    world.sweep(LOGIN_MS - SWEEP_MS)
    assert not any(link.is_ended for link in links)


def test_a_second_login_waits_for_what_was_asked_before_it():
    world, link, login, connection = start()
    world.feed(link, frame(b"enter") + frame(b"later-1"))
    again = NewTerms([frame(b"again")], login.terms)
    login.behind, behind = Terms(world.service), world.service.answer
    world.service.answer = lambda frame_, info: (
        again if bytes(frame_) == b"handshake" else behind(frame_, info)
    )
    world.feed(link, frame(b"handshake") + frame(b"enter"))
    assert login.requests == [b"enter"]
    assert connection.info.principal == "User:somebody"
    world.service.resolve(b"later-1")
    world.turn()
    assert login.requests == [b"enter", b"enter"]
    assert link.replies() == [b"come in", b"later-1", b"again", b"come in"]


def test_narrower_terms_hold_for_a_frame_that_has_begun_to_come():
    world, link, login, _ = start()
    narrow = Terms(login, 10, owed_replies=1)
    world.feed(link, frame(b"enter-later") + frame(b"x" * 500)[:300])
    login.entry.resolve(NewTerms([frame(b"narrow")], narrow))
    world.turn()
    world.feed(link, frame(b"x" * 500)[300:])
    assert login.refused == [500]
    assert link.replies() == [b"narrow", b"refused"]


@given(
    bodies=st.lists(st.sampled_from([b"hello", b"later-x", b"", b"z" * 900]), max_size=6),
    after=st.lists(st.binary(max_size=3_000), max_size=4),
    entry=st.sampled_from([b"enter", b"enter-later"]),
    cuts=st.lists(st.integers(0, 12_000), max_size=12),
    chance=st.randoms(use_true_random=False),
)
def test_in_any_pieces_every_frame_is_answered_by_whose_it_is(bodies, after, entry, cuts, chance):
    before = [b"later-%d" % n if body == b"later-x" else body for n, body in enumerate(bodies)]
    behind = [b"b" + body for body in after]
    data = b"".join(map(frame, (*before, entry, *behind)))
    world, link, login, _ = start()
    points = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for left, right in pairwise(points):
        assert feed_and_resolve(world, link, login, data[left:right], chance) == right - left
    settle(world, login)
    assert login.requests == [*before, entry]
    assert world.service.requests == behind
    assert link.replies() == [*before, b"come in", *behind]
    assert world.memory.used == 0


def feed_and_resolve(world, link, login, data, chance: random.Random) -> int:
    """Sends all of it, resolving what is waited for, of which there is never more than one."""
    sent = 0
    while sent < len(data):
        count = world.feed(link, data[sent:], turns=chance.random() < 0.5)
        sent += count
        if not count:
            settle(world, login)
    return sent


def settle(world, login):
    world.turn()
    while login.laters or not login.entry.is_resolved:
        waiting = [*login.laters]
        assert len(waiting) + (not login.entry.is_resolved) == 1
        if waiting:
            login.resolve(waiting[0])
        else:
            login.resolve_entry()
        world.turn()
