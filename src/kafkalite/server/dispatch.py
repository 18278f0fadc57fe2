"""From a frame to a handler and from its response to the parts of a reply.

Owns what happens when a request cannot be answered: what a peer got wrong ends the connection with
one log line, what it asked in vain is an error in the reply, and what we got wrong is logged with
its stack and answered with UNKNOWN_SERVER_ERROR. Never decides anything about data.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkalite import handlers
from kafkalite.env.later import Later
from kafkalite.env.network import Part
from kafkalite.handlers.api_versions import API_VERSIONS_KEY, unknown_version
from kafkalite.handlers.call import Call, CloseConnection, ConnectionInfo, Encoded
from kafkalite.handlers.context import Context
from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.errors import Error, KafkaError, MalformedFrame
from kafkalite.protocol.messages import message_class
from kafkalite.server.connection import Answer, Outcome
from kafkalite.server.error_reply import error_reply
from kafkalite.server.foreign import recognise
from kafkalite.server.limits import LimitedLog
from kafkalite.server.request_header import HEAD_BYTES, read_header

PRODUCE_KEY = 0

_route_at = struct.Struct(">I").unpack_from  # API key and version, as one number
_V0_HEAD = struct.Struct(">ii")


@dataclass(slots=True)
class Route:
    """All that is known of one version of an API before a request comes."""

    api: spec.Api
    version: int
    handler: handlers.Handler
    decode: Callable[[codec.Buffer, int], tuple[Any, int]]
    encode: Callable[[Any, list[Any]], None]
    request_has_tags: bool
    response_has_tags: bool
    has_records: bool  # in the response: parts that are not bytes and stay as they are

    @property
    def name(self) -> str:
        return f"{self.api.name} v{self.version}"


class Dispatcher:
    """Answers the frames of all connections of one broker."""

    def __init__(
        self,
        context: Context,
        log: LimitedLog,
        find_handler: Callable[[int], handlers.Handler | None] = handlers.handler,
    ) -> None:
        self._context = context
        self._log = log
        self._find_handler = find_handler
        self._routes: dict[int, Route] = {}

    # --- one request ------------------------------------------------------------------------------

    def answer(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        """The reply to a request, now or later; what goes wrong is settled here."""
        if len(frame) < HEAD_BYTES:
            return self._malformed("a request shorter than its header", None, None, connection)
        number: int = _route_at(frame)[0]
        route = self._routes.get(number)
        if route is None:
            return self._first_of_its_kind(number, frame, connection)
        client_id = None
        try:
            key, version, correlation_id, client_id, start = read_header(
                frame, route.request_has_tags
            )
            call = Call(key, version, correlation_id, client_id, connection)
            # Bytes behind the request are passed over, as Kafka does: librdkafka 2.16 sends some.
            request, _ = route.decode(frame, start)
        except MalformedFrame as error:
            return self._malformed(str(error), route, client_id, connection)
        return self._handle(route, call, request)

    def _handle(self, route: Route, call: Call, request: Any) -> Answer:
        try:
            response = route.handler(self._context, call, request)
        except KafkaError as error:
            response = error_reply(request, call.version, error.code, error.message)
            if response is None:
                return CloseConnection(str(error))
        except MalformedFrame as error:
            return self._malformed(str(error), route, call.client_id, call.connection)
        except Exception as error:  # noqa: BLE001 - the one place where our mistakes end
            response = self._mistake(route, call, request, error)
        if response is None:
            return None
        if isinstance(response, Later):
            if not response.is_resolved:
                return self._encoded_later(route, call, response)
            response = response.value
        return self._outcome(route, call, response)

    def _encoded_later(self, route: Route, call: Call, response: Later[Any]) -> Later[Outcome]:
        outcome: Later[Outcome] = Later()
        response.then(lambda value: outcome.resolve(self._outcome(route, call, value)))
        return outcome

    def _outcome(self, route: Route, call: Call, response: Any) -> Outcome:
        if isinstance(response, CloseConnection):
            return response
        if response is None:  # acks=0, settled later: the place of its reply stays empty
            return []
        try:
            return self._encode(route, call.correlation_id, response)
        except Exception as error:  # noqa: BLE001 - a response that has no bytes is our mistake
            self._log.bug("bug", f"the response to {_described(route, call)} has no bytes", error)
            return CloseConnection("a response that could not be encoded")

    def _encode(self, route: Route, correlation_id: int, response: Any) -> list[Part]:
        parts: list[Any] = []
        if type(response) is Encoded:
            parts.append(response.body)
        else:
            route.encode(response, parts)
        tags = b"\0" if route.response_has_tags else b""
        if not route.has_records:
            body = b"".join(parts)
            return [_V0_HEAD.pack(4 + len(tags) + len(body), correlation_id) + tags + body]
        parts, size = _joined(parts)
        parts[0] = _V0_HEAD.pack(4 + len(tags) + size, correlation_id) + tags + parts[0]
        return parts

    # --- what cannot be answered as asked ---------------------------------------------------------

    def _unserved(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        """An API or version that is not served: Kafka cuts the peer off, except for ApiVersions."""
        try:
            key, version, correlation_id, client_id, _ = read_header(frame, False)
        except MalformedFrame as error:
            return self._malformed(str(error), None, None, connection)
        if key == API_VERSIONS_KEY:
            body = codec.encode(unknown_version(), 0)
            return [_V0_HEAD.pack(4 + len(body), correlation_id) + body]
        name = spec.api(key).name if key in spec.api_files() else "an unknown API"
        self._log.warn(
            "unserved",
            f"{connection} as client {client_id!r} asked for {name} (key {key}) version {version}, "
            f"which is not served on listener {connection.listener}; connection closed",
        )
        return CloseConnection("unserved")

    def _malformed(
        self, why: str, route: Route | None, client_id: str | None, connection: ConnectionInfo
    ) -> CloseConnection:
        name = route.name if route else "no API's"
        self._log.warn(
            "malformed",
            f"{connection} as client {client_id!r} sent a malformed {name} request on listener "
            f"{connection.listener}: {why}; connection closed",
        )
        return CloseConnection("malformed")

    def _mistake(self, route: Route, call: Call, request: Any, error: Exception) -> Any:
        kind = f"bug in {route.api.name}"
        self._log.bug(kind, f"{_described(route, call)} failed by a mistake of ours", error)
        if route.api.key == PRODUCE_KEY:  # told of an unknown error, an idempotent one duplicates
            return CloseConnection(kind)
        response = error_reply(request, call.version, Error.UNKNOWN_SERVER_ERROR)
        return CloseConnection(kind) if response is None else response

    def refuse(self, head: memoryview, size: int, connection: ConnectionInfo) -> bytes:
        foreign = recognise(head)
        if foreign is not None:
            self._log.warn(
                foreign.name,
                f"{connection} speaks {foreign.name} to Kafka listener {connection.listener}: "
                f"{foreign.hint}",
            )
            return foreign.reply
        self._log.warn(
            "size",
            f"{connection} announced a request of {size} bytes on listener {connection.listener}, "
            "which is negative or more than socket.request.max.bytes; connection closed",
        )
        return b""

    def expired(self, reason: str, connection: ConnectionInfo) -> None:
        self._log.warn("slow", f"{connection} was cut off: {reason}")

    # --- routes -----------------------------------------------------------------------------------

    def _first_of_its_kind(
        self, number: int, frame: memoryview, connection: ConnectionInfo
    ) -> Answer:
        """A request with a new API or version: its handler is imported, its decoder compiled."""
        try:
            route = self._find_route(number)
        except Exception as error:  # noqa: BLE001 - a handler that cannot be imported is our mistake
            self._log.bug("bug", f"API key {number >> 16} cannot be served", error)
            return CloseConnection("a handler that cannot be imported")
        if route is None:
            return self._unserved(frame, connection)
        return self.answer(frame, connection)

    def _find_route(self, number: int) -> Route | None:
        key, version = number >> 16, number & 0xFFFF
        handler = self._find_handler(key) if key in spec.api_files() else None
        if handler is None or version not in handlers.versions(spec.api(key)):
            return None
        api = spec.api(key)
        response = message_class(f"{api.name}Response")
        route = Route(
            api,
            version,
            handler,
            codec.prefix_decoder(message_class(f"{api.name}Request"), version),
            codec.encoder(response, version),
            headers.request_header_version(key, version) == 2,
            headers.response_header_version(key, version) == 1,
            _has_records(spec.message(response.__name__)),
        )
        self._routes[number] = route
        return route


def _has_records(message: spec.Message) -> bool:
    structs = (message.root, *message.structs.values())
    return any(field.type == "records" for struct in structs for field in struct.fields)


def _joined(parts: list[Any]) -> tuple[list[Any], int]:
    """The parts with neighbours of bytes joined and empty ones left out, and their length."""
    joined: list[Any] = []
    own: list[bytes] = []
    size = 0
    for part in parts:
        if type(part) is bytes:
            own.append(part)
        elif length := len(part):
            if own:
                joined.append(b"".join(own))
                size += len(joined[-1])
                own = []
            joined.append(part)
            size += length
    if own:
        joined.append(b"".join(own))
        size += len(joined[-1])
    return joined, size


def _described(route: Route, call: Call) -> str:
    return f"{route.name} of client {call.client_id!r} at {call.connection}"
