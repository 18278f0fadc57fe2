"""One connection to another broker: requests go out in order, answers come back in order.

Owns the connection: made when something is to be asked, greeted with ApiVersions, logged in at
where brokers do that, made anew after it ended or before its login does. Knows no request but
these. Of many answers, and of a large one, it takes a part per turn of the loop.
Invariant: whatever was asked is answered exactly once, with a response or with a KafkaError:
NETWORK_EXCEPTION when the connection fails, REQUEST_TIMED_OUT when the oldest answer is overdue,
which ends the connection, as with Apache Kafka's own clients.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from kafkalite.env.clock import Clock, Timer
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.later import Later
from kafkalite.env.network import Address, Attempt, Link, Network
from kafkalite.env.slicing import Slices, Steps, Work, caught
from kafkalite.peers import login
from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.errors import Error, KafkaError, MalformedFrame
from kafkalite.protocol.framing import MAX_FRAME_BYTES, FrameCutter, frame_size
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    RequestHeader,
    ResponseHeader,
    message_class,
)

logger = logging.getLogger(__name__)

GREETING_VERSION = 3  # peers that are older answer in version 0 that they do not know it
BUFFER_BYTES = 65_536
RECONNECT_PAUSE_MS = 50  # after a connection that came to nothing
ANSWERS_PER_TURN = 64
AT_ONCE_BYTES = 8192  # a larger answer may name thousands of things
RENEWED_AT = 0.9  # of the time for which a login holds

Answer = Any  # the response's message, or a KafkaError


@dataclass(slots=True, eq=False)
class _Asked:
    request: Any
    versions: range  # those that say what is meant
    deadline_ms: int
    answer: Later[Answer] = field(default_factory=Later)
    version: int = -1


class Channel:
    """What one broker says to one other."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        slices: Slices,
        *,
        client_id: str,
        address: Callable[[], Address | None],
        timeout_ms: int,
        entry: login.Entry | None = None,
    ) -> None:
        self._network, self._clock, self._slices = network, clock, slices
        self._client_id, self._address, self._timeout_ms = client_id, address, timeout_ms
        self._entry = entry
        self._logging_in: login.LoggingIn | None = None
        self._last_refusal = ""
        self._renew_at_ms: float | None = None
        self._greeted_with: dict[int, range] = {}
        self._served: dict[int, range] | None = None  # by the peer, once it has let us in
        self._attempt: Attempt | None = None
        self._link: Link | None = None
        self._retry_at_ms = 0
        self._unsent: deque[_Asked] = deque()
        self._sent: deque[_Asked] = deque()
        self._next_id = self._answer_id = self._greeting = 0
        self._timer: Timer | None = None
        self._is_stopped = False
        self._reading: Work | None = None  # a large answer: what comes behind it waits
        self._buffer = memoryview(b"")
        self._cutter = FrameCutter(MAX_FRAME_BYTES)

    def ask(self, request: Any, versions: range) -> Later[Answer]:
        """The peer's response in the newest of these versions that it serves, or a KafkaError."""
        now_ms = self._clock.monotonic_ms()
        asked = _Asked(request, versions, now_ms + self._timeout_ms)
        self._unsent.append(asked)
        if self._timer is None:
            self._watch()
        if self._served is not None:
            self._send()
        elif self._link is None and self._attempt is None:
            self._connect(now_ms)
        return asked.answer

    def stop(self) -> None:
        """Asks nothing more; what is open is answered with an error."""
        self._is_stopped = True
        self._fail(KafkaError(Error.NETWORK_EXCEPTION, "this broker stops"))

    # --- the connection ---------------------------------------------------------------------------

    def _connect(self, now_ms: int) -> None:
        address = None if self._is_stopped else self._address()
        if address is None or now_ms < self._retry_at_ms:
            self._fail(KafkaError(Error.NETWORK_EXCEPTION, "the broker cannot be reached now"))
        else:
            self._attempt = self._network.connect(*address, self._connected)

    def _connected(self, outcome: Link | OSError) -> None:
        if isinstance(outcome, OSError):
            self._fail(KafkaError(Error.NETWORK_EXCEPTION, f"no connection: {outcome}"))
            return
        self._attempt, self._link = None, outcome
        self._cutter = FrameCutter(MAX_FRAME_BYTES)
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._answer_id = self._next_id
        outcome.start(self)
        self._greet(GREETING_VERSION)

    def _greet(self, version: int) -> None:
        self._greeting = version
        greeting = ApiVersionsRequest(client_software_name="kafkalite", client_software_version="1")
        self._write(self._framed(greeting, version))

    def _greeted(self, frame: bytearray) -> None:
        code = int.from_bytes(frame[4:6], "big", signed=True)
        if code == Error.UNSUPPORTED_VERSION and self._greeting > 0:
            self._greet(0)
            return
        response: ApiVersionsResponse = _decode(frame, ApiVersionsRequest.API_KEY, self._greeting)
        if response.error_code != Error.NONE:
            raise MalformedFrame(f"a greeting was refused with {response.error_code}")
        self._greeted_with = {
            each.api_key: range(each.min_version, each.max_version + 1)
            for each in response.api_keys
        }
        if self._entry is None:
            self._let_in(0)
        else:
            self._logging_in = self._entry.begin(self._say, self._let_in)

    def _say(self, request: Any) -> None:
        if self._link is not None:
            self._write(self._framed(request, login.VERSION))

    def _let_in(self, how: int | str) -> None:
        """The peer has, for so many milliseconds if there is an end, or has refused."""
        self._logging_in = None
        if isinstance(how, str):
            if how != self._last_refusal:
                logger.error("%s failed authentication: %s", self._client_id, how)
            self._last_refusal = how
            self._fail(KafkaError(Error.NETWORK_EXCEPTION, f"no login: {how}"))
            return
        self._last_refusal = ""
        now_ms = self._clock.monotonic_ms()
        self._renew_at_ms = now_ms + how * RENEWED_AT if how > 0 else None
        self._served = self._greeted_with
        self._send()

    def _fail(self, error: KafkaError) -> None:
        """Ends the connection, and all that was asked."""
        link, self._link = self._link, None
        attempt, self._attempt = self._attempt, None
        logging_in, self._logging_in = self._logging_in, None
        if logging_in is not None:
            logging_in.give_up()
        if self._served is None and (link is not None or attempt is not None):
            self._retry_at_ms = self._clock.monotonic_ms() + RECONNECT_PAUSE_MS
        self._served = None
        self._buffer = memoryview(b"")
        if self._reading is not None:
            self._reading = None
            self._slices.drop(self)
        if attempt is not None:
            attempt.cancel()
        if link is not None:
            link.abort()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        failed = [*self._sent, *self._unsent]
        self._sent.clear()
        self._unsent.clear()
        for asked in failed:
            _tell(asked, error)

    def _watch(self) -> None:
        oldest = next(iter(self._sent or self._unsent))
        left_ms = oldest.deadline_ms - self._clock.monotonic_ms()
        self._timer = self._clock.call_later(max(left_ms, 0), self._look)

    def _look(self) -> None:
        self._timer = None
        waiting = self._sent or self._unsent
        if not waiting:
            return
        if waiting[0].deadline_ms > self._clock.monotonic_ms():
            self._watch()
            return
        self._fail(KafkaError(Error.REQUEST_TIMED_OUT, f"no answer within {self._timeout_ms} ms"))

    # --- out --------------------------------------------------------------------------------------

    def _send(self) -> None:
        if self._is_to_be_renewed():
            if not self._sent:
                self._renew()
            return
        while self._unsent and self._served is not None:  # a send may end the connection
            asked = self._unsent.popleft()
            theirs = self._served.get(asked.request.API_KEY, range(0))
            asked.version = min(asked.versions.stop, theirs.stop) - 1
            if asked.version < max(asked.versions.start, theirs.start):
                _tell(asked, KafkaError(Error.UNSUPPORTED_VERSION))
                continue
            try:
                frame = self._framed(asked.request, asked.version)
            except Exception:
                logger.exception("no %s can be made", type(asked.request).__name__)
                _tell(asked, KafkaError(Error.UNKNOWN_SERVER_ERROR))
                continue
            self._sent.append(asked)
            self._write(frame)

    def _is_to_be_renewed(self) -> bool:
        at_ms = self._renew_at_ms
        return self._served is not None and at_ms is not None and (
            self._clock.monotonic_ms() >= at_ms
        )  # fmt: skip

    def _renew(self) -> None:
        """With nothing under way a new connection costs less than a login on the old one."""
        link, self._link, self._served = self._link, None, None
        if link is not None:
            link.abort()
        self._connect(self._clock.monotonic_ms())

    def _framed(self, request: Any, version: int) -> bytes:
        header = RequestHeader(
            request_api_key=request.API_KEY,
            request_api_version=version,
            correlation_id=self._next_id,
            client_id=self._client_id,
        )
        header_version = headers.request_header_version(request.API_KEY, version)
        return codec.encode(header, header_version) + codec.encode(request, version)

    def _write(self, frame: bytes) -> None:
        assert self._link is not None
        self._next_id = (self._next_id + 1) & 0x7FFFFFFF
        self._link.send([frame_size([frame]), frame])

    # --- in: what a link tells --------------------------------------------------------------------

    def buffer(self) -> memoryview:
        return self._buffer

    def received(self, count: int) -> None:
        self._cutter.feed(self._buffer[:count])
        assert self._link is not None
        self._take_some(self._link)

    def _take_some(self, link: Link) -> None:
        """Takes what has come, and reads on once that is done."""
        try:
            for _ in range(ANSWERS_PER_TURN):
                if self._link is not link or self._reading is not None:
                    return
                frame = self._cutter.take()
                if frame is None:
                    link.resume()
                    return
                self._take(frame)
            link.pause()
            self._network.soon(lambda: self._take_some(link))
        except MalformedFrame as problem:
            self._is_no_answer(problem)

    def _is_no_answer(self, problem: MalformedFrame) -> None:
        logger.warning("%s was answered with what is no answer: %s", self._client_id, problem)
        self._fail(KafkaError(Error.NETWORK_EXCEPTION, f"what came is no answer: {problem}"))

    def _take(self, frame: bytearray) -> None:
        if int.from_bytes(frame[:4], "big") != self._answer_id or len(frame) < 4:
            raise MalformedFrame("an answer to something else")
        self._answer_id = (self._answer_id + 1) & 0x7FFFFFFF
        if self._logging_in is not None:
            key = self._logging_in.asked_key
            self._logging_in.take(_decode(frame, key, login.VERSION))
            return
        if self._served is None:
            self._greeted(frame)
            return
        if not self._sent:
            raise MalformedFrame("an answer to nothing")
        asked = self._sent[0]
        if len(frame) > AT_ONCE_BYTES:
            self._take_large(frame, asked)
        else:
            self._took(_decode(frame, asked.request.API_KEY, asked.version))

    def _take_large(self, frame: bytearray, asked: _Asked) -> None:
        link = self._link
        assert link is not None
        steps = caught(_decode_in_steps(frame, asked.request.API_KEY, asked.version))
        self._reading = Work(steps, partial(self._has_read, link), owner=self)
        link.pause()
        self._slices.begin(self._reading)

    def _has_read(self, link: Link, response: Any) -> None:
        self._reading = None
        self._network.soon(lambda: self._take_some(link))
        try:
            if isinstance(response, Exception):
                raise response
            self._took(response)
        except MalformedFrame as problem:
            self._is_no_answer(problem)

    def _took(self, response: Any) -> None:
        _tell(self._sent.popleft(), response)
        if self._unsent and not self._sent:  # what waits for a new login
            self._send()

    def sent(self) -> None:
        """Nothing waits for that: what was asked is in memory anyway until it is answered."""

    def finished(self) -> None:
        self.ended()

    def ended(self) -> None:
        if self._link is not None:
            self._fail(KafkaError(Error.NETWORK_EXCEPTION, "the connection ended"))


def _tell(asked: _Asked, answer: Answer) -> None:
    """What one of those who asked makes of it is nothing to the others."""
    try:
        asked.answer.resolve(answer)
    except Exception:
        logger.exception("the answer to %s came to nothing", type(asked.request).__name__)


def _decode(frame: bytearray, api_key: int, version: int) -> Any:
    header_version = headers.response_header_version(api_key, version)
    _, position = codec.decode_prefix(ResponseHeader, header_version, frame)
    response = message_class(f"{spec.api(api_key).name}Response")
    return codec.decode(response, version, frame, position)


def _decode_in_steps(frame: bytearray, api_key: int, version: int) -> Steps[Any]:
    header_version = headers.response_header_version(api_key, version)
    _, position = codec.decode_prefix(ResponseHeader, header_version, frame)
    response = message_class(f"{spec.api(api_key).name}Response")
    found, end = yield from codec.decoder_in_steps(response, version)(frame, position)
    if end != len(frame):
        raise MalformedFrame(f"{len(frame) - end} bytes behind an answer")
    return found
