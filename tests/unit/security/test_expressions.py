"""Expressions in bounded time, beside Python's own."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.security.expressions import Expression, Steps, TooLong
from kafkalite.security.principals import MOST_STEPS, NoRule, PrincipalMapper

ATOMS = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", r"\w", r"\.", r"[\]a]", "^", "$", r"\b", "(?=a)", "(?!b)",
     "(?<=a)", "(?i:A)", r"\x61"]
)  # fmt: skip
COUNTS = st.sampled_from(["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,}", "{0,2}?"])


# Where what is repeated may be nothing each has its own mind of what its group was last.
REPEATS_NOTHING = re.compile(r"([*+?}]|\(\?<?[=!]\w\)|[$^]|\\b)\)+[*+{]").search


def grown(inner: Any) -> Any:
    kinds = st.sampled_from(["({})", "(?:{})", "(?>{})"])
    group = st.builds(lambda kind, text, count: kind.format(text) + count, kinds, inner, COUNTS)
    branches = st.builds(lambda one, other: f"(?:{one}|{other})", inner, inner)
    return st.builds("".join, st.lists(group | branches | inner, min_size=1, max_size=3))


def with_count(atom: str, count: str) -> str:
    return atom if atom in ("^", "$", r"\b") else atom + count


def steps() -> Steps:
    return iter(range(MOST_STEPS))


PATTERNS = st.recursive(st.builds(with_count, ATOMS, COUNTS), grown, max_leaves=8)


@given(PATTERNS, st.text("ab.", max_size=8))
def test_it_finds_what_python_finds(pattern: str, text: str) -> None:
    theirs = re.compile(pattern).fullmatch(text)
    ours = Expression(pattern).fullmatch(text, steps())
    assert (ours is None) == (theirs is None)
    if theirs is not None and ours is not None and not REPEATS_NOTHING(pattern):
        groups = range(theirs.re.groups + 1)
        assert [ours[each] for each in groups] == [theirs[each] for each in groups]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"(a)(?P<n>b)\1(?P=n)", "abab", ["abab", "a", "b"]),
        (r"(a+)\1", "aaaa", ["aaaa", "aa"]),
        (r"(a+)\1", "aaa", None),
        (r"x{}y{,2}", "x{}y", ["x{}y"]),
        (r"a*+a", "aa", None),
        (r"(?i)(AB)c", "abC", ["abC", "ab"]),
        (r"(?s:a.)b", "a\nb", ["a\nb"]),
        (r"a.b", "a\nb", None),
    ],
)
def test_what_it_finds(pattern: str, text: str, expected: list[str] | None) -> None:
    found = Expression(pattern, re.ASCII).fullmatch(text, steps())
    assert (None if found is None else [found[each] for each in range(len(expected or ()))]) == (
        expected
    )


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("(.*)", "ab", "<ab><>"), ("(a?)", "ba", "<>b<a><>"), ("b(.*?)", "abb", "a<><>"),
        ("(a|ab)", "abab", "<a>b<a>b"),
    ],
)  # fmt: skip
def test_all_that_matches_is_replaced_as_java_does_it(
    pattern: str, text: str, expected: str
) -> None:
    made = Expression(pattern).replaced(text, lambda found: f"<{found[1]}>", steps())
    assert made == expected


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|a)*$", "(a*)*b", r"(\w+\s?)*!", "(.*,)*x", ".*.*.*.*.*x", "(a|aa)+!"],
)
def test_what_explodes_takes_time_as_long_as_the_name(pattern: str) -> None:
    used = []
    for length in (100, 200):
        left = steps()
        assert Expression(pattern).fullmatch("a" * length + "?", left) is None
        used.append(next(left))
    assert used[1] < 2.2 * used[0]


def test_what_may_still_explode_is_given_up() -> None:
    with pytest.raises(TooLong):
        Expression(r"(a+)+\1b").fullmatch("a" * 40, steps())
    mapper = PrincipalMapper("RULE:CN=(a+)+\\1b/$1/")
    with pytest.raises(NoRule, match="too many ways"):
        mapper.user("CN=" + "a" * 40)


def test_a_name_without_an_end_stands_for_nobody() -> None:
    with pytest.raises(NoRule, match="too many ways") as caught:
        PrincipalMapper("RULE:^CN=(.*?),OU=(.*?)$/$1/").user("CN=" + "a" * 100_000)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("pattern", ["(?x)a b", "(a{1000}){1000}", "(?(1)a|b)", "(?#no)a"])
def test_what_cannot_be_matched_is_refused_before(pattern: str) -> None:
    with pytest.raises(re.error):
        Expression(pattern)
