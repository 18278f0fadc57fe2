"""What was said, one request or response after the other, and the file of JSON lines that keeps it.

A line holds the fields of its message, or as `frame` the bytes of what could not be understood,
with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kafkalite.protocol.messages import message_class
from kafkalite.testing.recording.plain import (
    DescribeRecords,
    bytes_of,
    from_plain,
    text_of,
    to_plain,
)

REQUEST, RESPONSE = "request", "response"


@dataclass(slots=True)
class Said:
    """One request or response. `message` is None when `frame` could not be understood."""

    kind: str
    time_ms: int
    connection: int  # the so-manieth that the proxy took
    broker: str  # host:port of the real one
    node_id: int | None  # which of its cluster that is, once an answer has told it
    api: str | None = None
    version: int | None = None
    correlation_id: int | None = None
    client_id: str | None = None
    message: Any | None = None
    frame: bytes = b""
    reason: str = ""


_HEAD = (
    "kind", "time_ms", "connection", "broker", "node_id",
    "api", "version", "correlation_id", "client_id",
)  # fmt: skip


def to_json(said: Said, describe: DescribeRecords | None = None) -> str:
    """One line. `describe` tells what record batches hold, for who reads the file."""
    row = {name: getattr(said, name) for name in _HEAD}
    if said.message is None:
        row |= {"reason": said.reason, "frame": text_of(said.frame)}
    else:
        assert said.version is not None
        row["fields"] = to_plain(said.message, said.version, describe)
    return json.dumps(row, ensure_ascii=False)


def from_json(line: str) -> Said:
    """ValueError when it is no line of a trace."""
    try:
        row = json.loads(line)
        head = {name: row[name] for name in _HEAD}
        if "frame" in row:
            return Said(**head, frame=bytes_of(row["frame"]), reason=row["reason"])
        cls = message_class(f"{row['api']}{row['kind'].capitalize()}")
        return Said(**head, message=from_plain(cls, row["version"], row["fields"]))
    except (KeyError, TypeError) as reason:
        raise ValueError(f"not a line of a trace: {reason!r}") from None


def read(lines: Iterable[str]) -> Iterator[Said]:
    """ValueError with the line's number where it is wrong."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield from_json(line)
            except ValueError as reason:
                raise ValueError(f"line {number}: {reason}") from None
