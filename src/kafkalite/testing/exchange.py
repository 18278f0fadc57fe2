"""A request to a test's own broker, and what it was replied: understood when somebody looks.

Owns copies of both, and how they are shown in one line. Invariant: what was said stays as it was,
whatever becomes of the files that it came from.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from kafkalite.env.disk import FileRange
from kafkalite.env.network import Part
from kafkalite.handlers.call import CloseConnection
from kafkalite.protocol import spec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.traversal import to_values
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.testing.recording.conversation import Conversation, Peer
from kafkalite.testing.recording.said import Said

SIZE_BYTES = 4
SHOWN_ELEMENTS = 4
SHOWN_TEXT = 60
OWN_BYTES = 2000  # of memory, beside what was said: most of it when somebody has looked
HEAD_BYTES = 4096  # with the whole header, unless somebody is called by a very long name

Reply = list[Part] | CloseConnection


class Exchange:
    """A request, and what came of it: a reply, the end of the connection, or nothing so far."""

    def __init__(
        self, index: int, number: int, info: ConnectionInfo, frame: bytes, now_ms: int
    ) -> None:
        self.index = index  # the so-manieth that was asked
        self.number = number  # of the connection
        self.time_ms = now_ms
        self.replied_ms: int | None = None
        self._info = info
        self._frame = frame
        self._reply: bytes | CloseConnection | None = None
        self._cut = ""  # why only the head of both is here

    def __repr__(self) -> str:
        return f"<Exchange {self}>"

    def __str__(self) -> str:
        when = datetime.fromtimestamp(self.time_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
        asked = "" if self.request is None else compact(self.request, self.version)
        return f"{when} {self.number} {self.api} v{self.version} {self.client_id}: {asked} → " + (
            self.outcome
        )

    @property
    def api(self) -> str | None:
        return self._said[0].api

    @property
    def version(self) -> int | None:
        return self._said[0].version

    @property
    def client_id(self) -> str | None:
        return self._said[0].client_id

    @property
    def request(self) -> Any:
        """The message, with the names of protocol_specs; None when it cannot be understood."""
        return self._said[0].message

    @property
    def response(self) -> Any:
        """The same of its reply; None when there is none."""
        return None if self._said[1] is None else self._said[1].message

    @property
    def errors(self) -> list[Error]:
        """All errors that the reply names."""
        found: list[Error] = []
        if self.response is not None:

            def look(value: Any, field: spec.Field) -> Any:
                if field.type == "error" and value != Error.NONE:
                    found.append(Error(value))
                return value

            to_values(self.response, self.version or 0, look)
        return found

    @property
    def outcome(self) -> str:
        if isinstance(self._reply, CloseConnection):
            return f"the connection ends: {self._reply.reason}"
        if self._reply is None:
            return "no reply so far"
        if self._cut:
            return self._cut
        return "no reply" if self.response is None else compact(self.response, self.version)

    @cached_property
    def _said(self) -> tuple[Said, Said | None]:
        conversation = Conversation(self.number, Peer(*self._info.local_address[:2]))
        asked = conversation.request(self._frame, self.time_ms, self._cut)
        if not isinstance(self._reply, bytes) or not self._reply:
            return asked, None
        reply = self._reply[SIZE_BYTES:]
        return asked, conversation.response(reply, self.replied_ms or 0, self._cut)

    @property
    def size(self) -> int:
        return len(self._frame) + (len(self._reply) if isinstance(self._reply, bytes) else 0)

    @property
    def weight(self) -> int:
        """How much memory it takes, more or less."""
        return OWN_BYTES + self.size

    def replied(self, reply: Reply, now_ms: int) -> None:
        """At once, since files go with their topics, and parts of memory are used again."""
        self.__dict__.pop("_said", None)
        self._reply = reply if isinstance(reply, CloseConnection) else _copy(reply)
        self.replied_ms = now_ms

    def shortened(self) -> Exchange:
        """What it is about, without what it says; this one stays as it is."""
        head = self._frame[:HEAD_BYTES]
        found = Exchange(self.index, self.number, self._info, head, self.time_ms)
        found._reply = self._reply[:HEAD_BYTES] if isinstance(self._reply, bytes) else self._reply
        found.replied_ms = self.replied_ms
        found._cut = f"{self.size} bytes, which are too many to be kept"
        return found


def _copy(reply: list[Part]) -> bytes | CloseConnection:
    """The bytes of a reply, of which some are in files that may go."""
    try:
        return b"".join(
            part.read() if isinstance(part, FileRange) else bytes(part) for part in reply
        )
    except OSError as error:
        return CloseConnection(f"its records cannot be read: {error}")


def compact(message: Any, version: int | None) -> str:
    """A message in one line: what is not as by default, long lists and texts cut and said so."""
    defaults = {field.name: field.default for field in message.SPEC.root.fields}
    values = to_values(message, version or 0, _leaf)
    shown = {name: value for name, value in values.items() if value != defaults.get(name)}
    return _text(shown)[1:-1]


def _leaf(value: Any, field: spec.Field) -> Any:
    if field.type == "error":
        return Error(value).name
    if isinstance(value, bytes | bytearray | memoryview | FileRange):
        return value.hex() if field.type == "uuid" else f"{len(value)} bytes"  # type: ignore[union-attr]
    return value


def _text(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{name}={_text(each)}" for name, each in value.items() if not _is_hollow(each))
        return "{" + " ".join(pairs) + "}"
    if isinstance(value, list):
        shown = [_text(each) for each in value[:SHOWN_ELEMENTS]]
        more = len(value) - len(shown)
        return "[" + ", ".join(shown) + (f", and {more} more" if more > 0 else "") + "]"
    text = str(value)
    return text if len(text) <= SHOWN_TEXT else f"{text[:SHOWN_TEXT]}… ({len(text)} characters)"


def _is_hollow(value: Any) -> bool:
    return value is None or value == "" or value == [] or value == "NONE"
