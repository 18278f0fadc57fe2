"""Regular expressions over topic names agree with Python's own where both understand them."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.coordinators.groups.patterns import ALPHABET, InvalidPattern, TopicPattern


@pytest.mark.parametrize(
    ("expression", "matched", "unmatched"),
    [
        ("orders", ["orders"], ["order", "orders1", "Orders"]),
        ("orders.*", ["orders", "orders-eu"], ["my-orders"]),
        ("a|bc|", ["a", "bc", ""], ["b", "abc"]),
        ("(ab)+c?", ["ab", "ababc"], ["", "abcab"]),
        ("[a-c]{2,3}", ["ab", "abc"], ["a", "abcd", "ad"]),
        ("[^a-c]", ["d", "-"], ["a"]),
        (r"\d+\.\w+", ["12.ab_1"], ["12ab", "a.b"]),
        ("[[:digit:]_]+", ["1_2"], ["a"]),
        ("[^[:alpha:]]", ["1", "-"], ["a"]),
        ("(?i)orders", ["OrDers"], ["ordersx"]),
        ("a(?i:b)c", ["aBc", "abc"], ["Abc", "abC"]),
        ("(?P<name>x)(?:y)(?<more>z)", ["xyz"], ["xy"]),
        ("^a$", ["a"], ["aa"]),
        (r"\Aa.*\z", ["ab"], ["ba"]),
        (r"a\b.*", ["a", "a-b", "a.b"], ["ab", "a_b"]),
        (r"\Qa.b\E+", ["a.b", "a.bb"], ["axb"]),
        (r"\x61\x{62}", ["ab"], ["61"]),
        ("a{3}", ["aaa"], ["aa", "aaaa"]),
        ("a{2,}", ["aa", "aaaaa"], ["a"]),
        ("a{0}b", ["b"], ["ab"]),
        ("x{,2}", [], ["xx"]),
        ("a+?b*?", ["aab"], ["b"]),
        (" ", [], [" ", ""]),
    ],
)
def test_what_an_expression_matches(
    expression: str, matched: list[str], unmatched: list[str]
) -> None:
    pattern = TopicPattern(expression)
    assert [name for name in matched if not pattern.matches(name)] == []
    assert [name for name in unmatched if pattern.matches(name)] == []


@pytest.mark.parametrize(
    "expression",
    [
        *[
            "(",
            ")",
            "[a",
            "*a",
            "a**",
            "a{3,1}",
            "a{1001}",
            "[b-a]",
            "\\",
            r"\y",
            "(?<n",
            "[[:no:]]",
        ],
        *["(?=a)", "(?!a)", "(?<=a)", "(?<!a)", r"(a)\1", "(?x)a", "(?P<1>a)", r"\xzz", "(" * 200],
        "((((a{50}){50}){50}){50})",
        "a" * 5_000,
    ],
)
def test_what_is_refused(expression: str) -> None:
    with pytest.raises(InvalidPattern):
        TopicPattern(expression)


def test_an_expression_that_would_explode_is_matched_in_no_time() -> None:
    pattern = TopicPattern("(a|a|aa)+(a*)*b")
    assert not pattern.matches("a" * 249)
    assert pattern.matches("a" * 248 + "b")


def _expressions() -> st.SearchStrategy[str]:
    atoms = st.sampled_from([*"abAB01._-", r"\.", "[ab]", "[^a0]", ".", r"\d", r"\w", "(?:b)"])
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map("".join),
            st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
            st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}"])).map(
                lambda pair: f"(?:{pair[0]}){pair[1]}"
            ),
        ),
        max_leaves=8,
    )


@given(_expressions(), st.text(alphabet="ab01.-_AB", max_size=8))
def test_it_agrees_with_python(expression: str, name: str) -> None:
    expected = re.fullmatch(expression, name, re.ASCII) is not None
    assert TopicPattern(expression).matches(name) == expected


@given(st.text(max_size=30))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    with suppress(InvalidPattern):
        assert TopicPattern(text).matches(ALPHABET) in (True, False)
