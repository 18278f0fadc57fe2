"""OAUTHBEARER: the one message, its confirmation when it is refused, and what is out of form."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.env.later import Later
from kafkalite.security.mechanisms import BrokenOff, Challenge, LoggedIn, Refused
from kafkalite.security.oauthbearer import Bearer, NotTaken, OauthExchange, Unreadable

GOOD = b"n,,\x01auth=Bearer good\x01\x01"


def check(token):
    if token == "none":
        return Unreadable("no token")
    if token == "later":
        return Later.of(Bearer("alice", 5))
    if token == "narrow":
        return NotTaken("narrow", "insufficient_scope", "[a]")
    return Bearer("alice", 5) if token.startswith("good") else NotTaken("it is bad")


def take(message):
    return OauthExchange(check).take(message)


@pytest.mark.parametrize(
    "message",
    [
        GOOD, b"n,a=alice,\x01auth=Bearer good\x01\x01", b"n,,\x01auth=bEARER  good==\x01\x01",
        b"n,,\x01a=b\x01auth=Bearer good\x01traceId=1 2\t=\x01\x01",
        b"n,,\x01auth=Bearer bad\x01auth=Bearer good\x01\x01",
    ],
)  # fmt: skip
def test_a_token_that_is_taken(message):
    assert take(message) == LoggedIn("alice", b"", 5)


def test_a_check_may_take_its_time():
    step = take(b"n,,\x01auth=Bearer later\x01\x01")
    assert isinstance(step, Later)
    assert step.value == LoggedIn("alice", b"", 5)


def test_a_token_that_is_not_taken_is_refused_when_that_was_heard():
    exchange = OauthExchange(check)
    told = '{"status":"invalid_token"}'
    assert exchange.take(b"n,,\x01auth=Bearer bad\x01\x01") == Challenge(told.encode())
    assert exchange.take(b"\x01") == Refused("it is bad", told=told)


def test_or_another_one_comes_in_its_place():
    exchange = OauthExchange(check)
    exchange.take(b"n,,\x01auth=Bearer bad\x01\x01")
    assert isinstance(exchange.take(GOOD), LoggedIn)
    assert isinstance(exchange.take(b"\x01"), Refused)


def test_what_is_missing_is_told():
    step = take(b"n,,\x01auth=Bearer narrow\x01\x01")
    assert step == Challenge(b'{"status":"insufficient_scope", "scope":"[a]"}')


def test_another_user_than_that_of_the_token():
    step = take(b"n,a=bob,\x01auth=Bearer good\x01\x01")
    assert isinstance(step, Refused)
    assert step.told == (
        "Authentication failed: Client requested an authorization id (bob) that is different from "
        "the token's principal name (alice)"
    )


def test_what_is_no_token_at_all_ends_the_connection():
    assert isinstance(take(b"n,,\x01auth=Bearer none\x01\x01"), BrokenOff)
    assert isinstance(take(b"n,,\x01auth=Basic good\x01\x01"), BrokenOff)


@pytest.mark.parametrize(
    "message",
    [
        b"", b"\x01", b"n", b"n,,", b"n,,\x01\x01", GOOD[:-1], GOOD + b"\x01", b"y" + GOOD[1:],
        b"n,a=,\x01auth=Bearer good\x01\x01", b"n,a=b=c,\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer go od\x01\x01", b"n,,\x01auth=Bearergood\x01\x01",
        b"n,,\x01Auth=Bearer good\x01\x01", b"n,,\x01a1=x\x01auth=Bearer good\x01\x01",
        b"n,,\x01a=\x01auth=Bearer good\x01\x01", b"n,,\x01a=\xff\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer good=x\x01\x01", b"p=tls,,\x01auth=Bearer good\x01\x01",
        b"\0alice\0secret",
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused_without_more_words(message):
    step = take(message)
    assert isinstance(step, Refused)
    assert step.told is None


@given(st.binary(max_size=80))
def test_anything_is_answered(message):
    assert isinstance(take(message), Refused | LoggedIn)


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        (b"n,,\x01" + b"a=b\x01" * 100_000, Refused),
        (b"n,a=" + b"\x01" * 500_000, Refused),
        (b"n,,\x01auth=Bearer good" + b"a" * 500_000 + b"\x01\x01", LoggedIn),
        (b"n,,\x01" + b"a" * 500_000, Refused),
        (b"n,,\x01a=" + b"b" * 500_000 + b"\x01auth=Bearer good\x01\x01", LoggedIn),
        (b"n,a=" + b"b" * 500_000 + b",\x01auth=Bearer good\x01\x01", Refused),
    ],
    ids=["pairs", "a name", "a token", "a key", "a value", "another name"],
)  # fmt: skip
def test_one_as_long_as_a_request_takes_no_turn_of_the_loop(message, outcome):
    spent_s = []
    for _ in range(5):
        began = time.process_time()
        assert isinstance(take(message), outcome)
        spent_s.append(time.process_time() - began)
    assert min(spent_s) < 0.01


def test_a_token_is_in_no_words():
    for message in (b"n,,\x01auth=Basic secret\x01\x01", b"n,,\x01auth=Bearer se cret\x01\x01"):
        step = take(message)
        assert "cret" not in repr(step)


def test_many_pairs_hold_nobody_up():
    def spent_s(pairs: int, outcome: type) -> float:
        message = b"n,,\x01" + b"a=x\x01" * pairs + b"auth=Bearer good\x01\x01"
        begun = time.perf_counter()
        assert isinstance(take(message), outcome)
        return time.perf_counter() - begun

    assert min(spent_s(130_000, Refused) for _ in range(5)) < 0.008
    assert min(spent_s(2_000, Refused) for _ in range(5)) < 0.008
    assert min(spent_s(900, LoggedIn) for _ in range(5)) < 0.008
