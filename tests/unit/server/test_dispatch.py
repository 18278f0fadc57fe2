"""What becomes of requests: answered, refused, or ended with the connection."""

import logging
import struct
from types import SimpleNamespace
from typing import Any

import pytest

from kafkalite.config.listeners import BROKER, CONTROLLER
from kafkalite.coordinators.cluster.controller import OutcomeUnknown
from kafkalite.env.clock import ManualClock
from kafkalite.env.disk import FileRange
from kafkalite.env.later import Later
from kafkalite.env.memory import MemoryDisk
from kafkalite.env.slicing import InSteps, Slices
from kafkalite.handlers.api_set import ApiSet
from kafkalite.handlers.call import CloseConnection
from kafkalite.handlers.long_work import LongWork
from kafkalite.protocol import codec
from kafkalite.protocol.errors import Error, KafkaError, MalformedFrame
from kafkalite.protocol.messages import (
    ApiVersionsResponse,
    BrokerHeartbeatRequest,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
    ProduceResponse,
    message_class,
)
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.dispatch import Dispatcher
from kafkalite.server.limits import LimitedLog

HEARTBEAT, FETCH, API_VERSIONS = 12, 1, 18


def request(message: Any, version: int, *, correlation_id: int = 7, has_tags: bool = False) -> Any:
    head = struct.pack(">hhih", message.API_KEY, version, correlation_id, 2) + b"me"
    body = codec.encode(message, version)
    return memoryview(bytearray(head + (b"\0" if has_tags else b"") + body))


class Answering:
    """A dispatcher whose every API is one handler."""

    def __init__(self, handler: Any, kind: str = BROKER) -> None:
        self.clock = ManualClock()
        context: Any = SimpleNamespace(
            long_work=LongWork(Slices(self.clock)), metadata=SimpleNamespace(lasts=True),
            authorizer=None, quotas=SimpleNamespace(is_on=False),
        )
        self.connection = ConnectionInfo("PLAINTEXT", ("127.0.0.1", 9092), ("10.1.2.3", 555))
        self.log = LimitedLog(ManualClock())
        self.dispatcher = Dispatcher(context, self.log, ApiSet(kind, lambda key: handler))

    def __call__(self, frame: Any) -> Any:
        return self.dispatcher.answer(frame, self.connection)


def raising(error: Exception) -> Any:
    def handler(context: Any, call: Any, request: Any) -> Any:
        raise error

    return handler


def heartbeat(**fields: Any) -> Any:
    return request(HeartbeatRequest(group_id="g", member_id="m", **fields), 3)


def body_of(reply: Any, cls: Any, version: int, *, has_tags: bool = False) -> Any:
    data = b"".join(part.read() if isinstance(part, FileRange) else bytes(part) for part in reply)
    size, correlation_id = struct.unpack_from(">ii", data)
    assert size == len(data) - 4
    assert correlation_id == 7
    return codec.decode(cls, version, data[8 + has_tags :])


def test_an_error_of_a_request_that_names_thousands_is_told_a_slice_per_turn():
    names = [str(number) for number in range(1_000)]
    answering = Answering(raising(KafkaError(Error.NOT_CONTROLLER)))
    reply = answering(request(DeleteTopicsRequest(topic_names=names), 3))
    assert isinstance(reply, Later)
    assert not reply.is_resolved
    answering.clock.advance(0)
    told = body_of(reply.value, DeleteTopicsResponse, 3).responses
    assert [(each.name, each.error_code) for each in told] == [
        (name, Error.NOT_CONTROLLER) for name in names
    ]


