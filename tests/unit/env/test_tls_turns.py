"""TLS of a peer with many small records: some in each turn of the loop, and little of it waits."""

from __future__ import annotations

from random import Random

import pytest

from kafkalite.env.tls_link import FIRST_ROOM, TURN_BYTES, TURN_RECORDS, TlsLink
from tests.unit.security.wire import World, offer


def records_of(link: TlsLink, data: bytes, size: int) -> bytes:
    """Each with so much of the data, as the peer of a link would send them."""
    records = bytearray()
    for start in range(0, len(data), size):
        link._tls.write(data[start : start + size])
        records += link._outgoing.read()
    return bytes(records)


@pytest.mark.parametrize("pauses_at", [None, TURN_RECORDS // 2])
def test_one_turn_decrypts_no_more_records_than_its_share(pauses_at: int | None) -> None:
    world = World(client=offer()).meet()
    data = Random(7).randbytes(5 * TURN_RECORDS)
    world.far.out += records_of(world.client.link, data, 1)
    world.server.pauses_at = pauses_at
    before, turns = 0, 0
    while len(world.server.read) < len(data):
        world.turn()
        read, before = len(world.server.read) - before, len(world.server.read)
        assert read <= 2 * TURN_RECORDS
        assert len(world.server.link._raw) <= FIRST_ROOM
        turns += 1
        assert turns < 100
        if pauses_at is not None and world.near.is_paused:
            world.server.link.resume()
    assert world.server.read == data
    world.server.pauses_at = None
    world.client.link.send([b"and more"])
    world.run()
    assert world.server.read == data + b"and more"


def test_the_end_comes_behind_records_that_wait_for_a_turn() -> None:
    world = World(client=offer()).meet()
    data = Random(7).randbytes(600)
    records = records_of(world.client.link, data, 1)
    buffer = world.server.link.buffer()
    buffer[: len(records)] = records
    world.server.link.received(len(records))
    world.server.link.finished()
    assert world.server.said == []
    world.run()
    assert world.server.read == data
    assert world.server.said == ["finished"]


def test_a_peer_with_large_records_is_read_from_in_large_pieces() -> None:
    world = World(client=offer()).meet()
    link = world.server.link
    assert len(link.buffer()) == FIRST_ROOM
    world.client.link.send([bytes(TURN_BYTES)])
    world.run()
    assert len(link.buffer()) == len(link._scratch) > FIRST_ROOM
    world.far.out += records_of(world.client.link, bytes(2 * TURN_RECORDS), 1)
    world.run()
    assert len(link.buffer()) == FIRST_ROOM
