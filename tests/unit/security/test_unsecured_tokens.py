"""Unsecured tokens: taken as Apache Kafka takes them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.security.oauthbearer import Bearer, NotTaken, Unreadable
from kafkalite.security.unsecured_tokens import UnsecuredRules, UnsecuredTokens
from tests.unit.security.signing import NOW_S, claims, part, unsecured

NONE = part({"alg": "none"})


def check(token, **rules):
    return UnsecuredTokens(UnsecuredRules(**rules), lambda: NOW_S * 1000).check(token)


def said(rules=None, **more):
    return check(unsecured(claims(**more)), **(rules or {}))


def test_who_it_names_is_let_in_until_it_expires():
    assert said() == Bearer("alice", (NOW_S + 3_600) * 1000)
    assert said(exp=NOW_S + 1.2345) == Bearer("alice", NOW_S * 1000 + 1_235)
    assert isinstance(said(exp=1e300), Unreadable), "as with Apache Kafka, which cannot count that"


@pytest.mark.parametrize(
    ("rules", "more"),
    [
        ({}, {"iat": None}), ({"skew_ms": 1_000}, {"exp": NOW_S - 0.5, "iat": None}),
        ({"skew_ms": 1_000}, {"iat": NOW_S + 1}), ({"user_claim": "name"}, {"name": "alice"}),
        ({"needed_scope": ("a", "b")}, {"scope": ["b", " a", "c"]}),
        ({"needed_scope": ("a",)}, {"scope": " a "}),
        ({"needed_scope": ("a",), "scope_claim": "scp"}, {"scp": ["a"]}),
        ({}, {"scope": {"is": "text"}}),
    ],
)  # fmt: skip
def test_what_is_taken(rules, more):
    assert isinstance(said(rules, **more), Bearer)


@pytest.mark.parametrize(
    "more",
    [
        {"sub": None}, {"sub": ""}, {"sub": " "}, {"sub": 5}, {"sub": ["a"]}, {"exp": None},
        {"exp": "1"}, {"exp": NOW_S}, {"iat": NOW_S + 1}, {"iat": "x"}, {"scope": 5},
        {"exp": 10**400},
    ],
)  # fmt: skip
def test_what_is_not(more):
    found = said(**more)
    assert isinstance(found, NotTaken), found
    assert (found.status, found.scope) == ("invalid_token", None)


def test_a_scope_that_lacks_something_is_told():
    found = said({"needed_scope": ("a", "b")}, scope="a")
    assert isinstance(found, NotTaken)
    assert (found.status, found.scope) == ("insufficient_scope", "[a, b]")


@pytest.mark.parametrize("value", [True, False, None])
def test_other_values_count_as_text(value):
    found = check(f"{NONE}.{part({**claims(), 'sub': value})}.")
    assert found.user == {True: "true", False: "false", None: "null"}[value]


@pytest.mark.parametrize(
    "token",
    [
        "", "a", "a.b", "a..b", f"{NONE}..", f"{NONE}.{part({})}", f"{NONE}.{part({})}.x",
        f"{NONE}.{part({})}.x.y", f"?.{part({})}.", f"{NONE}.?.", f"{part(b'no')}.{part({})}.",
        f"{part({'alg': 'RS256'})}.{part(claims())}.", f"{NONE}.{part(claims())}=.",
    ],
)  # fmt: skip
def test_what_is_no_token(token):
    assert isinstance(check(token), NotTaken)


@pytest.mark.parametrize("header", [{}, [], 5, b""])
def test_one_that_says_nothing_of_its_algorithm_ends_the_connection(header):
    assert isinstance(check(f"{part(header)}.{part(claims())}."), Unreadable if header != b""
                      else NotTaken | Unreadable)  # fmt: skip


def test_a_name_that_is_there_twice_has_its_last_value():
    twice = json.dumps(claims())[:-1].encode() + b', "sub": "bob"} behind'
    assert check(f"{NONE}.{part(twice)}.").user == "bob"


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_anything_is_answered(header, payload):
    check(f"{part(header)}.{part(payload)}.")


def test_a_huge_token_is_read():
    assert isinstance(check(f"{NONE}.{part({**claims(), 'more': [0] * 100_000})}."), Bearer)


def test_a_name_that_no_message_can_hold_is_nobodys():
    assert isinstance(said(sub="alice\udfff"), NotTaken)
