"""Logins by a delegation token: its id and its HMAC in place of a user and a password."""

import random
from base64 import b64encode
from dataclasses import dataclass

import pytest

from kafkalite.env.background import InlineBackground, QueuedBackground
from kafkalite.env.later import Later
from kafkalite.security import delegation
from kafkalite.security.client_login import Login
from kafkalite.security.delegation import TokenLogins, token_hmac
from kafkalite.security.mechanisms import Challenge, LoggedIn, Refused
from kafkalite.security.scram import BY_NAME, ScramExchange

SECRET = "the-secret"


@dataclass
class Token:
    owner: str
    expiration_timestamp: int


TOKENS = {"an-id": Token("User:al:ice", 77), "other": Token("User:bob", 5)}


def logins(secret=SECRET, background=None):
    if background is None:
        background = InlineBackground()
    return TokenLogins(secret, TOKENS.get, background, random.Random(3))


def exchange(mechanism, tokens):
    scram = BY_NAME[mechanism]
    return ScramExchange(
        scram, lambda user: None, random.Random(1), b"s",
        lambda token_id: tokens.find(scram, token_id),
    )  # fmt: skip


def said_last(server, mechanism, token_id, password):
    """What comes of a login; the client's first message asks for it to be by a token."""
    first, go_on = Login(mechanism, token_id, password).begin(random.Random(7))
    # What a client proves covers the extension: it stands in the name for ours.
    name, _, nonce = first.decode().rpartition(",r=")
    client = go_on.__self__  # type: ignore[attr-defined]
    client._bare = f"{name[3:]},r={nonce},tokenauth=true"
    step = server.take(f"n,,{client._bare}".encode())
    step = step.value if isinstance(step, Later) else step
    if not isinstance(step, Challenge):
        return step
    return server.take(go_on(step.token))


def password(token_id, secret=SECRET):
    return b64encode(token_hmac(secret, token_id)).decode()


@pytest.mark.parametrize("mechanism", list(BY_NAME))
def test_it_lets_in_its_owner_for_as_long_as_it_holds(mechanism):
    server = exchange(mechanism, logins())
    step = said_last(server, mechanism, "an-id", password("an-id"))
    assert isinstance(step, LoggedIn)
    assert (step.user, step.expires_ms, step.is_by_token) == ("al:ice", 77, True)


@pytest.mark.parametrize("mechanism", list(BY_NAME))
@pytest.mark.parametrize("wrong", [password("other"), password("an-id", "guess"), "x"])
def test_a_guessed_proof_lets_nobody_in(mechanism, wrong):
    step = said_last(exchange(mechanism, logins()), mechanism, "an-id", wrong)
    assert step == Refused("Invalid client credentials", user="an-id")


@pytest.mark.parametrize("tokens", [logins(""), logins()])
def test_what_is_no_token(tokens):
    token_id = "an-id" if not tokens._secret else "no-such"
    step = said_last(exchange("SCRAM-SHA-256", tokens), "SCRAM-SHA-256", token_id, "x")
    assert step == Refused("there is no such delegation token", user=token_id)


def test_keys_are_made_by_a_worker_once_for_each_token_and_mechanism():
    background = QueuedBackground()
    tokens = logins(background=background)
    scram = BY_NAME["SCRAM-SHA-256"]
    first, again = tokens.find(scram, "an-id"), tokens.find(scram, "an-id")
    assert not first.is_resolved
    assert len(background) == 1
    background.run_all()
    assert first.value.credential is again.value.credential
    tokens.find(BY_NAME["SCRAM-SHA-512"], "an-id")
    tokens.find(scram, "other")
    assert len(background) == 2


def test_keys_that_cannot_be_made_end_the_wait_and_are_made_anew_the_next_time(monkeypatch):
    background = QueuedBackground()
    tokens, scram = logins(background=background), BY_NAME["SCRAM-SHA-256"]
    ends: list[object] = []
    tokens.find(scram, "an-id").then(ends.append, ends.append)
    with monkeypatch.context() as patched:
        patched.setattr(delegation, "password_of", lambda _: 1 / 0)
        background.run_all()
    assert [str(each) for each in ends] == ["no keys could be made of a delegation token"]
    again = tokens.find(scram, "an-id")
    background.run_all()
    assert again.value.credential.iterations == 4096


def test_who_waits_for_keys_at_a_stop_is_told():
    background = QueuedBackground()
    tokens = logins(background=background)
    ends: list[object] = []
    tokens.find(BY_NAME["SCRAM-SHA-256"], "an-id").then(ends.append, ends.append)
    tokens.stop(RuntimeError("the broker stops"))
    assert [str(each) for each in ends] == ["the broker stops"]
    background.run_all()
    assert len(ends) == 1


def test_keys_are_kept_of_so_many_tokens_and_no_more(monkeypatch):
    monkeypatch.setattr(delegation, "MOST_KEPT", 3)
    monkeypatch.setattr(delegation, "_keys", lambda *any: any)
    tokens = logins()
    for number in range(10):
        monkeypatch.setitem(TOKENS, str(number), Token("User:x", 1))
        tokens.find(BY_NAME["SCRAM-SHA-256"], str(number))
    assert len(tokens._keys) == 3


def test_the_last_word_on_how_it_logs_in_counts():
    tokens = logins()
    first = b"n,,n=an-id,r=abc,tokenauth=true,tokenauth=false"
    step = exchange("SCRAM-SHA-256", tokens).take(first)
    assert isinstance(step, Challenge), "a user of that name is asked for, as any is"
    assert tokens._keys == {}
