"""AlterUserScramCredentials: what is stored proves a password without holding it (RFC 5802)."""

import base64
import hashlib

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AlterUserScramCredentialsRequest

Request = AlterUserScramCredentialsRequest
SHA_256, SHA_512 = 1, 2


def upsert(name, mechanism=SHA_256, iterations=4096, salted=b"p" * 32):
    return Request.Upsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
    )


def alter(world, *upsertions, deletions=()):
    request = Request(
        upsertions=list(upsertions),
        deletions=[Request.Deletion(name=name, mechanism=kind) for name, kind in deletions],
    )
    return {each.user: each.error_code for each in world.ask(request, 0).results}


def test_stores_the_keys_of_the_rfcs_example(world):
    """User `user` with password `pencil`: the exchange of RFC 7677, section 3."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    assert alter(world, upsert("user", salted=salted)) == {"user": Error.NONE}
    record = world.metadata.image.scram["user", SHA_256]
    assert base64.b64encode(record.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert base64.b64encode(record.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    assert salted not in (record.stored_key, record.server_key)


@pytest.mark.parametrize(
    ("upsertion", "code"),
    [
        (upsert(""), Error.UNACCEPTABLE_CREDENTIAL),
        (upsert("u", iterations=4095), Error.UNACCEPTABLE_CREDENTIAL),
        (upsert("u", iterations=16385), Error.UNACCEPTABLE_CREDENTIAL),
        (upsert("u", mechanism=7), Error.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_refuses_as_kafka_does(world, upsertion, code):
    assert alter(world, upsertion) == {upsertion.name: code}
    assert world.metadata.image.scram == {}


def test_removes_and_replaces(world):
    alter(world, upsert("u"), upsert("v", SHA_512))
    assert alter(world, upsert("v", SHA_512, 5000), deletions=[("u", SHA_256)]) == {
        "u": Error.NONE,
        "v": Error.NONE,
    }
    assert [(key, each.iterations) for key, each in world.metadata.image.scram.items()] == [
        (("v", SHA_512), 5000)
    ]
    assert alter(world, deletions=[("u", SHA_256)]) == {"u": Error.RESOURCE_NOT_FOUND}


def test_a_user_twice_in_a_request_is_left_as_it_was(world):
    assert alter(world, upsert("u"), upsert("u", SHA_512), upsert("v")) == {
        "u": Error.DUPLICATE_RESOURCE,
        "v": Error.NONE,
    }
    assert set(world.metadata.image.scram) == {("v", SHA_256)}
