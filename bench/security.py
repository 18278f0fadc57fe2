"""What security costs: TLS produce and fetch, handshakes and logins per second, ACLs on a produce.

Both brokers have a listener of each security.protocol, and a key of the same kind (ECDSA, P-256). A
handshake is a whole one, without a session of before, and counts once ApiVersions was answered
inside it; a login is SaslHandshake and both messages of SCRAM, whose salted password the client
knows from the first one on, as the clients of a busy broker are many. What 10,000 rules cost a
produce is seen beside a broker that has no authorizer, in turns of a third of a second.
"""

from __future__ import annotations

import ssl
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench import pair
from bench.pair import OURS, THEIRS, Run, Target
from bench.raw_client import (
    Fetch,
    Produce,
    RawClient,
    Result,
    delete_topic,
    frame_of,
    make_batch,
    make_topic,
)
from bench.raw_client import run as run_load
from bench.rows import Row
from kafkalite.config.authorization import AUTHORIZER, STANDARD_AUTHORIZER
from kafkalite.env.randomness import system_random
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    CreateAclsRequest,
    CreateAclsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafkalite.security import acl
from kafkalite.security.client_login import ScramClient
from kafkalite.security.scram import BY_NAME, Scram
from tests.compat import brokers
from tests.compat.brokers import BROKERS
from tests.compat.every_listener import MECHANISM, USER, USERS, Place, every_listener

SUITE = "security"
SIZES = {"16 KB": 16_384, "64 KB": 65_536, "1 MB": 1_048_576}
PRODUCE_GOAL, FETCH_GOAL, HANDSHAKE_GOAL, LOGIN_GOAL = 1.5, 1.0, 1.0, 1.0
RECORD_BYTES, BATCH_BYTES, TOPIC_BATCHES, IN_FLIGHT = 1_000, 16_384, 2_048, 5
WARM_UP_SECONDS = 0.25
COMING_AT_ONCE = 4
RULES, RULES_PER_REQUEST, MOST_PERCENT = 10_000, 1_000, 5.0
GUARD_TURNS, GUARD_SECONDS, GUARDED_BYTES = 6, 0.3, 1_000
GUARDED = {AUTHORIZER: STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}


def measure(run: Run) -> Iterator[Row]:
    seconds = 0.5 if run.is_quick else 1.0
    with tempfile.TemporaryDirectory(prefix="kafkalite-bench-") as folder, ExitStack() as stack:
        run.tell("starting both brokers")
        places = _places(stack, Path(folder), {})
        yield from _encrypted(run, places, seconds)
        yield from _coming_in(run, places, seconds)
        if run.wants(RULES_ROW):
            run.tell("starting both brokers with an authorizer")
            guarded = _places(stack, Path(folder) / "guarded", GUARDED)
            yield _rules(run, places, guarded)


def _places(stack: ExitStack, folder: Path, settings: dict[str, str]) -> Places:
    found = {
        pair.NAMES[kind]: stack.enter_context(
            every_listener(kind, folder / kind, settings, brokers.NORMAL_HEAP, brokers.NORMAL_JVM)
        )
        for kind in BROKERS
    }
    targets = [Target(name, each.broker, each.broker.pid) for name, each in found.items()]
    return Places(found, targets)


@dataclass(slots=True, frozen=True)
class Places:
    """Both brokers, by their names and as they are measured in turns."""

    by_name: dict[str, Place]
    targets: list[Target]

    def of(self, target: Target) -> Place:
        return self.by_name[target.name]


# --- TLS ------------------------------------------------------------------------------------------


