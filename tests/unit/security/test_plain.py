"""PLAIN: one token, with Kafka's sentences for each way in which it may be wrong."""

import pytest

from kafkalite.security.mechanisms import LoggedIn, Refused
from kafkalite.security.plain import PlainExchange, plain_token

USERS = {"alice": "secret", "ünï": "pässwörd", "": "nobody"}


def take(token):
    return PlainExchange(USERS).take(token)


@pytest.mark.parametrize(
    ("token", "user"),
    [
        (b"\0alice\0secret", "alice"),
        (b"alice\0alice\0secret", "alice"),
        ("\0ünï\0pässwörd".encode(), "ünï"),
        (plain_token("alice", "secret"), "alice"),
    ],
)
def test_who_knows_the_password_is_let_in(token, user):
    assert take(token) == LoggedIn(user)


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0" * 1_000, "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0alice\0secre", "Authentication failed: Invalid username or password"),
        (b"\0ALICE\0secret", "Authentication failed: Invalid username or password"),
        (b"\0bob\0secret", "Authentication failed: Invalid username or password"),
        (b"\0\xff\xfe\0\xff", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different "
            "from username",
        ),
    ],
)
def test_who_is_refused_is_told_what_apache_kafka_tells(token, told):
    step = take(token)
    assert isinstance(step, Refused)
    assert step.told == told
    assert "secret" not in repr(step)


def test_nobody_logs_in_with_what_stands_for_no_password():
    assert isinstance(take(b"\0bob\0\0"), Refused)


def test_an_enormous_name_costs_nothing_but_its_bytes():
    assert isinstance(take(b"\0" + b"x" * 500_000 + b"\0" + b"y" * 20), Refused)
