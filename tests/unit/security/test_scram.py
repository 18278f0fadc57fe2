"""SCRAM: the RFC's own example, whatever else may come, and what nobody learns from it."""

import random
import time
import tracemalloc
from base64 import b64decode, b64encode
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.security.client_login import Login, LoginFailed
from kafkalite.security.mechanisms import (
    SCRAM_256,
    SCRAM_512,
    BrokenOff,
    Challenge,
    LoggedIn,
    Refused,
)
from kafkalite.security.scram import BY_NAME, MIN_ITERATIONS, ScramExchange, in_base_36

SALT = b"salt of a user"


def credential(scram, password="pencil", iterations=MIN_ITERATIONS, salt=SALT):
    stored, server = scram.keys(scram.salted(password, salt, iterations))
    return SimpleNamespace(salt=salt, stored_key=stored, server_key=server, iterations=iterations)


USERS = {
    name: {
        "user": credential(scram),
        "a,b=c": credential(scram),
        "weak": credential(scram, iterations=10),
    }
    for name, scram in BY_NAME.items()
}


def exchange(name=SCRAM_256, seed=1, secret=b"secret of the broker"):
    return ScramExchange(
        BY_NAME[name], USERS[name].get, random.Random(seed), secret, lambda token_id: None
    )


class Speaker:
    """A client that may say something else than it should."""

    def __init__(self, user="user", password="pencil", name=SCRAM_256, exchange_=None):
        self.server = exchange_ or exchange(name)
        self.first, self.go_on = Login(name, user, password).begin(random.Random(7))

    def last(self, first=None):
        step = self.server.take(first or self.first)
        assert isinstance(step, Challenge), step
        return self.go_on(step.token)




@pytest.mark.parametrize("name", [SCRAM_256, SCRAM_512])
@pytest.mark.parametrize("user", ["user", "a,b=c"])
def test_who_knows_the_password_is_let_in_and_learns_that_the_broker_knows_it(name, user):
    speaker = Speaker(user, name=name)
    step = speaker.server.take(speaker.last())
    assert isinstance(step, LoggedIn)
    assert step.user == user
    assert speaker.go_on(step.token) is None


def test_the_keys_are_those_of_the_rfcs_example():
    scram = BY_NAME[SCRAM_256]
    salted = scram.salted("pencil", b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
    stored, server = scram.keys(salted)
    assert b64encode(stored) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert b64encode(server) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="


def test_a_broker_that_does_not_know_the_password_is_found_out():
    speaker = Speaker()
    speaker.last()
    with pytest.raises(LoginFailed, match="does not know the password"):
        speaker.go_on(b"v=" + b64encode(b"x" * 32))


@pytest.mark.parametrize(
    "challenge",
    [
        b"", b"r=x,s=,i=4096", b"\xff", b"e=other-error",
        b"r=NONCE,s=c2FsdA==,i=1", b"r=NONCE,s=c2FsdA==,i=4095",
        b"r=NONCE,s=c2FsdA==,i=1000000000", b"r=NONCE,s=c2FsdA==,i=" + b"9" * 5_000,
        b"r=NONCE,s=c2FsdA==,i=0000" + b"2" * 12, b"r=NONCE,s=c2Fsd,i=4096",
        "r=NONCE,s=c2FsdA==,i=²".encode(),
    ],
)  # fmt: skip
def test_a_client_does_not_work_for_whoever_asks(challenge):
    first, go_on = Login(SCRAM_256, "user", "pencil").begin(random.Random(7))
    nonce = first.partition(b",r=")[2]
    with pytest.raises(LoginFailed):
        go_on(challenge.replace(b"NONCE", nonce + b"more"))


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first",
    [
        b"", b",", b"n", b"n,,", b"n,,n=user", b"n,,r=abc", b"n,,n=,r=abc", b"n,,n=user,r=",
        b"y,,n=user,r=abc", b"p=tls-unique,,n=user,r=abc", b"n,b=x,n=user,r=abc",
        b"n,a=,n=user,r=abc", b"n,,r=abc,n=user", b"n,,n=us=er,r=abc", b"n,,n=user=2,r=abc",
        b"n,,n=user,r=a b", b"n,,n=user,r=abc,x", b"n,,n=user,r=abc,1=2", b"n,,n=user,r=abc,x=",
        b"n,,m=,n=user,r=abc", "n,,n=ünï,r=abc".encode(), "n,,n=ﬁne,r=abc".encode(),
        b"n,,n=us\0er,r=abc", b"\xff\xfe", b"\x60\x82\x01\x00", b"n,,n=weak,r=abc",
        b"n,,n=user,r=abc,tokenauth=true", b"n,,n=user,r=abc,x=1,tokenauth=TRUE",
    ],
)  # fmt: skip
def test_a_first_message_that_is_none_is_refused_without_more_words(first):
    step = exchange().take(first)
    assert isinstance(step, Refused)
    assert step.told is None


@pytest.mark.parametrize(
    "first",
    [b"n,,n=user,r=abc", b"n,a=user,n=user,r=abc", b"n,,m=x,n=user,r=abc",
     b"n,,n=user,r=abc,x=1,y=a=b", b"n,,n=user,r=abc,tokenauth=false"],
)  # fmt: skip
def test_what_is_odd_and_allowed_gets_a_challenge(first):
    assert isinstance(exchange().take(first), Challenge)


def test_another_authorization_id_is_told_of():
    step = exchange().take(b"n,a=root,n=user,r=abc")
    assert isinstance(step, Refused)
    assert step.told is not None
    assert "authorization id" in step.told


