"""What the recorder understands: connections, addresses in answers, and the file of a trace."""

from __future__ import annotations

import gc
import random
import re
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from kafkalite.client.wire import NoReply, Wire, decode_response, request_frame
from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeQuorumResponse,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    StreamsGroupHeartbeatResponse,
    message_class,
)
from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.testing.recording import trace
from kafkalite.testing.recording.addresses import addresses, has_addresses
from kafkalite.testing.recording.conversation import Conversation, Peer
from kafkalite.testing.recording.proxy import Proxy
from kafkalite.testing.recording.recorder import Recorder
from tests.unit.protocol.random_messages import random_message

TIMEOUT_S = 10


def response_frame(message, version: int, correlation_id: int) -> bytes:
    header = headers.encode_response_header(message.API_KEY, version, correlation_id)
    return header + codec.encode(message, version)


def conversation() -> Conversation:
    return Conversation(3, Peer("broker", 9092, node_id=7))


# --- one connection -------------------------------------------------------------------------------


def test_answers_are_those_to_the_questions() -> None:
    spoken = conversation()
    spoken.request(request_frame(MetadataRequest(), 9, 1, "me"), 10)
    spoken.request(request_frame(ApiVersionsRequest(), 3, 2, "me"), 11)
    first = spoken.response(response_frame(MetadataResponse(), 9, 1), 12)
    second = spoken.response(response_frame(ApiVersionsResponse(), 3, 2), 13)
    assert (first.api, first.version, first.client_id) == ("Metadata", 9, "me")
    assert (second.api, second.connection, second.node_id) == ("ApiVersions", 3, 7)


def test_what_is_never_answered_is_passed_over() -> None:
    spoken = conversation()
    spoken.request(request_frame(ProduceRequest(acks=0), 9, 1, "me"), 10)
    assert not spoken.is_owed
    spoken.request(request_frame(MetadataRequest(), 9, 2, "me"), 11)
    assert spoken.response(response_frame(MetadataResponse(), 9, 2), 12).api == "Metadata"


def test_what_nobody_asked_does_not_take_the_place_of_what_was_asked() -> None:
    spoken = conversation()
    spoken.request(request_frame(MetadataRequest(), 9, 1, "me"), 10)
    assert "under 7" in spoken.response(response_frame(MetadataResponse(), 9, 7), 11).reason
    assert spoken.response(response_frame(MetadataResponse(), 9, 1), 12).api == "Metadata"


def test_refused_version_of_api_versions_is_answered_in_the_first() -> None:
    spoken = conversation()
    frame = request_frame(ApiVersionsRequest(), 3, 1, "me")
    asked = spoken.request(frame[:2] + (60).to_bytes(2, "big") + frame[4:], 10)
    answered = spoken.response(response_frame(ApiVersionsResponse(error_code=35), 0, 1), 11)
    assert (asked.version, asked.message, answered.version) == (60, None, 0)
    assert answered.message is not None
    assert answered.message.error_code == 35


@pytest.mark.parametrize("frame", [b"", b"\0", b"\0\3\0\1", b"\x7f\0\0\0\0\0\0\1\0\0" * 3])
def test_what_is_no_request_is_kept_as_it_is(frame: bytes) -> None:
    spoken = conversation()
    assert spoken.request(frame, 10).frame == frame
    assert spoken.response(frame, 11).message is None


# --- addresses ------------------------------------------------------------------------------------


def test_every_answer_that_names_brokers_is_known() -> None:
    found = {
        spec.api(key).name
        for key in spec.api_files()
        if has_addresses(f"{spec.api(key).name}Response")
    }
    assert {"Metadata", "FindCoordinator", "DescribeCluster", "Produce", "Fetch"} <= found
    assert not found & {"DescribeAcls", "StreamsGroupHeartbeat", "StreamsGroupDescribe"}


def test_addresses_of_nodes_are_found_and_others_are_not() -> None:
    node = DescribeQuorumResponse.Node(
        node_id=4, listeners=[DescribeQuorumResponse.Listener(name="C", host="c", port=1)]
    )
    [found] = addresses(DescribeQuorumResponse(nodes=[node]))
    assert (found.address, found.node_id) == (("c", 1), 4)
    nobody = FindCoordinatorResponse(error_code=15, node_id=-1, host="", port=-1)
    assert list(addresses(nobody)) == []
    assert list(addresses(StreamsGroupHeartbeatResponse())) == []


