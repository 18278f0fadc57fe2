"""From a frame to a handler and from its response to the parts of a reply.

Owns what happens when a request cannot be answered: what a peer got wrong ends the connection with
one log line, what it asked in vain is an error in the reply, and what we got wrong is logged with
its stack and answered with UNKNOWN_SERVER_ERROR. Never decides anything about data.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafkalite import handlers
from kafkalite.coordinators.cluster.controller import OutcomeUnknown
from kafkalite.env.later import Later
from kafkalite.env.network import Part
from kafkalite.env.slicing import InSteps, Steps, begun, outcome_of
from kafkalite.handlers.api_set import ApiSet
from kafkalite.handlers.api_versions import API_VERSIONS_KEY, unknown_version
from kafkalite.handlers.call import Call, Client, CloseConnection, Encoded
from kafkalite.handlers.context import Context
from kafkalite.handlers.stepwise import EncodeInSteps, Lists, encoded, is_long, joined, lists_of
from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.errors import Error, KafkaError, MalformedFrame
from kafkalite.protocol.messages import message_class
from kafkalite.protocol.runtime import ManyElements
from kafkalite.quotas.meter import Meter, metered
from kafkalite.server.counting import Counts, RequestCount, counting
from kafkalite.server.error_reply import error_reply, error_reply_in_steps
from kafkalite.server.guard import guarded
from kafkalite.server.limits import LimitedLog
from kafkalite.server.other_protocols import recognise
from kafkalite.server.request_header import HEAD_BYTES, read_header
from kafkalite.server.terms import Answer, Outcome, Throttled
from kafkalite.server.throttling import charged

PRODUCE_KEY, FETCH_KEY = 0, 1
# A request up to here is decoded at once, and its response encoded at once unless its handler has
# it worked out in steps.
SMALL_BYTES = 8192
# The same of one with records, of which there are mostly few: a larger one is decoded at once, too,
# unless it has many.
SMALL_RECORDS_BYTES = 32_768
_SHORT = (Encoded, CloseConnection)

_route_at = struct.Struct(">I").unpack_from  # API key and version, as one number
_V0_HEAD = struct.Struct(">ii")


@dataclass(slots=True)
class Route:
    """All that is known of one version of an API before a request comes."""

    api: spec.Api
    version: int
    handler: handlers.Handler
    response: type[Any]
    decode: Callable[[codec.Buffer, int], tuple[Any, int]]
    encode: Callable[[Any, list[Any]], None]
    request_has_tags: bool
    response_has_tags: bool
    decode_in_steps: Callable[[codec.Buffer, int], Steps[tuple[Any, int]]]
    encode_in_steps: EncodeInSteps
    request_has_records: bool
    decode_few: Callable[[codec.Buffer, int], tuple[Any, int]]  # raises ManyElements
    at_once_bytes: int
    has_records: bool  # in the response: parts that are not bytes and stay as they are
    tells_metadata: bool  # what records are answered with waits for it in their log
    lists: Lists  # in the response; handlers of records have long ones worked out in steps
    count: RequestCount | None  # where somebody asked for numbers

    @property
    def name(self) -> str:
        return f"{self.api.name} v{self.version}"


class Dispatcher:
    """Answers the frames of all connections that came in by one kind of listener."""

    def __init__(
        self, context: Context, log: LimitedLog, apis: ApiSet, counts: Counts | None = None
    ) -> None:
        self._context = context
        self._log = log
        self._apis = apis
        self._counts = counts
        self._routes: dict[int, Route] = {}
        self._held = context.long_work.connections  # whose earlier request is under way
        self._quotas = context.quotas

    # --- one request ------------------------------------------------------------------------------

    def answer(
        self, frame: memoryview, connection: Client, meter: Meter | None = None,
        is_counted: bool = False,
    ) -> Answer:  # fmt: skip
        """The reply to a request, now or later; what goes wrong is settled here."""
        if meter is None and self._quotas.is_on and not connection.is_logging_in:
            return self._metered(frame, connection)
        if len(frame) < HEAD_BYTES:
            return self._malformed("a request shorter than its header", None, None, connection)
        number: int = _route_at(frame)[0]
        route = self._routes.get(number)
        if route is None:
            return self._first_of_its_kind(number, frame, connection, meter)
        count = route.count
        if count is not None and not is_counted:
            count = (count.of_followers if connection.is_follower else None) or count
            count.requests += 1
            count.request_bytes += len(frame)
            if count.requests >= count.timed_at:
                again = partial(self.answer, frame, connection, meter, True)
                return count.timed(connection, self._context.long_work, again)
        is_large = len(frame) > route.at_once_bytes
        is_held_up = self._held and id(connection) in self._held
        if is_held_up or (is_large and not route.request_has_records):
            return self._kept(route, frame, connection, meter)
        decode = route.decode_few if is_large else route.decode
        client_id = None
        try:
            key, version, correlation_id, client_id, start = read_header(
                frame, route.request_has_tags
            )
            call = Call(key, version, correlation_id, client_id, connection, meter)
            if meter is not None:
                meter.is_of(client_id)
            # Bytes behind the request are passed over, as Kafka does: librdkafka 2.16 sends some.
            request, _ = decode(frame, start)
        except MalformedFrame as error:
            return self._malformed(str(error), route, client_id, connection)
        except ManyElements:
            return self._kept(route, frame, connection, meter)
        try:
            response = route.handler(self._context, call, request)
        except Exception as error:  # noqa: BLE001 - what it means is decided there
            return self._answered(
                route, call, request, self._failed(route, call, request, error), False
            )
        return self._answered(route, call, request, response, False, frame)

    def _metered(self, frame: memoryview, connection: Client) -> Answer:
        """The same where somebody has a quota."""
        meter = self._quotas.meter(connection.principal, len(frame))
        try:
            return self.answer(frame, connection, meter)
        finally:
            meter.pause()

    def _failed(self, route: Route, call: Call, request: Any, error: Exception) -> Any:
        if isinstance(error, KafkaError):
            return self._refusal(route, call, request, error)
        if isinstance(error, MalformedFrame):
            return self._malformed(str(error), route, call.client_id, call.connection)
        return self._mistake(route, call, request, error)

    def _answered(
        self, route: Route, call: Call, request: Any, response: Any, is_large: bool,
        frame: memoryview | None = None,
    ) -> Answer:  # fmt: skip
        """With the frame while nothing has been done but to ask the handler: steps that need what
        lies in it begin once it is kept."""
        if type(response) is not route.response:
            if response is None:
                _, wait_ms = charged(self._context, route.api, call, request, None)
                return Throttled(None, wait_ms) if wait_ms else None
            if isinstance(response, Later):
                if not response.is_resolved:
                    return self._answered_later(route, call, request, response, is_large)
                response, frame = self._value_of(route, call, request, response), None
            if isinstance(response, Exception):
                response = self._settled(route, call, request, response)
        kind = type(response)
        if kind is InSteps or (
            kind not in _SHORT and (is_large or (route.lists and is_long(response, route.lists)))
        ):
            if frame is not None and route.request_has_records:
                return self._kept(route, frame, call.connection, call.meter)
            steps = self._rest_of(route, call, request, response)
            return self._in_line(route, call.connection, steps, call.meter)
        outcome = self._outcome(route, call, request, response)
        return self._once_it_lasts(outcome) if route.tells_metadata else outcome

    def _once_it_lasts(self, answer: Answer) -> Answer:
        """With fsync no answer goes before the metadata lasts that it may tell of, or a power cut
        could take it back."""
        metadata = self._context.metadata
        if metadata.lasts or not isinstance(answer, list | Throttled):
            return answer
        return metadata.once_it_lasts(answer).map(
            lambda told: CloseConnection(str(told)) if isinstance(told, KafkaError) else told
        )

    def _answered_later(
        self, route: Route, call: Call, request: Any, response: Later[Any], is_large: bool
    ) -> Later[Outcome]:
        outcome: Later[Outcome] = Later()

        def came(value: Any) -> None:
            meter = call.meter
            if meter is not None:
                meter.resume()
            # None of acks=0, settled later: the place of its reply stays empty.
            _fill(outcome, self._answered(route, call, request, value, is_large))
            if meter is not None:
                meter.pause()

        response.then(came, lambda error: came(self._failed(route, call, request, error)))
        return outcome

    def _value_of(self, route: Route, call: Call, request: Any, response: Later[Any]) -> Any:
        try:
            return response.value
        except Exception as error:  # noqa: BLE001 - what it means is decided there
            return self._failed(route, call, request, error)

    def _settled(self, route: Route, call: Call, request: Any, response: Exception) -> Any:
        """What comes of it may be a refusal, or a mistake of ours: who waits is told."""
        if isinstance(response, OutcomeUnknown):
            return CloseConnection(str(response))
        if isinstance(response, KafkaError):
            return self._refusal(route, call, request, response)
        return self._mistake(route, call, request, response)

    # --- large ones -------------------------------------------------------------------------------

    def _kept(
        self, route: Route, frame: memoryview, connection: Client, meter: Meter | None
    ) -> Answer:
        """Has all of it done in slices; its bytes are about to be overwritten."""
        kept = memoryview(bytearray(frame))
        steps = self._all_of(route, kept, connection, meter)
        return self._in_line(route, connection, steps, meter)

    def _in_line(
        self, route: Route, connection: Client, steps: Steps[Answer], meter: Meter | None
    ) -> Answer:
        """Has it done in slices, after what is under way for the connection: its requests are
        worked on one after the other, so that none overtakes a large one. Records that have come
        are appended also when their client goes, which it may once they are sent."""
        outcome: Later[Outcome] = Later()
        self._context.long_work.of_connection(
            connection, steps if meter is None else metered(steps, meter),
            lambda answer: _fill(
                outcome, self._once_it_lasts(answer) if route.tells_metadata else answer
            ),
            lambda: outcome.resolve(CloseConnection("its client or its broker has gone")),
            is_kept_up=route.request_has_records,
        )  # fmt: skip
        return outcome.value if outcome.is_resolved else outcome

    def _all_of(
        self, route: Route, frame: memoryview, connection: Client, meter: Meter | None
    ) -> Steps[Answer]:
        client_id = None
        try:
            key, version, correlation_id, client_id, start = read_header(
                frame, route.request_has_tags
            )
            call = Call(key, version, correlation_id, client_id, connection, meter)
            if meter is not None:
                meter.is_of(client_id)
            if len(frame) <= route.at_once_bytes:
                request, _ = route.decode(frame, start)
            else:
                request, _ = yield from route.decode_in_steps(frame, start)
        except MalformedFrame as error:
            return self._malformed(str(error), route, client_id, connection)
        try:
            response = route.handler(self._context, call, request)
        except Exception as error:  # noqa: BLE001 - what it means is decided there
            response = self._failed(route, call, request, error)
        if isinstance(response, Later):
            return self._answered(route, call, request, response, True)
        return (yield from self._rest_of(route, call, request, response))

    def _rest_of(self, route: Route, call: Call, request: Any, response: Any) -> Steps[Answer]:
        if type(response) is InSteps:
            try:
                response = yield from response.steps
            except Exception as error:  # noqa: BLE001 - what it means is decided there
                response = self._failed(route, call, request, error)
            if isinstance(response, Exception):
                response = self._settled(route, call, request, response)
            response = yield from outcome_of(response)  # of what failed
        if response is None or isinstance(response, Later):
            return self._answered(route, call, request, response, True)
        if type(response) in _SHORT:
            return self._outcome(route, call, request, response)
        response, wait_ms = charged(self._context, route.api, call, request, response)
        try:
            parts, size = yield from encoded(
                route.encode_in_steps, response, has_records=route.has_records
            )
        except Exception as error:  # noqa: BLE001 - a response that has no bytes is our mistake
            return self._no_bytes(route, call, request, error)
        tags = b"\0" if route.response_has_tags else b""
        head = _V0_HEAD.pack(4 + len(tags) + size, call.correlation_id) + tags
        return Throttled([head, *parts], wait_ms) if wait_ms else [head, *parts]

    def _outcome(self, route: Route, call: Call, request: Any, response: Any) -> Outcome:
        if isinstance(response, CloseConnection):
            return response
        wait_ms = 0
        if call.meter is not None:
            response, wait_ms = charged(self._context, route.api, call, request, response)
        try:
            reply = self._encode(route, call.correlation_id, response)
            return Throttled(reply, wait_ms) if wait_ms else reply
        except Exception as error:  # noqa: BLE001 - a response that has no bytes is our mistake
            return self._no_bytes(route, call, request, error)

    def _no_bytes(self, route: Route, call: Call, request: Any, error: Exception) -> Outcome:
        """Such as one whose sentence quotes a name that leaves no room for it: the error alone is
        told, as Apache Kafka does."""
        self._log.bug("bug", f"the response to {_described(route, call)} has no bytes", error)
        response = None
        if route.api.key != PRODUCE_KEY:  # told of an unknown error, an idempotent one duplicates
            response = error_reply(request, call.version, Error.UNKNOWN_SERVER_ERROR)
        with suppress(Exception):  # then it has no bytes either
            if response is not None:
                return self._encode(route, call.correlation_id, response)
        return CloseConnection("a response that could not be encoded")

    def _encode(self, route: Route, correlation_id: int, response: Any) -> list[Part]:
        parts: list[Any] = []
        if type(response) is Encoded:
            parts.append(response.body)
            if self._counts is not None:  # an answer with errors is none that is kept
                self._counts.errors_of(route.api.name)[Error.NONE] += 1
        else:
            route.encode(response, parts)
        tags = b"\0" if route.response_has_tags else b""
        if not route.has_records:
            body = b"".join(parts)
            return [_V0_HEAD.pack(4 + len(tags) + len(body), correlation_id) + tags + body]
        parts = joined(parts)
        size = sum(map(len, parts))
        parts[0] = _V0_HEAD.pack(4 + len(tags) + size, correlation_id) + tags + parts[0]
        return parts

    # --- what cannot be answered as asked ---------------------------------------------------------

    def _unserved(self, frame: memoryview, connection: Client) -> Answer:
        """An API or version that is not served: Kafka cuts the peer off, except for ApiVersions."""
        if self._counts is not None:
            self._counts.unserved(len(frame))
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
        self, why: str, route: Route | None, client_id: str | None, connection: Client
    ) -> CloseConnection:
        name = route.name if route else "no API's"
        self._log.warn(
            "malformed",
            f"{connection} as client {client_id!r} sent a malformed {name} request on listener "
            f"{connection.listener}: {why}; connection closed",
        )
        return CloseConnection("malformed")

    def _refusal(self, route: Route, call: Call, request: Any, error: KafkaError) -> Any:
        return begun(
            self._error_reply(route, call, request, str(error), error.code, error.message)
        )

    def _error_reply(
        self, route: Route, call: Call, request: Any, reason: str, code: Error,
        message: str | None = None,
    ) -> Steps[Any]:  # fmt: skip
        """Who waits for an answer is told by the connection's end where there can be none."""
        try:
            response = yield from error_reply_in_steps(request, call.version, code, message)
        except Exception as mistake:  # noqa: BLE001 - nobody waits because of a mistake of ours
            what = f"{_described(route, call)} cannot be told of {code.name}"
            self._log.bug(f"bug in telling {route.api.name}", what, mistake)
            response = None
        return CloseConnection(reason) if response is None else response

    def _mistake(self, route: Route, call: Call, request: Any, error: Exception) -> Any:
        kind = f"bug in {route.api.name}"
        self._log.bug(kind, f"{_described(route, call)} failed by a mistake of ours", error)
        if route.api.key == PRODUCE_KEY:  # told of an unknown error, an idempotent one duplicates
            return CloseConnection(kind)
        return begun(self._error_reply(route, call, request, kind, Error.UNKNOWN_SERVER_ERROR))

    def refuse(self, head: memoryview, size: int, connection: Client) -> bytes:
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

    def expired(self, reason: str, connection: Client) -> None:
        self._log.warn("slow", f"{connection} was cut off: {reason}")

    # --- routes -----------------------------------------------------------------------------------

    def _first_of_its_kind(
        self, number: int, frame: memoryview, connection: Client, meter: Meter | None
    ) -> Answer:
        """A request with a new API or version: its handler is imported, its decoder compiled."""
        try:
            route = self._find_route(number)
        except Exception as error:  # noqa: BLE001 - a handler that cannot be imported is our mistake
            self._log.bug("bug", f"API key {number >> 16} cannot be served", error)
            return CloseConnection("a handler that cannot be imported")
        if route is None:
            return self._unserved(frame, connection)
        return self.answer(frame, connection, meter)

    def _find_route(self, number: int) -> Route | None:
        key, version = number >> 16, number & 0xFFFF
        handler = self._apis.handler(key)
        if handler is None or version not in handlers.versions(spec.api(key)):
            return None
        api = spec.api(key)
        if self._context.authorizer is not None:
            handler = guarded(handler, api, version, self._apis.kind)
        asked, response = (message_class(f"{api.name}{kind}") for kind in ("Request", "Response"))
        request_has_records = spec.message(asked.__name__).has_records
        decode = codec.prefix_decoder(asked, version)
        tells_metadata = key not in (PRODUCE_KEY, FETCH_KEY)
        encode, encode_in_steps = counting(
            self._counts, api.name, response, codec.encoder(response, version),
            _first_when_needed(codec.encoder_in_steps, response, version),
        )  # fmt: skip
        route = Route(
            api,
            version,
            handler,
            response,
            decode,
            encode,
            headers.request_header_version(key, version) == 2,
            headers.response_header_version(key, version) == 1,
            _first_when_needed(codec.decoder_in_steps, asked, version),
            encode_in_steps,
            request_has_records,
            codec.few_decoder(asked, version) if request_has_records else decode,
            SMALL_RECORDS_BYTES if request_has_records else SMALL_BYTES,
            spec.message(response.__name__).has_records,
            tells_metadata,
            lists_of(spec.message(response.__name__).root) if tells_metadata else (),
            None if self._counts is None else self._counts.of_route(api, version),
        )
        self._routes[number] = route
        return route


def _fill(outcome: Later[Outcome], answer: Answer) -> None:
    if isinstance(answer, Later):
        answer.then(outcome.resolve, outcome.fail)
    else:
        outcome.resolve([] if answer is None else answer)


def _first_when_needed(
    make: Callable[[type[Any], int], Callable[..., Any]], cls: type[Any], version: int
) -> Callable[..., Any]:
    """The function, not made before its first call: few requests are large."""
    return lambda *arguments: make(cls, version)(*arguments)


def describe_turn(local: Mapping[str, Any]) -> str | None:
    """The request that one of this module's frames is at; `env.turns` asks."""
    route, call = local.get("route"), local.get("call")
    if route is None:
        return None
    return route.name if call is None else _described(route, call)


def _described(route: Route, call: Call) -> str:
    return f"{route.name} of client {call.client_id!r} at {call.connection}"