def test_a_handler_is_told_of_the_request_and_its_response_is_framed():
    told = []

    def handler(context: Any, call: Any, request: Any) -> Any:
        told.append((call, request))
        return HeartbeatResponse(error_code=Error.REBALANCE_IN_PROGRESS)

    reply = Answering(handler)(heartbeat())
    call, message = told[0]
    assert (call.api_key, call.version, call.correlation_id, call.client_id) == (12, 3, 7, "me")
    assert message.group_id == "g"
    assert body_of(reply, HeartbeatResponse, 3).error_code == Error.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("kind", "message", "version", "is_served"),
    [
        (BROKER, HeartbeatRequest(), 3, True),
        (CONTROLLER, HeartbeatRequest(), 3, False),
        (BROKER, BrokerHeartbeatRequest(), 0, False),
        (CONTROLLER, BrokerHeartbeatRequest(), 0, True),
    ],
)
def test_an_api_of_another_kind_of_listener_ends_the_connection(
    kind: str, message: Any, version: int, is_served: bool
) -> None:
    """As in Apache Kafka, at both kinds."""
    name = type(message).__name__.replace("Request", "Response")
    answering = Answering(lambda *_: message_class(name)(), kind)
    has_tags = version in type(message).SPEC.flexible
    reply = answering(request(message, version, has_tags=has_tags))
    assert isinstance(reply, list) == is_served
    assert reply == CloseConnection("unserved") or is_served
    assert answering.log.counts["unserved"] == (not is_served)


@pytest.mark.parametrize("kind", [BROKER, CONTROLLER])
def test_an_unknown_version_of_api_versions_is_answered_at_every_listener(kind: str) -> None:
    frame = memoryview(bytearray(struct.pack(">hhih", API_VERSIONS, 99, 7, -1)))
    response = body_of(Answering(lambda *_: None, kind)(frame), ApiVersionsResponse, 0)
    assert response.error_code == Error.UNSUPPORTED_VERSION


def test_flexible_versions_have_tags_in_both_headers():
    frame = request(HeartbeatRequest(group_id="g"), 4, has_tags=True)
    reply = Answering(lambda *_: HeartbeatResponse())(frame)
    assert body_of(reply, HeartbeatResponse, 4, has_tags=True) == HeartbeatResponse()


def test_a_response_that_comes_later_is_encoded_when_it_comes():
    response: Later[HeartbeatResponse] = Later()
    reply = Answering(lambda *_: response)(heartbeat())
    assert not reply.is_resolved
    response.resolve(HeartbeatResponse(error_code=Error.UNKNOWN_MEMBER_ID))
    assert body_of(reply.value, HeartbeatResponse, 3).error_code == Error.UNKNOWN_MEMBER_ID


def test_a_response_that_is_already_there_is_no_later():
    reply = Answering(lambda *_: Later.of(HeartbeatResponse()))(heartbeat())
    assert isinstance(reply, list)


def test_no_response_is_no_reply():
    assert Answering(lambda *_: None)(heartbeat()) is None


def test_a_handler_can_end_the_connection_now_or_later():
    end = CloseConnection("acks=0 failed")
    assert Answering(lambda *_: end)(heartbeat()) is end
    later: Later[Any] = Later()
    reply = Answering(lambda *_: later)(heartbeat())
    later.resolve(end)
    assert reply.value is end


def test_records_stay_parts_of_files():
    file = MemoryDisk().create("/log")
    file.write_at(0, b"0123456789")
    partition = FetchResponse.Partition(partition_index=0, records=FileRange(file, 2, 5))
    response = FetchResponse(
        responses=[FetchResponse.Response(topic="t", partitions=[partition])]
    )
    reply = Answering(lambda *_: response)(request(FetchRequest(), 4))
    assert any(isinstance(part, FileRange) for part in reply)
    decoded = body_of(reply, FetchResponse, 4)
    assert bytes(decoded.responses[0].partitions[0].records) == b"23456"


def test_an_error_of_the_request_is_a_response_with_that_error():
    reply = Answering(raising(KafkaError(Error.COORDINATOR_NOT_AVAILABLE)))(heartbeat())
    assert body_of(reply, HeartbeatResponse, 3).error_code == Error.COORDINATOR_NOT_AVAILABLE


