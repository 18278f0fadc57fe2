"""The proxy between clients and brokers that come, go, speak otherwise, or take their time."""

from __future__ import annotations

import asyncio
import ssl
import struct

import pytest

from kafkalite.client.wire import decode_response
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafkalite.testing.recording import cutting, link, proxy, said
from tests.unit.testing.between import (
    HERE,
    Stand,
    answered,
    asked,
    between,
    frame_from,
    played,
    proxy_to,
    run,
)

VERSION = 9
BROKER = MetadataResponse.Broker
HELLO = bytes.fromhex("160301020001") + bytes(512)  # the start of a TLS handshake


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


def knows(*brokers: MetadataResponse.Broker):
    """A broker that answers any Metadata with these."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = await frame_from(reader)
            number = int.from_bytes(request[4:8], "big")
            writer.write(answered(MetadataResponse(brokers=list(brokers)), VERSION, number))

    return play


async def ask(stand: Stand, port: int | None = None) -> list[MetadataResponse.Broker]:
    reader, writer = await stand.client(port)
    writer.write(asked(MetadataRequest(), VERSION))
    frame = await frame_from(reader)
    writer.close()
    return decode_response(frame, MetadataRequest.API_KEY, VERSION).brokers


# --- other protocols ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "bytes_"),
    [
        ("TLS", HELLO),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n"),
        ("PROXY", b"PROXY TCP4 10.0.0.1 10.0.0.2 5 6\r\n" + asked(MetadataRequest(), VERSION)),
        ("PROXY", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12)),
        ("a frame of", b"SSH-2.0-OpenSSH_9.6\r\n"),
        ("not Kafka's protocol", b"\0\0\1\0hello"),
    ],
)
def test_another_protocol_passes_as_it_comes_and_is_said_to_be_unread(
    name: str, bytes_: bytes
) -> None:
    async def scenario() -> None:
        async with between(echo) as stand:
            reader, writer = await stand.client()
            for part in (bytes_, b"and what comes later"):
                writer.write(part)
                assert await reader.readexactly(len(part)) == part
            writer.close()
        assert [each.kind for each in stand.said] == ["request", "response"]
        assert name in stand.said[0].reason
        assert stand.said[0].frame == bytes_[: link.NOTED_BYTES]
        assert all(each.message is None for each in stand.said)

    run(scenario)


def test_a_server_that_speaks_first_is_heard_at_once() -> None:
    banner = b"\0\0\0\x09ready and a bit more"

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(banner)
        await reader.read()

    async def scenario() -> None:
        async with between(speak) as stand:
            reader, writer = await stand.client()
            assert await reader.readexactly(len(banner)) == banner
            writer.close()

    run(scenario)


def test_tls_through_the_proxy() -> None:
    """A handshake without certificates, and something said in it."""

    def context(side: int) -> ssl.SSLContext:
        made = ssl.SSLContext(side)
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
        made.maximum_version = ssl.TLSVersion.TLSv1_2
        made.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
        return made

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await echo(reader, writer)
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(
            take, HERE, 0, ssl=context(ssl.PROTOCOL_TLS_SERVER)
        )
        async with proxy_to(server.sockets[0].getsockname()[1]) as stand:
            reader, writer = await asyncio.open_connection(
                HERE, stand.proxy.port, ssl=context(ssl.PROTOCOL_TLS_CLIENT)
            )
            said_secretly = b"nobody else can read this" * 10_000
            writer.write(said_secretly)
            assert await reader.readexactly(len(said_secretly)) == said_secretly
            writer.close()
            await writer.wait_closed()
        server.close()
        assert "TLS" in stand.said[0].reason
        assert len(stand.said) == 2

    run(scenario)


def test_tokens_without_headers_are_kept_and_do_not_shift_what_follows() -> None:
    """SASL as it was before it had requests of its own, also with an empty answer."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await frame_from(reader)
        writer.write(answered(SaslHandshakeResponse(), 0, 1))
        await frame_from(reader)
        writer.write(struct.pack(">i", 0))
        await frame_from(reader)
        writer.write(answered(ApiVersionsResponse(), 0, 3))
        await reader.read()

    async def scenario() -> None:
        async with between(play) as stand:
            reader, writer = await stand.client()
            for sent in (
                asked(SaslHandshakeRequest(mechanism="PLAIN"), 0, 1),
                struct.pack(">i", 10) + b"\0user\0pass",
                asked(ApiVersionsRequest(), 0, 3),
            ):
                writer.write(sent)
                await frame_from(reader)
            writer.close()
        assert [each.api for each in stand.said] == [
            "SaslHandshake", "SaslHandshake", None, None, "ApiVersions", "ApiVersions",
        ]  # fmt: skip
        assert stand.said[-1].message is not None

    run(scenario)