# --- the file -------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", sorted(spec.api_files()))
def test_lines_say_all_that_messages_said(key: int) -> None:
    api, rng = spec.api(key), random.Random(key)
    for kind in ("Request", "Response"):
        cls = message_class(f"{api.name}{kind}")
        for version in {api.versions.start, api.versions.stop - 1}:
            message = random_message(rng, cls, version)
            said = trace.Said(
                kind.lower(), 5, 1, "h:1", None, api.name, version, 2, "me", message
            )
            again = trace.from_json(trace.to_json(said))
            assert codec.encode(again.message, version) == codec.encode(message, version)


def test_wrong_line_is_told_by_its_number() -> None:
    with pytest.raises(ValueError, match="line 2"):
        list(trace.read(["", '{"kind": "request"}']))


# --- between a client and brokers -----------------------------------------------------------------


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=3) as kafka:
        yield kafka


@pytest.fixture
def recorder(kafka: EmbeddedKafka) -> Iterator[Recorder]:
    with Recorder(f"127.0.0.1:{kafka.port}") as recorder:
        yield recorder


def ask_brokers(port: int) -> list:
    wire = Wire("127.0.0.1", port)
    wire.send(request_frame(MetadataRequest(topics=[]), 12, 9, "me"))
    frame = wire.receive(TIMEOUT_S)
    wire.close()
    assert isinstance(frame, bytes)
    return decode_response(frame, 3, 12).brokers


def test_client_stays_with_the_proxy(kafka: EmbeddedKafka, recorder: Recorder) -> None:
    through = ask_brokers(recorder.proxy.port)
    assert recorder.proxy.port in {each.port for each in through}
    assert not {each.port for each in through} & set(kafka.ports)
    for each in through:
        assert ask_brokers(each.port) == through
    assert {each.broker for each in recorder.said} == {f"127.0.0.1:{port}" for port in kafka.ports}
    told = recorder.said[1].message
    assert told is not None
    assert {each.port for each in told.brokers} == set(kafka.ports), "as the broker said it"


@pytest.mark.parametrize(("host", "brokers"), [("127.0.0.1", 3), ("::1", 1), ("localhost", 2)])
def test_a_recorder_takes_what_clients_take(host: str, brokers: int) -> None:
    with (
        EmbeddedKafka(host=host, brokers=brokers) as kafka,
        Recorder(kafka.bootstrap_servers) as recorder,
    ):
        assert len(ask_brokers(recorder.proxy.port)) == brokers


@pytest.mark.parametrize("address", ["", "localhost", ":9092", "host:", "host:kafka"])
def test_an_address_that_is_none_is_named(address: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{address!r}: expected HOST:PORT")):
        Recorder(address)


def test_a_recorder_that_cannot_start_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(self: Proxy) -> None:
        raise OSError("no port")

    monkeypatch.setattr(Proxy, "start", refused)
    before = set(threading.enumerate())
    recorder = Recorder("localhost:9092")
    with pytest.raises(OSError, match="no port"), recorder:
        pass
    assert set(threading.enumerate()) == before
    assert recorder._loop.is_closed()


def test_bytes_that_are_no_frames_go_through(recorder: Recorder) -> None:
    wire = Wire("127.0.0.1", recorder.proxy.port)
    wire.send(request_frame(ApiVersionsRequest(), 0, 1, "me"))
    assert isinstance(wire.receive(TIMEOUT_S), bytes)
    assert wire._socket is not None
    wire._socket.sendall(b"\xff" * 100)
    assert wire.receive(TIMEOUT_S) == NoReply.CLOSED, "the broker's own answer to it"
    assert recorder.said[0].api == "ApiVersions"
    assert recorder.said[-1].frame == b"\xff" * 100


def test_a_recorder_that_stops_leaves_nothing_open() -> None:
    """Connections that are at work, that were only accepted, and that nobody has taken yet."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        with EmbeddedKafka() as kafka, ExitStack() as stack:
            for at_work in (0, 1, 8):
                with Recorder(kafka.bootstrap_servers) as recorder:
                    address = ("127.0.0.1", recorder.proxy.port)
                    for _ in range(at_work):
                        wire = stack.enter_context(closing(Wire(*address)))
                        wire.send(request_frame(ApiVersionsRequest(), 0, 1, "me"))
                        wire.receive(TIMEOUT_S)
                    for _ in range(8):
                        stack.enter_context(socket.create_connection(address, TIMEOUT_S))
        gc.collect()
    assert [str(each.message) for each in warned] == []
