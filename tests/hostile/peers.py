"""Peers that mean no good, in numbers, and what they cost the broker."""

from __future__ import annotations

import os
import resource
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil

from bench.raw_client import Produce, RawClient, Result, make_batch, make_topic, run
from tests.compat.brokers import Broker

# KAFKALITE_HOSTILE=full: the sizes that the design promises. Otherwise a tenth, without timings.
IS_FULL = os.environ.get("KAFKALITE_HOSTILE") == "full"
CONNECTIONS = 10_000 if IS_FULL else 1_000
CONNECTING_AT_ONCE = 500


def allow_open_files(count: int) -> None:
    """Raises this process's limit, which the brokers that it starts inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(hard, count)))


def resident_bytes(broker: Broker) -> int:
    return int(psutil.Process(broker.pid).memory_info().rss)


def open_sockets(broker: Broker) -> int:
    """Those that the broker holds, whatever has become of their peers."""
    return len(psutil.Process(broker.pid).net_connections("tcp"))


def until(condition: Callable[[], bool], timeout_s: float) -> float:
    """Waits, and says how long it took."""
    started = time.monotonic()
    while not condition():
        waited = time.monotonic() - started
        assert waited < timeout_s, f"not so after {waited:.1f} s"
        time.sleep(0.05)
    return time.monotonic() - started


@contextmanager
def crowd(broker: Broker, count: int) -> Iterator[list[socket.socket]]:
    """So many connections, opened as fast as it goes."""
    peers: list[socket.socket] = []
    try:
        while len(peers) < count:
            peers += _connect(broker, min(CONNECTING_AT_ONCE, count - len(peers)))
        yield peers
    finally:
        for peer in peers:
            peer.close()


def _connect(broker: Broker, count: int) -> list[socket.socket]:
    poller = select.poll()
    peers = {}
    for _ in range(count):
        peer = socket.socket()
        peer.setblocking(False)
        peer.connect_ex((broker.host, broker.port))
        poller.register(peer, select.POLLOUT)
        peers[peer.fileno()] = peer
    waiting = set(peers)
    deadline = time.monotonic() + 30
    while waiting:
        assert time.monotonic() < deadline, "connections do not open"
        for descriptor, _ in poller.poll(1000):
            error = peers[descriptor].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            assert error == 0, os.strerror(error)
            poller.unregister(descriptor)
            waiting.discard(descriptor)
    return list(peers.values())


def send_to_all(peers: list[socket.socket], data: bytes) -> None:
    """What a peer does not take, because its connection has ended, is lost."""
    for peer in peers:
        try:
            peer.send(data)
        except OSError:
            continue


def count_ended(peers: list[socket.socket]) -> int:
    return sum(_is_ended(peer) for peer in peers)


def _is_ended(peer: socket.socket) -> bool:
    try:
        return peer.recv(65_536) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


class HealthyClient:
    """Somebody who only wants to work; the topic is there before the trouble begins."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.topic = topic
        self.client = RawClient(broker.host, broker.port)
        make_topic(self.client, topic)
        batch, records = make_batch(1_000, 100)
        self.load = Produce(topic, batch, records)

    def work(self, requests: int = 500) -> Result:
        return run(self.client, self.load, in_flight=1, requests=requests)


def report(**figures: object) -> None:
    """One line per measurement, for whoever runs with -s."""
    print("  ".join(f"{name}={value}" for name, value in figures.items()))
