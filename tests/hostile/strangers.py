"""Crowds who are nobody yet: half handshakes, and logins that claim, drip and stall.

Owns what they say, and how it is measured what others notice of it.
`python -m tests.hostile.strangers apache-kafka-4.3.1 SASL_PLAINTEXT claims 1500` does the same to
Apache Kafka, with the heap of its own start scripts.
"""

from __future__ import annotations

import argparse
import select
import socket
import ssl
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

from bench.fairness import Waits, bystander
from bench.large.stage import BYSTANDERS_TOPIC
from bench.raw_client import RawClient, frame_of, make_topic
from kafkalite.client.cluster import ClientFailed
from kafkalite.protocol.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.compat import brokers
from tests.compat.every_listener import MECHANISM, Place, every_listener
from tests.hostile.peers import allow_open_files, crowd, report, resident_bytes, send_to_all

MEGABYTE = 1_000_000
MOST_RECEIVED = 524_288  # sasl.server.max.receive.size
MECHANISMS = ("PLAIN", MECHANISM, "OAUTHBEARER")
DRIPS, DRIP_S = 10, 0.3
SENT_AT_ONCE = 65_536
STAY_S = 3.0
AT_ONCE, PAUSE_S = 200, 0.01


def hello() -> bytes:
    """What a client of TLS says first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    said = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), said).do_handshake()
    except ssl.SSLWantReadError:
        return said.read()
    raise AssertionError("a handshake that needs nobody")


def _drips(said: bytes) -> list[bytes]:
    return [said[number : number + 1] for number in range(DRIPS)]


def words_of(protocol: str, way: str) -> list[bytes]:
    """What each of a crowd sends, one after the other."""
    if protocol == "SSL":
        claim = b"\x16\x03\x01\x40\x00\x01\x01\xff\x00"  # a record of 16 KB, a hello of 128
        half = claim + bytes(2_000)
        return {"claims": [claim], "drips": _drips(hello()), "stalls": [hello()], "halves": [half]}[
            way
        ]
    first = frame_of(SaslHandshakeRequest(mechanism=MECHANISM), 1, 1)
    claim = struct.pack(">i", MOST_RECEIVED)
    return {
        "claims": [claim],
        "drips": _drips(claim + first),
        "stalls": [first],
        "halves": [claim + bytes(2_000)],
    }[way]


def login_of(mechanism: str) -> bytes:
    """A whole first message of a login, as large as may be, by which nobody comes in."""
    room = MOST_RECEIVED - 1_000
    said = {
        "PLAIN": b"\0alice\0" + b"p" * room,
        "SCRAM-SHA-512": b"n,,n=" + b"u" * room + b",r=nonce",
        "OAUTHBEARER": b"n,,\1auth=Bearer " + b"e30." + b"e" * (room - 300) + b".e30\1\1",
    }[mechanism]
    first = frame_of(SaslHandshakeRequest(mechanism=mechanism), 1, 1)
    return first + frame_of(SaslAuthenticateRequest(auth_bytes=said), 2, 2)


def flood(peers: list[socket.socket], words: list[bytes], until_s: float) -> int:
    """Each sends its words as far as they are taken, until then; how many are through."""
    poller, left = select.poll(), dict[int, tuple[socket.socket, memoryview]]()
    for peer, message in zip(peers, words, strict=True):
        left[peer.fileno()] = peer, memoryview(message)
        poller.register(peer, select.POLLOUT)
    through = 0
    while left and (rest_s := until_s - time.monotonic()) > 0:
        for number, _ in poller.poll(rest_s * 1000):
            peer, said = left[number]
            try:
                said = said[peer.send(said[:SENT_AT_ONCE]) :]
            except BlockingIOError:
                continue
            except OSError:  # its connection has ended
                said = said[:0]
            left[number] = peer, said
            if not said:
                through += 1
                poller.unregister(peer)
                del left[number]
    return through


WAYS = ("claims", "drips", "stalls", "halves")


@dataclass(slots=True)
class Findings:
    """What a crowd came to."""

    base: int
    most: int = 0
    waits: Waits = field(default_factory=Waits)
    let_in_s: list[float] = field(default_factory=list)  # how long it took others to come in
    kept_out: list[str] = field(default_factory=list)

    @property
    def grown_mb(self) -> float:
        return (self.most - self.base) / MEGABYTE

    @property
    def p99_ms(self) -> float:
        return quantiles(self.waits.all, n=100)[98]


@dataclass(slots=True)
class Attack:
    """A crowd at one listener of a broker."""

    place: Place
    protocol: str
    count: int
    has_topic: bool = False  # of an attack before this one

    def run(self, *ways: str) -> Findings:
        """Each way has its share of the crowd."""
        broker = self.place.broker
        found = self._begun()
        with bystander(broker.host, broker.port, found.waits), self._crowd(found) as peers:
            share = len(peers) // len(ways)
            said = [
                (peers[number * share : (number + 1) * share], words_of(self.protocol, way))
                for number, way in enumerate(ways)
            ]
            for turn in range(max(len(words) for _, words in said)):
                for some, words in said:
                    if turn < len(words):
                        _say(some, words[turn])
                self._look(found)
                time.sleep(DRIP_S)
            stays = time.monotonic() + STAY_S
            while time.monotonic() < stays:
                self._come_in(found)
                self._look(found)
                time.sleep(0.1)
        return found

    def _begun(self) -> Findings:
        broker = self.place.broker
        if not self.has_topic:
            with closing(RawClient(broker.host, broker.port)) as client:
                make_topic(client, BYSTANDERS_TOPIC)
        return Findings(resident_bytes(broker))

    def flood(self, rounds: int, round_s: float) -> tuple[Findings, int]:
        """Whole messages instead, by crowd after crowd; and how many of them were taken."""
        broker, through = self.place.broker, 0
        found = self._begun()
        kinds = [login_of(mechanism) for mechanism in MECHANISMS]
        words = [kinds[number % len(kinds)] for number in range(self.count)]
        with bystander(broker.host, broker.port, found.waits):
            for _ in range(rounds):
                with self._crowd(found) as peers:
                    ends = time.monotonic() + round_s
                    with ThreadPoolExecutor(1) as beside:
                        sending = beside.submit(flood, peers, words[: len(peers)], ends)
                        while not sending.done():
                            self._come_in(found)
                            self._look(found)
                            time.sleep(0.1)
                        through += sending.result()
        return found, through

    @contextmanager
    def _crowd(self, found: Findings) -> Iterator[list[socket.socket]]:
        broker = self.place.broker
        there = brokers.Broker(
            broker.kind, broker.host, self.place.ports[self.protocol], broker.folder
        )
        with crowd(there, self.count) as peers:
            if self.protocol != "SASL_SSL":
                yield peers
                return
            encrypted = list(_shaken(peers, lambda: self._look(found)))
            try:
                yield encrypted
            finally:
                for each in encrypted:
                    each.close()

    def _come_in(self, found: Findings) -> None:
        """Somebody who means well comes to the listener that is under attack."""
        began = time.monotonic()
        try:
            assert self.place.lets_in(self.protocol)
            found.let_in_s.append(time.monotonic() - began)
        except ClientFailed as failure:
            found.kept_out.append(str(failure))

    def _look(self, found: Findings) -> None:
        found.most = max(found.most, resident_bytes(self.place.broker))


def _say(peers: list[socket.socket], words: bytes) -> None:
    """Some at a time: what a machine of two cores sends at once is what others wait for."""
    for start in range(0, len(peers), AT_ONCE):
        send_to_all(peers[start : start + AT_ONCE], words)
        time.sleep(PAUSE_S)


def _shaken(peers: list[socket.socket], look: Callable[[], None]) -> Iterator[socket.socket]:
    """Those with whom a handshake comes to its end; who is cut off meanwhile is left out."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for number, peer in enumerate(peers):
        peer.settimeout(20)
        try:
            encrypted = context.wrap_socket(peer)
        except OSError:
            continue
        encrypted.setblocking(False)
        yield encrypted
        if number % 100 == 0:
            look()


