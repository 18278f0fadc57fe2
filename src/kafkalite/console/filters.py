"""Which records somebody wants to see, from what they type.

Words, all of which have to be in the key, the value or a header, whatever their case; `key:word`,
`value:word` and `header:word` look there alone; `path.to.field=text` looks into JSON. What has
blanks stands in double quotes. Owns no pattern that could take long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkalite.console.given import Mistake

MOST_TERMS = 20
PLACES = ("key", "value", "header")
_PIECES = re.compile(r'((?:[^\s"]|"[^"]*")+)')


@dataclass(slots=True)
class Texts:
    """A record as it is looked at."""

    key: str
    value: str
    headers: str


Wanted = Callable[[Texts], bool]


def wanted_of(text: str) -> Wanted | None:
    """None: all of them."""
    if text.count('"') % 2:
        raise Mistake('filter: a " is not closed')
    terms = [_term(each) for each in _PIECES.findall(text)]
    if len(terms) > MOST_TERMS:
        raise Mistake(f"filter: has {len(terms)} words, {MOST_TERMS} are the most")
    if not terms:
        return None
    return lambda texts: all(term(texts) for term in terms)


def _term(piece: str) -> Wanted:
    place, colon, word = piece.partition(":")
    if colon and place in PLACES:
        return _in(place, _bare(word).lower())
    path, equals, word = piece.partition("=")
    if equals and path and '"' not in path:
        return _field(path.removeprefix("$.").split("."), _bare(word))
    word = _bare(piece).lower()
    return lambda texts: any(
        word in each.lower() for each in (texts.key, texts.value, texts.headers)
    )


def _bare(word: str) -> str:
    return word.replace('"', "")


def _in(place: str, word: str) -> Wanted:
    if place == "key":
        return lambda texts: word in texts.key.lower()
    if place == "value":
        return lambda texts: word in texts.value.lower()
    return lambda texts: word in texts.headers.lower()


def _field(path: list[str], word: str) -> Wanted:
    def is_wanted(texts: Texts) -> bool:
        try:
            value = json.loads(texts.value)
        except (ValueError, RecursionError):
            return False
        for name in path:
            value = _part(value, name)
        return value is not _Missing and _written(value) == word

    return is_wanted


class _Missing:
    """In place of a value that is not there."""


def _part(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name, _Missing)
    if isinstance(value, list) and name.isdecimal() and len(name) < 10 and int(name) < len(value):
        return value[int(name)]
    return _Missing


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
