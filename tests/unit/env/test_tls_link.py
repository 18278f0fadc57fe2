"""TLS over a wire in memory: whatever peers do, links and handshakes end as they should."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from datetime import timedelta
from random import Random

import pytest

from kafkalite.env.client_hello import RECORD_BYTES, RECORD_HEAD_BYTES
from kafkalite.env.disk import FileRange
from kafkalite.env.handshakes import LAST_WORDS_MS, STEPS_PER_TURN
from kafkalite.env.memory import MemoryDisk
from kafkalite.env.network import Part
from kafkalite.env.tls import server_context
from kafkalite.env.tls_link import (
    ANSWERS_BYTES,
    HANDSHAKE_BYTES,
    PIECE_BYTES,
    TURN_BYTES,
    WINDOW_BYTES,
    TlsLink,
)
from tests.unit.security import keys
from tests.unit.security.wire import TIMEOUT_MS, End, Listening, World, offer

RECORDS_BYTES = PIECE_BYTES + 4096  # a piece when it is encrypted


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("is_rsa", [False, True])
@pytest.mark.parametrize("room", [1 << 20, 999, 1])
def test_what_is_sent_is_read_both_ways(version: str, is_rsa: bool, room: int) -> None:
    server = offer(keys.server(is_rsa), versions=[version])
    world = World(server, offer(), room=room).meet()
    data = Random(7).randbytes(300_000 if room > 1 else 3_000)
    world.client.link.send([data[:10], data[10:]])
    world.server.link.send([data, b"and more"])
    world.run()
    assert world.server.read == data
    assert world.client.read == data + b"and more"
    assert world.server.link.version == version
    assert world.server.link.unsent_bytes == 0


def test_both_ends_tell_and_hear_of_the_end_once() -> None:
    world = World(client=offer()).meet()
    world.client.link.send([b"a last word"])
    world.client.link.close()
    world.run()
    assert world.server.read == b"a last word"
    assert world.server.said == ["finished"], "the server may still answer"
    world.server.link.close()
    world.run()
    assert (world.server.said, world.client.said) == (["finished", "ended"], ["ended"])
    world.server.link.abort()
    world.run()
    assert world.server.said == ["finished", "ended"]


def test_an_answer_reaches_a_peer_that_has_said_it_sends_no_more() -> None:
    world = World(client=offer()).meet()
    with pytest.raises(ssl.SSLWantReadError):
        world.client.link._tls.unwrap()  # says so, and goes on reading
    world.client.link._flush()
    world.run()
    assert world.server.said == ["finished"]
    world.server.link.send([b"an answer"])
    world.run()
    assert world.far.other.taken > 0
    assert world.near.unsent_bytes == 0


def test_a_wire_that_is_cut_ends_both() -> None:
    world = World(client=offer()).meet()
    world.near.abort()
    world.far.abort()
    assert (world.server.said, world.client.said) == (["ended"], ["ended"])
    world.server.link.send([b"nobody is there"])
    world.run()
    assert world.server.link.unsent_bytes == 0


def test_parts_of_files_are_read_as_they_go() -> None:
    world = World(client=offer()).meet()
    disk = MemoryDisk()
    disk.make_directory("d")
    file = disk.create("d/f")
    data = Random(3).randbytes(5_000_000)
    file.write_at(0, data)
    read: list[int] = []

    class Counted:
        path = "d/f"

        def read_at(self, position: int, length: int) -> bytes:
            read.append(length)
            return file.read_at(position, length)

    link = world.server.link
    link.send([b"head", FileRange(Counted(), 100, len(data) - 100), b"tail"])  # type: ignore[arg-type]
    assert sum(read) <= TURN_BYTES
    assert link.held_bytes <= WINDOW_BYTES + RECORDS_BYTES + 4
    assert link.unsent_bytes >= len(data) - sum(read)
    world.run()
    assert world.client.read == b"head" + data[100:] + b"tail"
    assert world.near.most_out <= WINDOW_BYTES + RECORDS_BYTES


def test_thousands_of_small_parts_of_files_go_some_in_each_turn() -> None:
    world = World(client=offer()).meet()
    data = Random(3).randbytes(100_000)
    read: list[int] = []

    class Counted:
        path = "d/f"

        def read_at(self, position: int, length: int) -> bytes:
            read.append(position)
            return data[position : position + length]

    parts = [FileRange(Counted(), 20 * number, 20) for number in range(5_000)]  # type: ignore[arg-type]
    world.server.link.send(parts)
    assert len(read) < 600
    world.run()
    assert world.client.read == data


def test_a_file_that_ends_early_ends_the_link(caplog: pytest.LogCaptureFixture) -> None:
    world = World(client=offer()).meet()
    disk = MemoryDisk()
    disk.make_directory("d")
    file = disk.create("d/f")
    file.write_at(0, b"short")
    world.server.link.send([FileRange(file, 0, 10)])
    assert world.server.said == ["ended"]
    assert "a reply to client:1 was cut off" in caplog.text


def test_one_turn_encrypts_no_more_than_its_share() -> None:
    world = World(client=offer()).meet()
    world.near.swallows = True
    world.server.link.send([bytes(4 * TURN_BYTES)])
    assert TURN_BYTES <= len(world.near.out) < 1.1 * TURN_BYTES
    world.run()
    assert len(world.client.read) == 4 * TURN_BYTES


def test_a_reader_that_pauses_is_given_the_rest_when_it_goes_on() -> None:
    world = World(client=offer()).meet()
    world.server.pauses_at = 100_000
    world.client.link.send([bytes(1_000_000)])
    world.client.link.close()
    world.run()
    paused_at = len(world.server.read)
    assert 100_000 <= paused_at < 1_000_000
    assert world.server.said == []
    world.server.pauses_at = None
    world.server.link.resume()
    world.run()
    assert len(world.server.read) == 1_000_000
    assert world.server.said == ["finished"]


def test_a_link_goes_on_with_another_receiver() -> None:
    world = World(client=offer()).meet()
    world.server.link.pause()
    world.client.link.send([b"for the next one"])
    world.run()
    other = Listening()
    world.server.link.start(other)
    world.run()
    assert not world.server.read
    assert other.read == b"for the next one"


@pytest.mark.parametrize("owed_bytes", [0, 2 * WINDOW_BYTES])
def test_who_has_tls_answer_and_takes_nothing_is_cut_off(
    owed_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Answers are not paced as replies are: a peer may ask for new keys as often as it likes."""
    world = World(client=offer()).meet()
    world.server.link.send([bytes(owed_bytes)])
    world.far.pause()
    for _ in range(9):
        world.server.link._outgoing.write(bytes(ANSWERS_BYTES // 8))
        world.client.link.send([b"whatever makes it answer"])
        world.run()
        assert world.near.unsent_bytes <= ANSWERS_BYTES + 3 * WINDOW_BYTES
    assert world.server.link._is_closing
    assert "it asks for new keys and takes no answers" in caplog.text


def test_garbage_on_an_open_link_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    world = World(client=offer()).meet()
    world.far.send([b"\x17\x03\x03\x00\x20" + bytes(32)])
    world.run()
    assert world.server.said == ["ended"]
    assert caplog.text.count("the TLS link of client:1 ends") == 1


# --- certificates ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_certificate_that_is_required_is_shown(version: str) -> None:
    server = offer(keys.server(), client_auth="required", versions=[version])
    world = World(server, offer(keys.client())).meet()
    assert world.server.link.peer_certificate is not None


@pytest.mark.parametrize(
    ("client_auth", "shown", "why"),
    [
        ("required", None, "peer did not return a certificate"),
        ("required", "expired", "certificate has expired"),
        ("requested", "stranger", "self-signed certificate in certificate chain"),
        ("requested", "expired", "certificate has expired"),
    ],
)
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_wrong_certificate_is_refused(
    client_auth: str, shown: str | None, why: str, version: str
) -> None:
    issued = None if shown is None else getattr(keys, shown)()
    server = offer(keys.server(), client_auth=client_auth, versions=[version])
    world = World(server, offer(issued))
    world.run()
    assert why in world.failure("server")
    assert world.near.is_closing


def test_no_certificate_is_fine_where_one_is_only_requested() -> None:
    world = World(offer(keys.server(), client_auth="requested"), offer()).meet()
    assert world.server.link.peer_certificate is None


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize(
    ("lists", "why"),
    [
        (lambda: keys.taken_back(keys.client()), "certificate revoked"),
        (lambda: keys.taken_back(until=timedelta(days=-1)), "CRL has expired"),
        (lambda: keys.taken_back(of=keys.authority("another root")), "unable to get certificate"),
        (lambda: keys.taken_back(keys.server()), ""),
    ],
)
def test_a_certificate_that_was_taken_back_is_refused(
    lists: Callable[[], str], why: str, version: str
) -> None:
    server = offer(
        keys.server(), client_auth="required", versions=[version], revoked=lists().encode()
    )
    world = World(server, offer(keys.client()))
    world.run()
    assert why in world.failure("server") if why else world.link("server").peer_certificate


@pytest.mark.parametrize(
    ("name", "trusted", "why"),
    [
        ("elsewhere", None, "Hostname mismatch"),
        ("127.0.0.2", None, "IP address mismatch"),
        ("localhost", [], "self-signed certificate in certificate chain"),
    ],
)
def test_a_caller_compares_the_name_it_called(name: str, trusted: list | None, why: str) -> None:
    client = offer() if trusted is None else offer(trusted=trusted)
    world = World(client=client, name=name)
    world.run()
    assert why in world.failure("client")
    assert "alert" in world.failure("server")


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
def test_names_and_addresses_are_those_of_the_certificate(name: str) -> None:
    World(client=offer(), name=name).meet()


# --- handshakes that come to nothing --------------------------------------------------------------


def test_a_handshake_that_drips_has_an_end() -> None:
    world = World()
    world.far.send([b"\x16\x03\x01\x02\x00"])
    for _ in range(10):
        world.run()
        world.clock.advance(TIMEOUT_MS // 10 - 1)
        world.far.send([b"\x01"])
    assert len(world.handshakes) == 1
    world.clock.advance(10)
    assert world.failure("server") == f"it is not over within {TIMEOUT_MS} ms"
    assert len(world.handshakes) == 0


@pytest.mark.parametrize(
    "said",
    [b"\0\0\0\x10\0\x12\0", b"GET / HTTP/1.1\r\n\r\n", b"\x80\x2e\x01" + bytes(60), b"\xff" * 9],
)
def test_garbage_is_no_handshake(said: bytes) -> None:
    world = World()
    world.far.send([said])
    world.run()
    assert world.failure("server")
    assert world.answering.link.is_foreign
    assert len(world.handshakes) == 0


def test_an_enormous_hello_is_cut_off() -> None:
    world = World()
    record = b"\x16\x03\x01\x40\x00"
    world.far.send([record + b"\x01\xff\xff\xff" + bytes(0x4000 - 4)])
    for _ in range(60):
        world.far.send([record + bytes(0x4000)])
    world.run()
    assert world.failure("server")
    assert world.far.taken <= HANDSHAKE_BYTES + (1 << 20)


@pytest.mark.parametrize("is_silent", [True, False])
def test_who_goes_in_the_middle_has_failed(is_silent: bool) -> None:
    world = World()
    if not is_silent:
        world.far.send([b"\x16\x03\x01"])
        world.run()
    world.far.close()
    world.run()
    assert world.failure("server") == "it has gone in the middle of it"
    assert world.outcomes["server"].is_silent is is_silent  # type: ignore[union-attr]


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_who_is_found_gone_by_the_last_words_of_a_handshake_has_failed(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(offer(keys.server(), versions=[version]), offer())
    sent: list[object] = []
    send = world.near.send

    def send_until_it_is_reset(parts: Sequence[Part]) -> None:
        sent.append(parts)
        send(parts)
        if len(sent) == 2:  # the first was the hello, this is what ends the handshake
            world.near.abort()

    monkeypatch.setattr(world.near, "send", send_until_it_is_reset)
    world.run()
    assert len(sent) == 2
    assert world.failure("server") == "it has gone in the middle of it"
    assert len(world.handshakes) == 0


def test_who_takes_nothing_is_not_waited_for() -> None:
    world = World(client=offer())
    world.soon.popleft()()  # the client's hello is under way
    world.near.other.carry()
    world.soon.popleft()()  # the server has answered, and nobody reads that
    assert world.near.unsent_bytes > 0
    world.clock.advance(TIMEOUT_MS)
    assert world.failure("server")
    assert not world.near.is_ended
    world.clock.advance(LAST_WORDS_MS)
    assert world.near.is_ended


def test_stopped_handshakes_are_told_and_dropped_ones_not() -> None:
    stopped, dropped = World(), World()
    stopped.handshakes.stop()
    assert stopped.failure("server") == "this side ends"
    dropped.answering.cancel()
    dropped.clock.advance(2 * TIMEOUT_MS)
    assert (dropped.outcomes, dropped.near.is_ended) == ({}, True)


def test_no_more_steps_than_a_share_are_done_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    steps: list[int] = []
    ends = []
    for number in range(3 * STEPS_PER_TURN):
        near, far = End(f"client-{number}", 1 << 20), End("server", 1 << 20)
        near.other, far.other = far, near
        context = server_context(offer(keys.server()))
        world.handshakes.answer(near, context, lambda outcome: None)
        ends.append(far)
    monkeypatch.setattr(TlsLink, "advance", lambda link: steps.append(1))
    for far in ends:
        far.send([b"no TLS"])
        far.carry()
    turns = []
    while world.soon:
        world.soon.popleft()()
        turns.append(len(steps))
    assert turns == [STEPS_PER_TURN, 2 * STEPS_PER_TURN, 3 * STEPS_PER_TURN]


def test_a_record_that_is_not_whole_is_kept_as_it_came() -> None:
    world = World(client=offer()).meet()
    world.client.link.send([bytes(16_000)])
    record = bytes(world.far.out)
    world.far.out = bytearray(record[:-1])
    world.run()
    assert world.server.link._incoming.pending == 0
    assert not world.server.read
    world.far.send([record[-1:]])
    world.run()
    assert world.server.read == bytes(16_000)


def test_openssl_is_given_no_more_than_a_record_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(client=offer()).meet()
    given: list[int] = []
    link = world.server.link
    give = TlsLink._give

    def counted(link: TlsLink) -> bool:
        has_more = give(link)
        given.append(link._incoming.pending)
        return has_more

    monkeypatch.setattr(TlsLink, "_give", counted)
    world.client.link.send([bytes(500_000)])
    world.run()
    assert len(world.server.read) == 500_000
    assert link is world.server.link
    assert max(given) <= RECORD_HEAD_BYTES + RECORD_BYTES


def test_what_is_sent_leaves_in_one_piece_for_each_record(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(client=offer()).meet()
    sizes: list[int] = []
    send = world.near.send

    def measured(parts: Sequence[Part]) -> None:
        sizes.extend(map(len, parts))
        send(parts)

    monkeypatch.setattr(world.near, "send", measured)
    world.server.link.send([bytes(500_000)])
    world.run()
    assert len(world.client.read) == 500_000
    assert max(sizes) <= RECORD_HEAD_BYTES + RECORD_BYTES, "OpenSSL keeps a buffer as large as that"


def test_renegotiation_is_refused() -> None:
    world = World(offer(keys.server(), versions=["TLSv1.2"]), offer()).meet()
    assert world.server.link._tls.context.options & ssl.OP_NO_RENEGOTIATION