def tell(attack: Attack, ways: tuple[str, ...], found: Findings) -> None:
    report(
        broker=attack.place.broker.kind, protocol=attack.protocol, ways="+".join(ways),
        connections=attack.count, grown_mb=round(found.grown_mb, 1),
        p99_ms=round(found.p99_ms, 2), worst_ms=round(found.waits.worst, 1),
        let_in=len(found.let_in_s), slowest_s=round(max(found.let_in_s, default=0), 2),
        kept_out=len(found.kept_out),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("broker", choices=brokers.BROKERS)
    parser.add_argument("protocol", choices=("SSL", "SASL_PLAINTEXT", "SASL_SSL"))
    parser.add_argument("ways", help="+ between them: " + " ".join(WAYS))
    parser.add_argument("count", type=int)
    asked = parser.parse_args()
    allow_open_files(asked.count + 10_000)
    ways = tuple(asked.ways.split("+"))
    with tempfile.TemporaryDirectory(prefix="kafkalite-hostile-") as folder, every_listener(
        asked.broker, Path(folder), heap=brokers.NORMAL_HEAP, jvm=brokers.NORMAL_JVM
    ) as place:
        attack = Attack(place, asked.protocol, asked.count)
        try:
            tell(attack, ways, attack.run(*ways))
        except (ValueError, OSError, AssertionError) as why:
            print(f"others were not served any more: {why}")
        said = place.broker.log()
        report(out_of_memory=said.count("OutOfMemoryError"), log_bytes=len(said))


if __name__ == "__main__":
    main()
