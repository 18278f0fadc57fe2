"""Any bytes as a frame: answered or the connection ends; the broker goes on, its log stays small.

With KAFKALITE_HOSTILE=full every frame is tried with ten seeds, otherwise one in five with one.
"""

import socket
import struct
from contextlib import suppress

import pytest

from tests.hostile.malformed import frames
from tests.hostile.peers import IS_FULL, open_sockets, report, resident_bytes, until

SEEDS = range(1, 11) if IS_FULL else range(1, 2)
EVERY = 1 if IS_FULL else 5
LOG_BYTES_PER_FRAME = 100
GROWTH_BYTES = 32_000_000
# What is well-formed after all may wait for others, as it asks; the end of its peer ends it.
ANSWER_TIMEOUT_S = 1.0
WAITING_APIS = ("Fetch", "JoinGroup", "SyncGroup", "ShareFetch", "Produce")


@pytest.mark.timeout(1800)
def test_malformed_frames_are_answered_or_end_the_connection(attacked, make_healthy):
    broker = attacked()
    healthy = make_healthy(broker)
    _throw(broker, list(frames(99))[::40])  # every handler is imported, every decoder compiled
    log_before, sockets_before = len(broker.log()), open_sockets(broker)
    memory_before = resident_bytes(broker)
    thrown, answered = 0, 0
    for seed in SEEDS:
        chosen = list(frames(seed))[seed % EVERY :: EVERY]
        thrown += len(chosen)
        answered += _throw(broker, chosen)
        healthy.work(50)
    until(lambda: open_sockets(broker) <= sockets_before + 2, timeout_s=5)
    log = broker.log()
    grown = resident_bytes(broker) - memory_before
    report(
        frames=thrown,
        answered=answered,
        log_bytes_per_frame=(len(log) - log_before) // thrown,
        grown_mb=round(grown / 1e6, 1),
    )
    first_mistake = log.find("Traceback")
    assert first_mistake < 0, log[first_mistake : first_mistake + 4_000]
    assert (len(log) - log_before) // thrown <= LOG_BYTES_PER_FRAME
    assert grown <= GROWTH_BYTES


def _throw(broker, chosen):
    """Sends each on a connection of its own; returns how many were answered."""
    answered = 0
    for what, frame in chosen:
        with socket.create_connection((broker.host, broker.port), 5) as peer:
            peer.settimeout(ANSWER_TIMEOUT_S)
            peer.sendall(struct.pack(">i", len(frame)) + frame)
            try:
                answered += bool(peer.recv(65_536))
            except ConnectionResetError:
                continue
            except TimeoutError:
                assert what.startswith(WAITING_APIS), f"{what}: neither answered nor closed"
    return answered


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 104_857_601])
def test_a_size_that_no_frame_has_ends_the_connection(attacked, size):
    broker = attacked()
    with socket.create_connection((broker.host, broker.port), 5) as peer:
        peer.settimeout(5)
        peer.sendall(struct.pack(">i", size) + b"x" * 100)
        with suppress(ConnectionResetError):
            assert peer.recv(100) == b""
    assert "socket.request.max.bytes" in broker.log()