# --- ends -----------------------------------------------------------------------------------------


def test_a_client_that_ends_its_way_gets_all_answers() -> None:
    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests = await reader.read()  # to the client's end
        assert requests.count(b"\0\2me") == 3
        for number in range(3):
            await asyncio.sleep(0.01)
            writer.write(answered(MetadataResponse(), VERSION, number))

    async def scenario() -> None:
        async with between(play) as stand:
            reader, writer = await stand.client()
            for number in range(3):
                writer.write(asked(MetadataRequest(), VERSION, number))
            writer.write_eof()
            expected = b"".join(answered(MetadataResponse(), VERSION, each) for each in range(3))
            assert await reader.read() == expected
            writer.close()
        assert len(stand.said) == 6

    run(scenario)


def test_a_broker_that_ends_within_an_answer_is_passed_on_to_its_last_byte() -> None:
    half = answered(MetadataResponse(cluster_id="a cluster"), VERSION)[:-5]

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await frame_from(reader)
        writer.write(half)

    async def scenario() -> None:
        async with between(play) as stand:
            reader, writer = await stand.client()
            writer.write(asked(MetadataRequest(), VERSION))
            assert await reader.read() == half
            writer.close()
        assert stand.said[-1].reason == "the connection ended within a frame"

    run(scenario)


def test_a_broker_that_is_away_is_told_once_and_comes_back() -> None:
    async def scenario() -> None:
        async with played(echo) as port:
            pass
        async with proxy_to(port) as stand:
            for _ in range(3):
                reader, writer = await stand.client()
                assert await reader.read() == b"", "a closed connection, at once"
                writer.close()
            [text] = stand.told
            assert f"broker {HERE}:{port} cannot be reached" in text
            assert "--to" in text
            async with played(knows(), port):
                assert await ask(stand) == []
            assert stand.told[1:] == [f"broker {HERE}:{port} is there again"]

    run(scenario)


# --- much, and slowly -----------------------------------------------------------------------------


def test_who_reads_slowly_slows_down_who_writes() -> None:
    """Either way: what the proxy holds is a frame and what its sockets hold."""
    sent = {"answers": 0}
    records = bytes(1 << 20)
    partition = FetchResponse.Partition(partition_index=0, records=records)
    topic = FetchResponse.Response(topic="t", partitions=[partition])
    answer = answered(FetchResponse(responses=[topic]), 4)

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await frame_from(reader)
            writer.write(answer)
            await writer.drain()
            sent["answers"] += 1

    async def scenario() -> None:
        async with between(play) as stand:
            reader, writer = await stand.client()
            for _ in range(100):
                writer.write(asked(FetchRequest(), 4))
            await asyncio.sleep(0.5)
            assert sent["answers"] < 30
            assert 0 < stand.proxy._held.held < 4 * len(answer)
            for _ in range(100):
                assert await frame_from(reader) == answer[4:]
            writer.close()
        assert stand.proxy._held.held == 0

    run(scenario)


def test_a_trace_that_takes_its_time_slows_down_who_speaks() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()

        async def room() -> None:
            await gate.wait()

        async with played(knows()) as port, proxy_to(port, room=room) as stand:
            asking = asyncio.create_task(ask(stand))
            await asyncio.sleep(0.05)
            assert stand.said == []
            gate.set()
            assert await asking == []

    run(scenario)


