"""Signed tokens: which are taken, and of whom. What is refused quotes nothing of a token."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.security.key_sets import read_keys
from kafkalite.security.oauthbearer import Bearer, NotTaken, Unreadable
from kafkalite.security.signed_tokens import SignedRules, UnknownKey, checked
from kafkalite.security.token_parts import MalformedPart
from tests.unit.security.signing import (
    NOW_S,
    claims,
    ec_key,
    key_set,
    part,
    public,
    rsa_key,
    signed,
)

KEY = rsa_key("one")
KEYS = read_keys(key_set(public(KEY, "one", use="sig"), public(rsa_key("two"), "two")))
RULES = SignedRules(audience=("kafka", "spare"), issuer="https://issuer", skew_s=30)
OURS: dict[str, Any] = {"aud": "kafka", "iss": "https://issuer"}


def check(token, rules=RULES, keys=KEYS, now_s=NOW_S):
    return checked(token, keys, rules, now_s * 1000 + 999)


def taken(rules=RULES, now_s=NOW_S, **said):
    return check(signed(claims(**{**OURS, **said}), KEY), rules, now_s=now_s)


def test_who_it_names_is_let_in_until_it_expires():
    assert taken() == Bearer("alice", (NOW_S + 3_600) * 1000)


@pytest.mark.parametrize(
    "said",
    [
        {"aud": ["other", "spare"]}, {"sub": "  alice "}, {"scope": "read write"},
        {"scope": ["read", "write"]}, {"scope": 5}, {"scope": []}, {"exp": NOW_S - 29, "iat": 1},
        {"exp": NOW_S + 0.7}, {"iat": NOW_S + 100}, {"nbf": NOW_S + 30}, {"nbf": NOW_S},
        {"jti": "x"}, {"anything": {"else": [1, None]}},
    ],
)  # fmt: skip
def test_what_is_taken(said):
    found = taken(**said)
    assert isinstance(found, Bearer), found
    assert found.user == "alice"


@pytest.mark.parametrize(
    "said",
    [
        {"aud": None}, {"aud": "other"}, {"aud": []}, {"aud": ["other"]}, {"aud": 5},
        {"aud": ["kafka", 5]}, {"iss": None}, {"iss": "https://other"}, {"iss": 5},
        {"exp": None}, {"exp": NOW_S - 30}, {"exp": "soon"}, {"exp": True}, {"exp": -1},
        {"exp": 2**63}, {"exp": 1e300}, {"exp": [1]}, {"iat": None}, {"iat": "now"}, {"iat": -1},
        {"iat": NOW_S + 3_601}, {"nbf": NOW_S + 31}, {"nbf": NOW_S + 4_000}, {"nbf": "x"},
        {"sub": None}, {"sub": ""}, {"sub": " "}, {"sub": 5}, {"sub": ["alice"]},
        {"scope": ""}, {"scope": ["a", "a"]}, {"scope": ["a", " a "]}, {"scope": ["a", 5]},
        {"jti": 5},
    ],
)  # fmt: skip
def test_what_is_not(said):
    found = taken(**said)
    assert isinstance(found, NotTaken), found
    assert (found.status, found.scope) == ("invalid_token", None)


def test_without_an_audience_of_ours_a_token_is_for_nobody():
    rules = SignedRules()
    assert isinstance(taken(rules, aud=None, iss=None), Bearer)
    assert isinstance(taken(rules, aud=None, iss="https://any"), Bearer)
    assert isinstance(taken(rules), NotTaken), "as with Apache Kafka"


def test_names_of_claims_are_chosen():
    rules = SignedRules(user_claim="upn", scope_claim="scp")
    found = taken(rules, aud=None, upn="bob", scope="", scp="a")
    assert isinstance(found, Bearer)
    assert found.user == "bob"
    assert isinstance(taken(rules, aud=None), NotTaken)
    assert isinstance(taken(rules, aud=None, upn="bob", scp=""), NotTaken)
    assert isinstance(taken(rules, aud=None, upn="bob", sub=5), NotTaken), "it is to be a text"


def test_one_that_holds_for_ever_ends_the_connection():
    """As with Apache Kafka, which cannot count the time that is left."""
    assert isinstance(taken(exp=2**50), Unreadable)
    assert isinstance(taken(exp=NOW_S + 9_000_000_000), Bearer)


# --- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
def test_algorithms_of_rsa(algorithm):
    token = signed(claims(**OURS), KEY, algorithm=algorithm)
    assert isinstance(check(token), Bearer)


@pytest.mark.parametrize(
    ("algorithm", "curve"), [("ES256", "P-256"), ("ES384", "P-384"), ("ES512", "P-521")]
)
def test_algorithms_of_curves(algorithm, curve):
    key = ec_key("one", curve)
    others = [public(ec_key("other", each), "one") for each in ("P-256", "P-384", "P-521")]
    token = signed(claims(**OURS), key, algorithm=algorithm)
    keys = read_keys(key_set(public(key, "one"), *others))
    assert isinstance(check(token, keys=keys), Bearer)
    assert isinstance(check(token, keys=read_keys(key_set(*others))), NotTaken)


def test_of_another_key():
    for key_id in ("one", "two"):
        found = check(signed(claims(**OURS), rsa_key("stranger"), key_id))
        assert isinstance(found, NotTaken)
        assert not isinstance(found, UnknownKey)


def test_of_a_key_that_is_not_known():
    found = check(signed(claims(**OURS), KEY, "three"))
    assert isinstance(found, UnknownKey)
    assert found.key_id == "three"
    assert isinstance(check(signed(claims(**OURS), KEY), keys=()), UnknownKey)


def test_without_a_name_the_first_fitting_key_is_meant():
    token = signed(claims(**OURS), KEY, None)
    assert isinstance(check(token), Bearer)
    assert isinstance(check(token, keys=KEYS[::-1]), NotTaken)
    alike = [public(rsa_key("two"), alg="RS512"), public(KEY, alg="RS256")]
    assert isinstance(check(token, keys=read_keys(key_set(*alike))), Bearer)


def test_a_key_for_something_else_is_none():
    keys = read_keys(key_set(public(KEY, "one", use="enc")))
    assert isinstance(check(signed(claims(**OURS), KEY), keys=keys), UnknownKey)


def test_strange_keys_spoil_no_other():
    strange: list[dict[str, Any]] = [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "one"}, {"kty": "RSA", "kid": "one"},
        {"kty": "RSA", "n": "?", "e": "AQAB"}, {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}, {"kty": "EC", "crv": "secp256k1"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AA"}, {"kty": 5}, {}, {"n": None},
        {"kty": "RSA", "n": part(b"\x7f" + bytes(255)), "e": "AQAB", "kid": "one"},
    ]  # fmt: skip
    keys = read_keys(key_set(*strange, public(KEY, "one")))
    assert [each.kind for each in keys] == ["RSA"]
    assert isinstance(check(signed(claims(**OURS), KEY), keys=keys), Bearer)


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b'{"keys": {}}', b"<html>", b"\xff", b'{"keys":[],"keys":[]}',
     b"[" * 100_000, b'{"keys": [NaN]}'],
)  # fmt: skip
def test_what_is_no_set_of_keys(data):
    with pytest.raises(MalformedPart):
        read_keys(data)


# --- what is no token of ours ---------------------------------------------------------------------


def _none(**said):
    return f"{part({'alg': 'none'})}.{part(claims(**OURS, **said))}."


@pytest.mark.parametrize(
    "token",
    [
        "", ".", "..", "a.b", "a.b.c.d", "a.b.c", "=.=.=", _none(), _none() + "x",
        f"{part({'alg': 'HS256', 'kid': 'one'})}.{part(claims(**OURS))}.AAAA",
        f"{part({'alg': 'EdDSA'})}.{part(claims(**OURS))}.AAAA", f"{part({})}.{part({})}.AAAA",
        f"{part([])}.{part({})}.AAAA", f"{part({'alg': ['RS256']})}.{part({})}.AAAA",
        f"{part({'alg': 'RS256', 'kid': 5})}.{part({})}.AAAA", f"{part(b'[' * 9_000)}.e30.AAAA",
        f"{part({'alg': 'RS256', 'x': 'y' * 20_000})}.e30.AAAA",
        signed(b"[]", KEY), signed(b"\xff", KEY), signed(b'{"sub":"a","sub":"b"}', KEY),
        signed(b"{" * 50_000, KEY), signed(claims(**OURS), KEY) + ".",
        signed(claims(**OURS), KEY)[:-4] + "AAAA", signed(claims(**OURS), KEY) + "AAAA",
    ],
)  # fmt: skip
def test_what_is_no_token(token):
    assert isinstance(check(token), NotTaken)


def test_what_is_critical_and_unknown_is_not_passed_over():
    head = {"alg": "RS256", "kid": "one", "crit": ["exp"], "exp": 1}
    token = f"{part(head)}.{part(claims(**OURS))}.AAAA"
    assert isinstance(check(token), NotTaken)


def test_other_words_of_a_header_are():
    assert isinstance(check(signed(claims(**OURS), KEY, nonce="n", typ="at+jwt")), Bearer)


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60))
def test_nothing_else_comes_of_anything(header, payload, signature):
    found = check(".".join(map(part, (header, payload, signature))))
    assert isinstance(found, NotTaken)


def test_a_large_one_takes_no_time():
    head = part({"alg": "RS256", "kid": "one"})
    token = f"{head}.{'A' * 400_000}.{'A' * 342}"
    began = time.process_time()
    assert isinstance(check(token), NotTaken)
    assert time.process_time() - began < 0.05


def test_no_reason_quotes_what_a_token_says():
    token = signed(claims(**{**OURS, "sub": "secret-name", "aud": "secret-audience"}), KEY)
    found = check(token)
    assert isinstance(found, NotTaken)
    assert "secret" not in found.why
    assert token.split(".")[2] not in repr(found)


def test_a_name_that_no_message_can_hold_is_nobodys():
    found = taken(sub="\ud800")
    assert isinstance(found, NotTaken)
    assert "half of a character" in found.why