@pytest.mark.parametrize(
    "change",
    [
        lambda last: b"",
        lambda last: last[:-4] + b"AAA=",
        lambda last: last.replace(b"c=biws", b"c=eSws"),  # another channel binding
        lambda last: last.replace(b",r=", b",r=x"),
        lambda last: last.replace(b",p=", b"x,p="),
        lambda last: last.partition(b",p=")[0],
        lambda last: last.replace(b"c=", b"d="),
        lambda last: last + b",x=1",
        lambda last: last.replace(b",p=", b",1=x,p="),
        lambda last: b"\xff" + last,
    ],
)
def test_a_last_message_that_is_not_right_is_refused_without_more_words(change):
    speaker = Speaker()
    step = speaker.server.take(change(speaker.last()))
    assert isinstance(step, Refused)
    assert step.told is None
    assert step.user == "user"


def test_a_proof_of_another_length_breaks_off():
    speaker = Speaker()
    last = speaker.last().partition(b",p=")[0] + b",p=" + b64encode(b"x" * 20)
    assert isinstance(speaker.server.take(last), BrokenOff)


def test_what_was_proved_once_proves_nothing_again():
    speaker = Speaker()
    last = speaker.last()
    assert isinstance(speaker.server.take(last), LoggedIn)
    again = exchange(seed=2)
    assert isinstance(again.take(speaker.first), Challenge)
    assert isinstance(again.take(last), Refused)


def test_a_nonce_that_is_there_twice_is_known_by_who_sends_it():
    speaker = Speaker()
    step = speaker.server.take(speaker.first)
    nonce = step.token.partition(b",")[0][2:]
    doubled = speaker.first.partition(b",r=")[2] + nonce
    refused = speaker.server.take(b"c=biws,r=" + doubled + b",p=" + b64encode(b"x" * 32))
    assert isinstance(refused, Refused)
    assert "librdkafka before 2.6.1" in refused.why
    assert refused.told is None


def test_who_has_no_account_is_not_told_so():
    """A challenge as anybody gets one, the same each time, and the same refusal."""
    found = []
    for seed in (1, 2):
        speaker = Speaker("nobody", exchange_=exchange(seed=seed))
        challenge = speaker.server.take(speaker.first)
        assert isinstance(challenge, Challenge)
        found.append(challenge.token.partition(b",")[2])
        step = speaker.server.take(speaker.go_on(challenge.token))
        assert isinstance(step, Refused)
        assert (step.told, step.user) == (None, "nobody")
    assert found[0] == found[1]
    other = exchange().take(b"n,,n=somebody,r=abc")
    assert isinstance(other, Challenge)
    assert other.token.partition(b",")[2] != found[0]


@pytest.mark.parametrize("size", [1_000, 130_000])
def test_enormous_names_and_nonces_take_their_bytes_and_no_more(size):
    for first in (
        b"n,,n=" + b"x" * size + b",r=abc",
        b"n,,n=user,r=" + b"x" * size,
        b"n,,n=user,r=abc,x=" + b"1" * size,
        b"n,,n=" + b"=2C" * (size // 3) + b",r=abc",
    ):
        assert isinstance(exchange().take(first), Challenge)


@pytest.mark.parametrize(("count", "taken"), [(900, True), (1_000, False), (100_000, False)])
def test_each_extension_takes_time_and_there_are_only_so_many(count, taken):
    """Whoever connects may send them, before any password: the loop has no time for 100,000."""
    extensions = ",a=b" * count
    first = exchange().take(f"n,,n=user,r=abc{extensions}".encode())
    assert isinstance(first, Challenge) is taken
    speaker = Speaker()
    last = speaker.last().replace(b",p=", f"{extensions},p=".encode())
    assert isinstance(speaker.server.take(last), LoggedIn) is taken


HALF_A_MEGABYTE = 500_000  # as much as a request of a login may have


def test_a_message_may_be_as_long_as_a_request():
    for size in (100_000, HALF_A_MEGABYTE):
        first = exchange().take(f"n,,n=user,r=abc,a={'b' * size}".encode())
        assert isinstance(first, Challenge)
        speaker = Speaker()
        last = speaker.last().replace(b",p=", f",a={'b' * size},p=".encode())
        assert isinstance(speaker.server.take(last), LoggedIn)


@pytest.mark.parametrize("first", ["n,,n={},r=abc", "n,,n=user,r={}", "n,,n=user,r=abc,a={}"])
def test_a_long_message_takes_no_turn_of_the_loop(first):
    token = first.format("b" * HALF_A_MEGABYTE).encode()
    spent_s = []
    for _ in range(5):
        began = time.process_time()
        assert isinstance(exchange().take(token), Challenge)
        spent_s.append(time.process_time() - began)
    assert min(spent_s) < 0.01


@pytest.mark.parametrize("first", ["n,,n={},r=abc", "n,,n=user,r={}", "n,,n=user,r=abc,a={}"])
def test_of_a_long_message_little_is_kept(first):
    """Whoever connects may send one, and never the next."""
    server = exchange()
    tracemalloc.start()
    try:
        assert isinstance(server.take(first.format("b" * HALF_A_MEGABYTE).encode()), Challenge)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 20_000


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_no_bytes_let_anybody_in(first, last):
    for before in (first, b"n,,n=user,r=abc"):
        server = exchange()
        if isinstance(server.take(before), Challenge):
            assert isinstance(server.take(last), Refused | BrokenOff)


@given(st.integers(0, 1 << 140))
def test_numbers_are_written_as_java_writes_them(number):
    assert int(in_base_36(number), 36) == number


def test_nothing_that_is_shown_is_secret():
    speaker = Speaker()
    login = Login(SCRAM_256, "user", "hunter2")
    step = speaker.server.take(speaker.last())
    assert "hunter2" not in repr(login)
    assert "v=" not in repr(step)
