"""The syntax of Java properties files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.config import MalformedProperties, parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a:1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("  a \t = \f 1 ", {"a": "1 "}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=1", {"": "1"}),
        ("a==1", {"a": "=1"}),
        ("a = = 1", {"a": "= 1"}),
        ("# no\n! no\n\n  # no\na=1 # part of it", {"a": "1 # part of it"}),
        ("a=1,\\\n   2,\\\r\n   3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("a=1\\\n# 2", {"a": "1# 2"}),
        ("a\\ b\\=c\\:d=1", {"a b=c:d": "1"}),
        ("a=\\u00e4\\t\\n\\q", {"a": "ä\t\nq"}),
        ("a=\\uD83D\\uDE00", {"a": "😀"}),
        ("a=1\na=2", {"a": "2"}),
    ],
)
def test_reads_what_java_reads(text, expected):
    assert parse_properties(text) == expected


def test_an_escape_without_four_digits_names_its_line():
    with pytest.raises(MalformedProperties, match="line 2"):
        parse_properties("a=1\nb=\\u00g0")


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


PLAIN = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(PLAIN, PLAIN))
def test_every_text_survives_as_escapes(values):
    text = "\n".join(f"{_escaped(key)}={_escaped(value)}" for key, value in values.items())
    assert parse_properties(text) == values
