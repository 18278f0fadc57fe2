"""The parts of a token (RFC 7515, RFC 7519), as texts become values.

Owns how they are read: base64 without what is foreign to it, JSON without what is none, times as
numbers. What cannot be read is a MalformedPart, which quotes nothing of it. Invariants: it takes no
longer than reading the text; of a large one other threads need not await the end.
"""

from __future__ import annotations

import json
import math
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any, Final, NoReturn

LATEST: Final = 2**63 - 1
LARGE: Final = 32_768  # bytes of JSON, which C would read with all other threads standing still

_Hook = Callable[[list[tuple[str, Any]]], dict[str, Any]]

_BASE64 = re.compile(r"[A-Za-z0-9_-]*={0,2}")


class MalformedPart(ValueError):
    """What is no part of a token."""


def decoded(part: str) -> bytes:
    """The bytes of a part, padded or not."""
    bare = part.rstrip("=")
    is_padded = len(bare) != len(part)
    if not _BASE64.fullmatch(part) or len(bare) % 4 == 1 or (is_padded and len(part) % 4):
        raise MalformedPart("a part of it is no base64")
    return urlsafe_b64decode(bare + "=" * (-len(bare) % 4))


def read_json(data: bytes, *, may_repeat: bool = False) -> Any:
    """A value; where names may be repeated, the last one counts, and what is behind it does not."""
    hook: _Hook = dict if may_repeat else _once_each
    decoder = _patient(hook) if len(data) > LARGE else _hasty(hook)
    try:
        text = data.decode().strip(" \t\r\n")
        value, end = decoder.raw_decode(text)
    except (ValueError, RecursionError):
        raise MalformedPart("a part of it is no JSON") from None
    if end != len(text) and not may_repeat:
        raise MalformedPart("something stands behind its JSON")
    return value


def _hasty(hook: _Hook) -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=hook, parse_constant=_no_number)


def _patient(hook: _Hook) -> json.JSONDecoder:
    """Reads the same, and lets others have their turns meanwhile."""
    decoder = json.JSONDecoder(
        object_pairs_hook=hook, parse_constant=_no_number, parse_int=_int, parse_float=_float
    )
    decoder.scan_once = py_make_scanner(decoder)  # type: ignore[attr-defined]
    return decoder


def _int(text: str) -> int:
    return int(text) if text.isascii() else _no_number(text)


def _float(text: str) -> float:
    return float(text) if text.isascii() else _no_number(text)


def object_of(data: bytes) -> dict[str, Any]:
    value = read_json(data)
    if not isinstance(value, dict):
        raise MalformedPart("a part of it is no object")
    return value


def seconds_of(claims: dict[str, Any], name: str) -> int | None:
    """A moment, in whole seconds; None where it is not told."""
    value = claims.get(name)
    if value is None:
        return None
    if not is_number(value) or abs(value) > LATEST // 1000:
        raise MalformedPart(f"its {name} is no time")
    return int(value)


def is_number(value: object) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    )


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MalformedPart("a name stands in it twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise MalformedPart("a number in it is none")