def in_steps(value: Any) -> Any:
    yield
    return value


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (KafkaError(Error.REBALANCE_IN_PROGRESS), Error.REBALANCE_IN_PROGRESS),
        (ZeroDivisionError("oh"), Error.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_comes_in_place_of_a_response_is_told(outcome, code, caplog):
    """However it comes: at once, out of steps, later, or later and then out of steps."""
    later: Later[Any] = Later()
    last: Later[Any] = Later()
    replies = [
        Answering(lambda *_: outcome)(heartbeat()),
        Answering(lambda *_: Later.of(outcome))(heartbeat()),
        Answering(lambda *_: InSteps(in_steps(outcome)))(heartbeat()),
        Answering(lambda *_: later)(heartbeat()),
        Answering(lambda *_: last)(heartbeat()),
    ]
    later.resolve(outcome)
    last.resolve(InSteps(in_steps(outcome)))
    for reply in replies:
        told = reply.value if isinstance(reply, Later) else reply
        assert body_of(told, HeartbeatResponse, 3).error_code == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KafkaError(Error.REBALANCE_IN_PROGRESS), Error.REBALANCE_IN_PROGRESS),
        (ZeroDivisionError("oh"), Error.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_is_raised_while_a_response_is_made_is_told(error, code, caplog):
    """As if the handler had raised it, whether what it is made of was there or came later."""

    def failing(value: int) -> Any:
        raise error

    later: Later[Any] = Later()
    replies = [
        Answering(lambda context, call, request, given=given: given.map(failing))(heartbeat())
        for given in (Later.of(1), later)
    ]
    later.resolve(1)
    for reply in replies:
        told = reply.value if isinstance(reply, Later) else reply
        assert body_of(told, HeartbeatResponse, 3).error_code == code


@pytest.mark.parametrize(
    "outcome", [KafkaError(Error.REBALANCE_IN_PROGRESS), ZeroDivisionError("oh")]
)
def test_what_cannot_even_be_told_ends_the_connection(outcome, caplog, monkeypatch):
    """However it comes, and nobody waits for it."""

    def failing(*_: Any) -> Any:
        raise StopIteration

    monkeypatch.setattr("kafkalite.server.dispatch.error_reply_in_steps", failing)
    later: Later[Any] = Later()
    last: Later[Any] = Later()
    replies = [
        Answering(raising(outcome))(heartbeat()),
        Answering(lambda *_: outcome)(heartbeat()),
        Answering(lambda *_: InSteps(in_steps(outcome)))(heartbeat()),
        Answering(lambda *_: later)(heartbeat()),
        Answering(lambda *_: last)(heartbeat()),
    ]
    later.resolve(outcome)
    last.resolve(InSteps(in_steps(outcome)))
    for reply in replies:
        told = reply.value if isinstance(reply, Later) else reply
        assert isinstance(told, CloseConnection)
    assert "cannot be told of" in caplog.text


def test_who_asked_for_what_may_last_or_not_is_told_nothing():
    outcome = OutcomeUnknown(Error.KAFKA_STORAGE_ERROR)
    for response in (outcome, Later.of(outcome), InSteps(in_steps(outcome))):
        reply = Answering(lambda *_, response=response: response)(heartbeat())
        told = reply.value if isinstance(reply, Later) else reply
        assert isinstance(told, CloseConnection)


def test_a_mistake_of_ours_is_logged_with_its_stack_and_told_as_such(caplog):
    reply = Answering(raising(ZeroDivisionError("oh")))(heartbeat())
    assert body_of(reply, HeartbeatResponse, 3).error_code == Error.UNKNOWN_SERVER_ERROR
    assert caplog.records[0].levelno == logging.ERROR
    assert caplog.records[0].exc_info is not None


def test_a_mistake_over_a_produce_ends_the_connection(caplog):
    """Told of an unknown error, an idempotent producer would send its batches twice."""
    reply = Answering(raising(ZeroDivisionError("oh")))(request(ProduceRequest(), 3))
    assert isinstance(reply, CloseConnection)
    assert caplog.records[0].levelno == logging.ERROR


def test_nothing_that_comes_later_is_no_reply():
    later: Later[Any] = Later()
    answer = Answering(lambda *_: later)(heartbeat())
    later.resolve(None)
    assert answer.value == []


def test_a_response_that_has_no_bytes_is_told_as_a_mistake(caplog):
    outcome = HeartbeatResponse(error_code=10**9)
    for answer in (lambda *_: outcome, lambda *_: InSteps(in_steps(outcome))):
        reply = Answering(answer)(heartbeat())
        told = reply.value if isinstance(reply, Later) else reply
        assert body_of(told, HeartbeatResponse, 3).error_code == Error.UNKNOWN_SERVER_ERROR
        assert caplog.records[0].levelno == logging.ERROR
        assert caplog.records[0].exc_info is not None


def test_a_response_to_a_produce_that_has_no_bytes_ends_the_connection(caplog):
    reply = Answering(lambda *_: ProduceResponse(throttle_time_ms=10**20))(
        request(ProduceRequest(), 3)
    )
    assert isinstance(reply, CloseConnection)
    assert caplog.records[0].levelno == logging.ERROR


def test_every_strict_prefix_of_a_request_ends_the_connection(caplog):
    answer = Answering(lambda *_: HeartbeatResponse())
    whole = heartbeat()
    for end in range(len(whole)):
        assert isinstance(answer(whole[:end]), CloseConnection), end
    assert all(record.exc_info is None for record in caplog.records)


def test_a_malformed_request_is_one_line_that_says_who_sent_it(caplog):
    answer = Answering(lambda *_: HeartbeatResponse())
    answer.connection.software_name = "some-client"
    answer(memoryview(bytearray(heartbeat())[:-1]))
    (record,) = caplog.records
    for text in ("10.1.2.3:555", "some-client", "'me'", "Heartbeat v3", "PLAINTEXT"):
        assert text in record.message
    assert "\n" not in record.message


def test_bytes_behind_a_request_are_passed_over(caplog):
    """As Apache Kafka does; librdkafka 2.16 sends two of them behind Metadata v13."""
    answer = Answering(lambda *_: HeartbeatResponse())
    assert answer(memoryview(bytearray(heartbeat()) + b"\0\0"))
    assert not caplog.records


def test_what_a_handler_finds_malformed_ends_the_connection():
    assert isinstance(Answering(raising(MalformedFrame("x")))(heartbeat()), CloseConnection)


@pytest.mark.parametrize(("key", "version"), [(12, 99), (12, 0x7FFF), (9999, 0), (-1, 0), (12, -1)])
def test_what_is_not_served_ends_the_connection(key, version):
    frame = memoryview(bytearray(struct.pack(">hhih", key, version, 7, -1)))
    assert isinstance(Answering(lambda *_: HeartbeatResponse())(frame), CloseConnection)


@pytest.mark.parametrize("version", [5, 99, 0x7FFF, -1])
def test_api_versions_of_the_future_is_answered_in_version_0(version):
    frame = memoryview(bytearray(struct.pack(">hhih", API_VERSIONS, version, 7, -1)))
    response = body_of(Answering(None)(frame), ApiVersionsResponse, 0)
    assert response.error_code == Error.UNSUPPORTED_VERSION
    assert [(k.api_key, k.min_version, k.max_version) for k in response.api_keys] == [(18, 0, 4)]


def test_http_is_answered_in_http_and_logged_as_such(caplog):
    answer = Answering(None)
    reply = answer.dispatcher.refuse(memoryview(b"GET / HTTP"), 1195725856, answer.connection)
    assert reply.startswith(b"HTTP/1.1 400")
    assert "HTTP" in caplog.records[0].message


def test_a_frame_too_large_is_cut_off_without_a_word(caplog):
    answer = Answering(None)
    assert answer.dispatcher.refuse(memoryview(b"\x7f\0\0\0"), 0x7F000000, answer.connection) == b""
    assert "socket.request.max.bytes" in caplog.records[0].message
