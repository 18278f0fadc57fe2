"""Files of JSON that a tool is given, and what is said of those that are not as they must be."""

from __future__ import annotations

import json
from typing import Any

from kafkalite.tools.failures import Failure
from kafkalite.tools.java_numbers import INT, LONG, is_whole

_MAPPING = "com.fasterxml.jackson.databind.JsonMappingException"
_NAMES = {int: "Integer", str: "String"}
_BITS = {"Integer": INT, "Long": LONG}
_BLANKS = " \t\r\n"


NOTHING = object()  # of a text that is blank


def _refuse(name: str) -> Any:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def parsed(text: str, wrong: Failure) -> Any:
    """The first value in a text; what stands behind it is not looked at."""
    if text and not text.strip(_BLANKS):
        return NOTHING
    try:
        return _DECODER.raw_decode(text.lstrip(_BLANKS))[0]
    except (ValueError, RecursionError):
        raise wrong from None


def as_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Failure(_MAPPING, f"Expected JSON object, received {_shown(value)}")
    return value


def as_array(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Failure(_MAPPING, f"Expected JSON array, received {_shown(value)}")
    return value


def field(value: Any, name: str, kind: type[Any], shown: str = "") -> Any:
    """A field of an object, of its kind; `shown` is what Java calls that."""
    fields = as_object(value)
    if name not in fields:
        raise Failure(_MAPPING, f"No such field exists: `{name}`")
    found = fields[name]
    kind_shown = shown or _NAMES[kind]
    if not isinstance(found, kind) or isinstance(found, bool) or _is_too_large(found, kind_shown):
        raise Failure(_MAPPING, f"Expected `{kind_shown}` value, received {_shown(found)}")
    return found.encode(errors="replace").decode() if isinstance(found, str) else found


def _is_too_large(found: Any, kind: str) -> bool:
    return isinstance(found, int) and not is_whole(found, _BITS[kind])


def _shown(value: Any) -> str:
    if value is NOTHING:
        return ""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
