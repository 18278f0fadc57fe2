"""Which records fit what somebody types."""

from __future__ import annotations

import pytest

from kafkalite.console.filters import Texts, wanted_of
from kafkalite.console.given import Given, Mistake

ORDER = Texts("Customer-7", '{"id": 42, "to": {"city": "Köln"}, "rows": [{"n": true}]}', "trace=ab")


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("customer", True), ("KÖLN", True), ("trace", True), ("paris", False),
        ("customer köln", True), ("customer paris", False), ("key:customer", True),
        ("value:customer", False), ("header:ab", True), ("key:ab", False), ("id=42", True),
        ("id=4", False), ("to.city=Köln", True), ('to.city="Köln"', True), ("$.id=42", True),
        ("rows.0.n=true", True), ("rows.1.n=true", False), ("rows.x=1", False),
        ("none=null", False),
        ('"to\\"', False), ('"id": 42', False), ('\'', False), ("a" * 10_000, False),
    ],
)  # fmt: skip
def test_words(text: str, fits: bool) -> None:
    wanted = wanted_of(text)
    assert wanted is not None
    assert wanted(ORDER) == fits


def test_all_and_what_cannot_be_meant() -> None:
    assert wanted_of("   ") is None
    wanted = wanted_of("id=1")
    assert wanted is not None
    assert not wanted(Texts("", "[" * 100_000, ""))
    for text in ('"open', "a " * 21):
        with pytest.raises(Mistake):
            wanted_of(text)


@pytest.mark.parametrize(
    ("fields", "read"),
    [
        ({}, "text"), ({"x": 1}, "text"), ({"x": "\ud800"}, "text"), ({"x": "y" * 40_000}, "text"),
        ({"x": ""}, "name"), ({"x": True}, "number"), ({"x": -1}, "number"),
        ({"x": "1e3"}, "number"),
        ({"x": "٣" * 30}, "number"), ({"x": 1 << 63}, "number"), ({"x": 1}, "flag"),
        ({"x": ["a"]}, "numbers"), ({"x": "0"}, "numbers"), ({"x": [1 << 31]}, "numbers"),
        ({"x": {"0": -1}}, "places"), ({"x": {"-1": 1}}, "places"), ({"x": []}, "places"),
        ({"x": {"a": 1}}, "pairs"), ({"x": [""]}, "names"),
    ],
)  # fmt: skip
def test_fields_that_cannot_be_meant(fields: dict[str, object], read: str) -> None:
    with pytest.raises(Mistake, match=r"^(x|a|)"):
        getattr(Given(fields), read)("x")


def test_fields() -> None:
    given = Given({"n": "12", "list": [0, "3"], "at": {"7": 9}, "with": {"k": "v"}, "on": True})
    assert (given.number("n"), given.number("m", 5)) == (12, 5)
    assert (given.numbers("list"), given.numbers("none")) == ([0, 3], [])
    assert (given.places("at"), given.pairs("with"), given.flag("on")) == ({7: 9}, {"k": "v"}, True)