class EncryptedClient(RawClient):
    """The raw client, by TLS."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        super().__init__("127.0.0.1", port)
        self._socket = context.wrap_socket(self._socket, server_hostname="localhost")

    def send(self, *parts: bytes | memoryview) -> None:
        self._socket.sendall(b"".join(parts))


def _context(place: Place) -> ssl.SSLContext:
    keys = place.secured["SSL"].keys
    assert keys is not None
    return keys.context(None)


def encrypted_client(place: Place) -> EncryptedClient:
    return EncryptedClient(place.ports["SSL"], _context(place))


def _encrypted(run: Run, places: Places, seconds: float) -> Iterator[Row]:
    for kind, load, goal in (("produce", produce, PRODUCE_GOAL), ("fetch", fetch, FETCH_GOAL)):
        for text, size in SIZES.items():
            name = f"TLS {kind} {text}"
            if not run.wants(name):
                continue

            def rate(target: Target, size: int = size, load: Load = load) -> float:
                return load(places.of(target), size, seconds).megabytes_per_second

            found = run.turns(places.targets, rate, name)
            yield Row(SUITE, name, "MB/s", found[OURS], found[THEIRS], goal=goal)


Load = Callable[[Place, int, float], Result]


def produce(place: Place, size: int, seconds: float) -> Result:
    with closing(encrypted_client(place)) as client:
        topic = f"bench-{uuid.uuid4().hex[:8]}"
        make_topic(client, topic)
        load = Produce(topic, *make_batch(size, RECORD_BYTES))
        return _under_load(client, topic, load, seconds)


def fetch(place: Place, size: int, seconds: float) -> Result:
    with closing(encrypted_client(place)) as client:
        topic = f"bench-{uuid.uuid4().hex[:8]}"
        make_topic(client, topic)
        batch, records = make_batch(BATCH_BYTES, RECORD_BYTES)
        filling = Produce(topic, batch, records)
        run_load(client, filling, in_flight=IN_FLIGHT, requests=TOPIC_BATCHES)
        load = Fetch(topic, len(batch), records, max(1, size // BATCH_BYTES), TOPIC_BATCHES)
        return _under_load(client, topic, load, seconds)


def _under_load(client: RawClient, topic: str, load: Produce | Fetch, seconds: float) -> Result:
    run_load(client, load, in_flight=IN_FLIGHT, seconds=WARM_UP_SECONDS)
    found = run_load(client, load, in_flight=IN_FLIGHT, seconds=seconds)
    delete_topic(client, topic)
    return found


# --- who comes in ---------------------------------------------------------------------------------


def _coming_in(run: Run, places: Places, seconds: float) -> Iterator[Row]:
    for name, come, goal in (
        ("TLS handshakes", handshakes, HANDSHAKE_GOAL),
        ("SCRAM-SHA-512 logins", logins, LOGIN_GOAL),
    ):
        if not run.wants(name):
            continue

        def rate(target: Target, come: Come = come) -> float:
            return _per_second(come(places.of(target)), seconds)

        found = run.turns(places.targets, rate, name)
        yield Row(SUITE, name, "per second", found[OURS], found[THEIRS], goal=goal)


Come = Callable[[Place], Callable[[], None]]


def _per_second(come: Callable[[], None], seconds: float) -> float:
    """How often somebody comes and goes, a few at once."""

    def again_and_again(_: int) -> int:
        count = 0
        while time.perf_counter() < end:
            come()
            count += 1
        return count

    began = time.perf_counter()
    end = began + seconds
    with ThreadPoolExecutor(COMING_AT_ONCE) as threads:
        count = sum(threads.map(again_and_again, range(COMING_AT_ONCE)))
    return count / (time.perf_counter() - began)


def handshakes(place: Place) -> Callable[[], None]:
    context = _context(place)
    hello = frame_of(ApiVersionsRequest(), 0, 1)

    def come() -> None:
        with _leaving(EncryptedClient(place.ports["SSL"], context)) as client:
            client.send(hello)
            client.receive()

    return come


def logins(place: Place) -> Callable[[], None]:
    scram = _Remembering(**{name: getattr(BY_NAME[MECHANISM], name) for name in Scram.__slots__})
    random = system_random()

    def come() -> None:
        with _leaving(RawClient("127.0.0.1", place.ports["SASL_PLAINTEXT"])) as client:
            began = client.call(SaslHandshakeRequest(mechanism=MECHANISM), 1, SaslHandshakeResponse)
            assert not began.error_code, began
            exchange = ScramClient(scram, USER, USERS[USER], random)
            token: bytes | None = exchange.first
            while token is not None:
                asked = SaslAuthenticateRequest(auth_bytes=token)
                answer = client.call(asked, 2, SaslAuthenticateResponse)
                assert not answer.error_code, answer
                token = exchange.take(bytes(answer.auth_bytes))

    return come


class _Remembering(Scram):
    """Makes the key of a password once: no measure of a broker should be of its client."""

    def salted(self, password: str, salt: bytes, iterations: int) -> bytes:
        return _salted(self.hash, password, salt, iterations)


@cache
def _salted(name: str, password: str, salt: bytes, iterations: int) -> bytes:
    return BY_NAME[MECHANISM].salted(password, salt, iterations)


@contextmanager
def _leaving(client: RawClient) -> Iterator[RawClient]:
    try:
        yield client
    finally:
        client.leave()


# --- rules ----------------------------------------------------------------------------------------

RULES_ROW = f"what {RULES:,} ACLs cost a produce"


def _rules(run: Run, places: Places, guarded: Places) -> Row:
    for place in guarded.by_name.values():
        _add_rules(place)

    def cost(target: Target) -> float:
        return _percent(places.of(target), guarded.of(target))

    found = run.turns(places.targets, cost, RULES_ROW)
    return Row(SUITE, RULES_ROW, "%", found[OURS], found[THEIRS],
               limit=MOST_PERCENT, is_rate=False)  # fmt: skip


def _percent(open_: Place, guarded: Place) -> float:
    """How much longer a produce takes where rules are asked."""
    loads = [_small_produces(place) for place in (open_, guarded)]
    took: list[list[float]] = [[], []]
    for number in range(2 * GUARD_TURNS):
        which = number % 2 ^ number // 2 % 2  # the other one first in every other turn
        client, load = loads[which]
        ended = run_load(client, load, in_flight=IN_FLIGHT, seconds=GUARD_SECONDS)
        took[which].append(1 / ended.per_second)
    for client, _ in loads:
        client.close()
    without, with_ = map(statistics.median, took)
    return 100 * (with_ / without - 1)


def _small_produces(place: Place) -> tuple[RawClient, Produce]:
    client = RawClient(place.broker.host, place.broker.port)
    topic = f"guarded-{uuid.uuid4().hex[:8]}"
    make_topic(client, topic)
    load = Produce(topic, *make_batch(GUARDED_BYTES, 100))
    run_load(client, load, in_flight=IN_FLIGHT, seconds=WARM_UP_SECONDS)
    return client, load


def _add_rules(place: Place) -> None:
    """Of other users and topics, whole names and beginnings; and those that let the load in."""
    made = [_rule("guarded-", acl.PREFIXED, "User:ANONYMOUS", acl.ALL)]
    for number in range(RULES - 1):
        pattern = acl.PREFIXED if number % 4 == 0 else acl.LITERAL
        user = f"User:user-{number % 500}"
        made.append(_rule(f"orders-{number}", pattern, user, acl.READ + number % 2))
    with closing(RawClient(place.broker.host, place.broker.port)) as client:
        for start in range(0, RULES, RULES_PER_REQUEST):
            asked = CreateAclsRequest(creations=made[start : start + RULES_PER_REQUEST])
            answer = client.call(asked, 3, CreateAclsResponse)
            assert not any(each.error_code for each in answer.results), answer


def _rule(name: str, pattern: int, user: str, operation: int) -> CreateAclsRequest.Creation:
    return CreateAclsRequest.Creation(
        resource_type=acl.TOPIC, resource_name=name, resource_pattern_type=pattern, principal=user,
        host="*", operation=operation, permission_type=acl.ALLOW,
    )  # fmt: skip