@pytest.mark.parametrize("limit", ["of one frame", "of all together"])
def test_a_frame_that_is_too_large_to_hold_passes_and_what_follows_is_read(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if limit == "of one frame":
        monkeypatch.setattr(cutting.Cutter.__init__, "__defaults__", (1000,))
    else:
        monkeypatch.setattr(proxy, "Held", lambda: cutting.Held(limit=1000))
    large = asked(ProduceRequest(transactional_id="x" * 30_000, acks=1), 8, 2)
    reply = answered(MetadataResponse(cluster_id="y" * 30_000), VERSION, 3)

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await frame_from(reader)
        writer.write(answered(ApiVersionsResponse(), 0, 1))
        assert await frame_from(reader) == large[4:]
        writer.write(answered(ApiVersionsResponse(), 0, 2))
        await frame_from(reader)
        for start in range(0, len(reply), 500):
            writer.write(reply[start : start + 500])
            await asyncio.sleep(0.001)
        await frame_from(reader)
        writer.write(answered(ApiVersionsResponse(), 0, 4))
        await reader.read()

    async def scenario() -> None:
        async with between(play) as stand:
            reader, writer = await stand.client()
            for sent in (
                asked(ApiVersionsRequest(), 0, 1), large, asked(MetadataRequest(), VERSION, 3),
                asked(ApiVersionsRequest(), 0, 4),
            ):
                for start in range(0, len(sent), 500):
                    writer.write(sent[start : start + 500])
                    await asyncio.sleep(0.001)
                frame = await frame_from(reader)
                if len(frame) > 1000:
                    assert frame == reply[4:]
            writer.close()
        requests = [each for each in stand.said if each.kind == said.REQUEST]
        assert [each.api for each in requests] == [
            "ApiVersions", "Produce", "Metadata", "ApiVersions",
        ]  # fmt: skip
        assert requests[1].message is None
        assert stand.said[-1].message is not None, "the last answer is read again"
        assert any("clients may leave the proxy" in each for each in stand.told)
        assert stand.proxy._held.held == 0

    run(scenario)


# --- addresses ------------------------------------------------------------------------------------


def test_addresses_where_nobody_can_go_stay_and_that_is_told_once() -> None:
    odd = [BROKER(node_id=1, host="", port=9092), BROKER(node_id=2, host="b", port=70_000)]

    async def scenario() -> None:
        async with between(knows(*odd)) as stand:
            for _ in range(2):
                assert await ask(stand) == odd
        assert len(stand.told) == 2
        assert all("stays in answers as it is" in each for each in stand.told)

    run(scenario)


def test_a_broker_that_advertises_the_proxy_is_not_stood_for_twice() -> None:
    async def scenario() -> None:
        brokers = [BROKER(node_id=1, host="localhost", port=0)]
        async with between(knows(*brokers)) as stand:
            brokers[0].port = stand.proxy.port
            for _ in range(3):
                assert await ask(stand) == brokers
            assert len(stand.proxy._ports) == 1
            assert "advertised.listeners" in stand.told[0]

    run(scenario)


def test_nodes_at_one_address_have_one_port_and_others_their_own() -> None:
    async def scenario() -> None:
        brokers: list[MetadataResponse.Broker] = []
        async with played(knows()) as second, between(knows()) as stand:
            brokers = [
                BROKER(node_id=1, host=HERE, port=stand.to[1]),
                BROKER(node_id=2, host=HERE, port=second),
                BROKER(node_id=3, host=HERE, port=second),
            ]
            async with played(knows(*brokers)) as third, proxy_to(third) as other:
                told = await ask(other)
                assert [each.node_id for each in told] == [1, 2, 3]
                assert told[1].port == told[2].port
                assert len({each.port for each in told}) == 2
                assert {each.host for each in told} == {HERE}
                assert await ask(other, told[1].port) == []

    run(scenario)


def test_a_named_broker_that_cannot_be_reached_is_told_with_its_address() -> None:
    async def scenario() -> None:
        nowhere = BROKER(node_id=7, host="no-such-host.invalid", port=9092)
        async with between(knows(nowhere)) as stand:
            [told] = await ask(stand)
            reader, writer = await stand.client(told.port)
            assert await reader.read() == b""
            writer.close()
        [text] = stand.told
        assert "broker 7 at no-such-host.invalid:9092 cannot be reached" in text
        assert "advertise" in text

    run(scenario)


def test_what_no_spec_knows_is_lost_beside_addresses_and_that_is_told_once() -> None:
    node = BROKER(node_id=1, host="b", port=5)

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            number = int.from_bytes((await frame_from(reader))[4:8], "big")
            known = answered(MetadataResponse(brokers=[node]), VERSION, number)
            assert known.endswith(b"\0")
            frame = known[4:-1] + b"\1\x63\3new"
            writer.write(len(frame).to_bytes(4, "big") + frame)

    async def scenario() -> None:
        async with between(play) as stand:
            for _ in range(2):
                [told] = await ask(stand)
                assert told.host == HERE
        assert stand.said[-1].frame.endswith(b"new"), "the trace has it"
        [text] = [each for each in stand.told if "no spec" in each]
        assert text.startswith("answers to Metadata v9 name brokers")

    run(scenario)


def test_an_answer_that_names_brokers_beside_records_is_passed_whole() -> None:
    endpoint = FetchResponse.NodeEndpoint(node_id=2, host="elsewhere", port=9)
    partition = FetchResponse.Partition(partition_index=0, records=b"records")
    topic = FetchResponse.Response(partitions=[partition])
    response = FetchResponse(responses=[topic], node_endpoints=[endpoint])

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await frame_from(reader)
        writer.write(answered(response, 16))
        await reader.read()

    async def scenario() -> None:
        async with between(play) as stand:
            reader, writer = await stand.client()
            writer.write(asked(FetchRequest(), 16))
            told = decode_response(await frame_from(reader), FetchRequest.API_KEY, 16)
            writer.close()
        assert told.node_endpoints[0].host == HERE
        assert bytes(told.responses[0].partitions[0].records) == b"records"
        message = stand.said[-1].message
        assert message is not None
        assert message.node_endpoints[0].host == "elsewhere"

    run(scenario)
