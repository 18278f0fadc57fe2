"""The authorizer, rule by rule, and against one that goes over all rules for every question."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.env.slicing import LOOKS_PER_STEP, finish
from kafkalite.security import acl as rules
from kafkalite.security.acl import Acl, AclFilter, InvalidAcl, acl_of
from kafkalite.security.authorizer import (
    ALLOWED_BY,
    MOST_ANSWERS,
    NAMES_PER_STEP,
    Authorizer,
)
from kafkalite.security.beginnings import Beginnings
from kafkalite.security.denials import described

ALICE, HOST = "User:alice", "10.0.0.7"
OPERATIONS = (2, 3, 4, 6, 7, 8, 10, 11)
NAMES = ("*", "a", "ab", "abc", "b")


def authorizer_of(*texts: str, everybody: bool = False) -> Authorizer:
    made = Authorizer(["User:root"], allows_without_rules=everybody)
    for text in texts:
        made.add(acl_of(text))
    return made


def may_read(authorizer: Authorizer, name: str, who: str = ALICE, host: str = HOST) -> bool:
    return authorizer.may(who, host, rules.READ, rules.TOPIC, name)


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("User:alice read topic orders", "orders", True),
        ("User:alice read topic orders", "orders-2", False),
        ("User:alice read topic orders*", "orders-2", True),
        ("User:alice read topic *", "anything", True),
        ("User:* read topic orders", "orders", True),
        ("User:bob read topic orders", "orders", False),
        ("User:alice all topic orders", "orders", True),
        ("User:alice write topic orders", "orders", False),
        ("User:alice read group orders", "orders", False),
        ("User:alice read topic orders from 10.0.0.7", "orders", True),
        ("User:alice read topic orders from 10.0.0.8", "orders", False),
    ],
)
def test_a_rule_allows_what_it_names(text: str, name: str, expected: bool) -> None:
    assert may_read(authorizer_of(text), name) is expected


def test_what_forbids_counts_before_what_allows() -> None:
    authorizer = authorizer_of("User:alice read topic *", "deny User:* all topic secret-*")
    assert may_read(authorizer, "orders")
    assert not may_read(authorizer, "secret-plans")
    assert may_read(authorizer, "secret-plans", "User:root")


def test_reading_implies_describing_and_refusing_to_read_does_not() -> None:
    authorizer = authorizer_of("User:alice read topic a", "deny User:alice read topic a")
    assert authorizer.may(ALICE, HOST, rules.DESCRIBE, rules.TOPIC, "a")
    assert not may_read(authorizer, "a")


def test_everybody_may_where_no_rule_is_and_the_settings_say_so() -> None:
    authorizer = authorizer_of("User:bob read topic a", everybody=True)
    assert may_read(authorizer, "b")
    assert not may_read(authorizer, "a")


def test_an_answer_is_not_kept_longer_than_its_rules() -> None:
    authorizer = authorizer_of("User:alice read topic a*")
    assert may_read(authorizer, "abc")
    authorizer.remove(acl_of("User:alice read topic a*"))
    assert not may_read(authorizer, "abc")
    authorizer.add(acl_of("User:alice read topic abc"))
    assert may_read(authorizer, "abc")


def test_a_host_of_version_6_is_compared_as_java_writes_it() -> None:
    authorizer = authorizer_of("User:alice read topic a from 0:0:0:0:0:0:0:1")
    assert may_read(authorizer, "a", host="::1")
    assert not may_read(authorizer, "a", host="::2")
    authorizer = authorizer_of("User:alice read topic a from 10.0.0.7")
    assert may_read(authorizer, "a", host="::ffff:a00:7")


def test_a_refusal_is_told_once_until_rules_change_and_never_when_asked_quietly() -> None:
    told = []
    authorizer = authorizer_of()
    authorizer.on_denied = lambda *what: told.append(what)
    authorizer.may(ALICE, HOST, rules.READ, rules.TOPIC, "a", is_quiet=True)
    assert told == []
    may_read(authorizer, "a")
    may_read(authorizer, "a")
    assert told == [(ALICE, HOST, rules.READ, rules.TOPIC, "a")]
    authorizer.add(acl_of("User:bob read topic a"))
    may_read(authorizer, "a")
    assert len(told) == 2
    assert described(*told[0]) == (
        "User:alice at 10.0.0.7 may not READ topic a; kafka-acls --add --allow-principal User:alice"
        " --operation Read --topic a would allow it"
    )


def test_a_refusal_is_one_line_whatever_the_names_are() -> None:
    forged = "a\nINFO all is well\r\x1b[2K\u2028é"
    line = described(f"User:{forged}", HOST, rules.READ, rules.TOPIC, forged)
    assert line.isprintable()
    assert r"READ topic a\nINFO all is well\r\x1b[2K\u2028é;" in line


def test_memory_for_answers_is_bounded() -> None:
    authorizer = authorizer_of()
    for number in range(MOST_ANSWERS + 10):
        may_read(authorizer, f"t{number}")
    may_read(authorizer, "x" * 30_000)
    assert len(authorizer._answers) <= MOST_ANSWERS
    assert max(len(each[4] or "") for each in authorizer._answers) < 300


def test_ten_thousand_rules_are_as_fast_as_few() -> None:
    authorizer = authorizer_of()
    for number in range(10_000):
        authorizer.add(acl_of(f"User:u{number} read topic t{number}{'*' * (number % 2)}"))
    began = time.process_time()
    for number in range(1_000):
        may_read(authorizer, f"t{number}x")
    assert time.process_time() - began < 0.5


class Name(str):
    """One that counts how often it is compared, or copied."""

    __slots__ = ()
    looks = 0

    def __lt__(self, other: str) -> bool:
        Name.looks += 1
        return super().__lt__(other)

    def startswith(self, *found: Any) -> bool:
        Name.looks += 1
        return super().startswith(*found)

    def __getitem__(self, place: Any) -> str:
        Name.looks += 1
        return super().__getitem__(place)


@pytest.mark.parametrize("prefix", ["x" * 5, "x" * 4 + "A"], ids=["of it", "beside it"])
def test_a_long_name_beside_beginnings_of_all_lengths_is_as_fast_as_a_short_one(
    prefix: str,
) -> None:
    """Whoever asks for a group chooses its name."""
    authorizer = authorizer_of()
    for length in range(3_000):
        authorizer.add(acl_of(f"User:bob read group {'x' * length}{prefix}*"))
        authorizer.add(acl_of(f"User:alice write group {'x' * length}{prefix}*"))
    Name.looks = 0
    name = Name("x" * 32_000)
    assert not authorizer.may(ALICE, HOST, rules.READ, rules.GROUP, name)
    assert authorizer.may("User:bob", HOST, rules.READ, rules.GROUP, name) is ("A" not in prefix)
    assert Name.looks < 50


acls = st.builds(
    Acl,
    kind=st.sampled_from((rules.TOPIC, rules.GROUP)),
    name=st.sampled_from(NAMES),
    pattern=st.sampled_from((rules.LITERAL, rules.PREFIXED)),
    principal=st.sampled_from((ALICE, "User:bob", rules.EVERYBODY)),
    host=st.sampled_from((HOST, "10.0.0.8", "*")),
    operation=st.sampled_from(OPERATIONS),
    permission=st.sampled_from((rules.ALLOW, rules.DENY)),
)


def naive(found: list[Acl], operation: int, kind: int, name: str, everybody: bool) -> bool:
    """All rules, one after the other."""
    of_resource = [
        each for each in found
        if each.kind == kind and (
            (each.pattern == rules.PREFIXED and name.startswith(each.name))
            or (each.pattern == rules.LITERAL and each.name in (name, "*"))
        )
    ]  # fmt: skip
    mine = [
        each for each in of_resource
        if each.principal in (ALICE, rules.EVERYBODY) and each.host in (HOST, "*")
    ]  # fmt: skip
    if any(e.permission == rules.DENY and e.operation in (operation, rules.ALL) for e in mine):
        return False
    allowing = ALLOWED_BY.get(operation, (operation, rules.ALL))
    if any(each.permission == rules.ALLOW and each.operation in allowing for each in mine):
        return True
    return everybody and not of_resource


@given(st.lists(acls, max_size=12), st.lists(acls, max_size=6), st.booleans())
def test_it_answers_as_one_that_goes_over_all_rules(
    found: list[Acl], gone: list[Acl], everybody: bool
) -> None:
    authorizer = Authorizer(allows_without_rules=everybody)
    for each in [*gone, *found]:
        authorizer.add(each)
    for each in gone:
        authorizer.remove(each)
    left = [each for each in found if each not in gone]
    for kind in (rules.TOPIC, rules.GROUP):
        for operation in OPERATIONS[1:]:
            for name in ("a", "abcd", "c", "*"):
                expected = naive(left, operation, kind, name, everybody)
                assert authorizer.may(ALICE, HOST, operation, kind, name) is expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], False),
        (["User:alice write topic x"], True),
        (["User:alice write topic x", "deny User:alice write topic *"], False),
        (["User:alice write topic xyz", "deny User:alice write topic x*"], False),
        (["User:alice write topic xyz*", "deny User:alice write topic xyz"], True),
        (["User:alice write topic *", "deny User:alice write topic x*"], True),
    ],
)
def test_any_topic_to_write_to(texts: list[str], expected: bool) -> None:
    steps = authorizer_of(*texts).may_any(ALICE, HOST, rules.WRITE, rules.TOPIC)
    assert finish(steps) is expected


@pytest.mark.parametrize("sign", ["", "*"])
def test_whether_anything_is_left_of_thousands_is_found_out_in_steps(sign: str) -> None:
    authorizer = authorizer_of()
    for number in range(2_000):
        authorizer.add(acl_of(f"User:alice write topic t{number:05}{sign}"))
        authorizer.add(acl_of(f"deny User:* write topic t{number:05}{sign}"))
    steps = authorizer.may_any(ALICE, HOST, rules.WRITE, rules.TOPIC)
    assert len(list(steps)) >= 2_000 // NAMES_PER_STEP
    authorizer.add(acl_of(f"User:alice write topic u{sign}"))
    assert finish(authorizer.may_any(ALICE, HOST, rules.WRITE, rules.TOPIC))


@pytest.mark.parametrize(
    ("wanted", "text", "expected"),
    [
        (AclFilter(), "User:a read topic x", True),
        (AclFilter(name="x"), "User:a read topic x", True),
        (AclFilter(name="x"), "User:a read topic *", False),
        (AclFilter(name="xy", pattern=rules.MATCH), "User:a read topic *", True),
        (AclFilter(name="xy", pattern=rules.MATCH), "User:a read topic x*", True),
        (AclFilter(name="xy", pattern=rules.LITERAL), "User:a read topic xy*", False),
        (AclFilter(operation=rules.WRITE), "User:a read topic x", False),
        (AclFilter(kind=rules.UNKNOWN), "User:a read topic x", False),
        (AclFilter(host="h"), "User:a read topic x", False),
    ],
)
def test_a_filter_means_some_rules(wanted: AclFilter, text: str, expected: bool) -> None:
    assert wanted.matches(acl_of(text)) is expected


@pytest.mark.parametrize(
    "text", ["", "alice read topic x", "User:a fly topic x", "User:a read topic"]
)
def test_a_text_that_is_no_rule_says_why(text: str) -> None:
    with pytest.raises(InvalidAcl, match=r"access rule|belongs|names no"):
        acl_of(text)


@pytest.mark.parametrize("everybody", [False, True])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_beginning_of_thousands_comes_and_goes_in_steps_and_is_seen_at_once(
    everybody: bool, is_there: bool
) -> None:
    authorizer = authorizer_of(everybody=everybody)
    for number in range(0, 3_000, 2):
        authorizer.add(acl_of(f"User:alice read topic x{number:05}*"))
        authorizer.add(acl_of(f"User:alice read topic x{number:05}-*"))  # which one hides
    short = acl_of("User:alice read topic x*")
    if not is_there:
        authorizer.add(short)

    def is_seen() -> bool:
        who = "User:bob" if everybody else ALICE  # whom a rule for somebody else shuts out
        return may_read(authorizer, "x-other", who) is not everybody

    steps = 0
    for _ in authorizer.changing(short, is_there=is_there):
        steps += 1
        assert is_seen() is not is_there
        assert may_read(authorizer, "x00002-a")
    assert steps >= 3_000 // LOOKS_PER_STEP
    assert is_seen() is is_there
    assert may_read(authorizer, "x00002-a")


texts = st.text("ab", min_size=1, max_size=5)


@given(st.lists(texts, unique=True), st.data())
def test_beginnings_are_found_whatever_came_and_went(added: list[str], data: st.DataObject) -> None:
    beginnings, there = Beginnings(), set[str]()
    gone = data.draw(st.lists(st.sampled_from(added), unique=True)) if added else []
    for change, some in ((beginnings.adding, added), (beginnings.removing, gone)):
        for text in some:
            finish(change(text))()
            there ^= {text}
            assert all((each in beginnings) is (each in there) for each in added)
            for name in ("a", "ab", "bab", "aabab", "bbbbbb", ""):
                assert beginnings.begin(name) is name.startswith(tuple(there))
            shortest = {
                each for each in there if not each.startswith(tuple(there - {each}))
            }
            assert beginnings.shortest == sorted(shortest)
