"""The lines of a trace: what was said, as JSON, one request or response after the other.

A line holds the fields of its message; or as `frame` the bytes of what could not be understood,
with the reason; or both, where the fields alone would not make the same bytes again. Invariant:
what is read is what was written, byte for byte, and a line ends at a line feed, nowhere else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from kafkalite.protocol.messages import message_class
from kafkalite.testing.recording.plain import (
    DescribeRecords,
    bytes_of,
    from_plain,
    text_of,
    to_plain,
)
from kafkalite.testing.recording.said import REQUEST as REQUEST
from kafkalite.testing.recording.said import RESPONSE as RESPONSE
from kafkalite.testing.recording.said import Said as Said
from kafkalite.testing.recording.said import frame_of

_HEAD = (
    "kind", "time_ms", "connection", "broker", "node_id",
    "api", "version", "correlation_id", "client_id",
)  # fmt: skip
_TEXTS = frozenset(("kind", "broker", "api", "client_id"))
_NEVER_NULL = frozenset(("kind", "time_ms", "connection", "broker"))
# What some programs take for the end of a line, and halves of characters, which UTF-8 has not.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def to_json(said: Said, describe: DescribeRecords | None = None) -> str:
    """One line. `describe` tells what record batches hold, for who reads the file."""
    row = {name: getattr(said, name) for name in _HEAD}
    if said.message is None:
        row |= {"reason": said.reason, "frame": text_of(said.frame)}
    else:
        assert said.version is not None
        row["fields"] = to_plain(said.message, said.version, describe)
        if said.frame and frame_of(said) != said.frame:
            row["frame"] = text_of(said.frame)
    text = json.dumps(row, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def from_json(line: str | bytes) -> Said:
    """ValueError when it is no line of a trace."""
    try:
        row = json.loads(line)
        head = {name: row[name] for name in _HEAD}
        _check(head)
        frame = bytes_of(row["frame"]) if "frame" in row else b""
        if "fields" not in row:
            return Said(**head, frame=frame, reason=row["reason"])
        said = Said(**head, frame=frame, message=_message(row))
        _expect_fields(said)
    except (KeyError, TypeError, AttributeError) as reason:
        raise ValueError(f"not a line of a trace: {reason!r}") from None
    return said


def _check(head: dict[str, Any]) -> None:
    for name, value in head.items():
        is_none = value is None and name not in _NEVER_NULL
        if not is_none and type(value) is not (str if name in _TEXTS else int):
            raise ValueError(f"not a line of a trace: {name} is {value!r}")


def _expect_fields(said: Said) -> None:
    """That there is a frame which says this; of a request whoever sends it again finds that out."""
    try:
        frame_of(said)
    except UnicodeEncodeError:
        pass  # text that a peer may have sent all the same: halves of characters
    except ValueError:
        if said.kind == RESPONSE:
            raise
    except Exception as reason:  # noqa: BLE001 - anything may be written by hand
        raise ValueError(f"no fields of {said.api} v{said.version}: {reason!r}") from None


def _message(row: dict[str, Any]) -> Any:
    cls = message_class(f"{row['api']}{row['kind'].capitalize()}")
    version = row["version"]
    if version not in cls.SPEC.api.versions:
        raise ValueError(f"{row['api']} has no version {version}")
    return from_plain(cls, version, row["fields"])


def read(lines: Iterable[str | bytes]) -> Iterator[Said]:
    """ValueError with the line's number where it is wrong."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield from_json(line)
            except (ValueError, RecursionError) as reason:
                raise ValueError(f"line {number}: {reason}") from None
