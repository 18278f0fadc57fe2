"""Files of JSON that a tool is given, and what is said of those that are not as they must be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kafkalite.tools.failures import Failure

_MAPPING = "com.fasterxml.jackson.databind.JsonMappingException"
_NAMES = {int: "Integer", str: "String"}


def read_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        cause = Failure("java.nio.file.NoSuchFileException", path)
    except OSError as error:
        cause = Failure("java.nio.file.FileSystemException", f"{path}: {error.strerror}")
    raise Failure("java.io.IOException", f"Unable to read file {path}", cause)


def parsed(text: str, wrong: Failure) -> Any:
    try:
        return json.loads(text)
    except ValueError:
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
    if not isinstance(found, kind) or isinstance(found, bool):
        kind_shown = shown or _NAMES[kind]
        raise Failure(_MAPPING, f"Expected `{kind_shown}` value, received {_shown(found)}")
    return found


def _shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
