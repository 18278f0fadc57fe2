"""Regular expressions over topic names agree with Python's own where both understand them."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.coordinators.pattern_parsing import TOPIC_CHARACTERS, Alphabet, InvalidPattern
from kafkalite.coordinators.patterns import Pattern


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
    pattern = Pattern(expression)
    assert [name for name in matched if not pattern.matches(name)] == []
    assert [name for name in unmatched if pattern.matches(name)] == []


@pytest.mark.parametrize(
    ("expression", "matched", "unmatched"),
    [
        (r"\pL+", ["aÄя漢"], ["a1", ""]),
        (r"\p{Lu}\P{Lu}", ["Äx", "A1"], ["xÄ", "AB"]),
        (r"\p{Greek}+", ["αβ"], ["ab"]),
        (r"[\pN^]+", ["1²^"], ["a"]),
        (r"\p{^L}", ["1"], ["a"]),
        (r"\d+", ["12"], ["١"]),  # ASCII alone
        (r"\w+", ["a_1"], ["ä"]),
        (r"\s\S", [" a", "\ta"], ["\va", "a "]),
        ("[[:space:]]", ["\v"], ["a"]),
        ("[[:alpha:]]+", ["ab"], ["aä"]),
        ("[[:punct:]]+", ["!-_~"], ["a"]),
        ("a.b", ["a b", "aäb"], ["a\nb"]),
        ("(?s)a.b", ["a\nb"], []),
        ("(?m)a$\n^b", ["a\nb"], []),
        ("a$\n^b", [], ["a\nb"]),
        (r"\Qa(b\E.", ["a(bc"], ["abc"]),
        (r"(?P<n>x)(?<m>y)", ["xy"], []),
        (r"\x{1F600}\101\n", ["\U0001f600A\n"], []),
        ("(?i)ä+", ["äÄ"], ["a"]),
        (r"[\x{100}-\x{200}]", ["ā"], ["a"]),
        ("[^a]", ["\n", "ä"], ["a"]),
    ],
)
def test_what_an_expression_matches_in_any_text(
    expression: str, matched: list[str], unmatched: list[str]
) -> None:
    pattern = Pattern(expression, Alphabet("".join(matched + unmatched)))
    assert [text for text in matched if not pattern.matches(text)] == []
    assert [text for text in unmatched if pattern.matches(text)] == []


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
            "{2}a",
            "(?<n>a)(?P<n>b)",
            "[b-a]",
            "\\",
            r"\y",
            "(?<n",
            "[[:no:]]",
        ],
        *[
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "(?<!a)",
            r"(a)\1",
            r"\pX",
            r"\p{L",
            "(?x)a",
            "(?P<1>a)",
            r"\xzz",
            "(" * 200,
        ],
        "((((a{50}){50}){50}){50})",
        "a" * 5_000,
    ],
)
def test_what_is_refused(expression: str) -> None:
    with pytest.raises(InvalidPattern):
        Pattern(expression)


def test_an_expression_that_would_explode_is_matched_in_no_time() -> None:
    pattern = Pattern("(a|a|aa)+(a*)*b")
    assert not pattern.matches("a" * 249)
    assert pattern.matches("a" * 248 + "b")


def test_a_long_match_is_made_in_steps() -> None:
    pattern = Pattern("(a?){400}(a?){400}b*")
    steps = sum(1 for _ in pattern.matching("a" * 100))
    assert steps > 10


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
    assert Pattern(expression).matches(name) == expected


@given(st.text(max_size=30))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    with suppress(InvalidPattern):
        assert Pattern(text).matches(TOPIC_CHARACTERS) in (True, False)
