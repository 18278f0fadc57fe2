"""Clients that ask which of their metrics are wanted, and push them (KIP-714).

Owns what is remembered of each client instance: its subscription and when it asked and pushed.
What is pushed is checked and counted, and given to the receiver where there is one. Invariant: no
more than a fixed number is remembered, the longest silent are forgotten first, and whoever's
connection has ended at once.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

from kafkalite.config import client_metrics_settings
from kafkalite.coordinators.cluster.client_metrics import NO_EXPRESSION
from kafkalite.coordinators.cluster.configs import ResourceType
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.pattern_parsing import Alphabet, InvalidPattern
from kafkalite.coordinators.patterns import Pattern
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps, chosen
from kafkalite.handlers.call import Call, Client
from kafkalite.log.names import uuid_text
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.checksum import crc32c
from kafkalite.telemetry.payload import Sender
from kafkalite.telemetry.receiver import Pushed, Receiver

MAX_INSTANCES = 16_384
ALL_METRICS = "*"
NEVER = -1
# Of an expression that only an engine that backtracks can match: some milliseconds.
MOST_TRIES = 2_000
RETRIED_AT_ONCE = (Error.UNKNOWN_SUBSCRIPTION_ID, Error.UNSUPPORTED_COMPRESSION_TYPE)


@dataclass(slots=True, frozen=True)
class Subscription:
    """What is wanted of one client instance."""

    subscription_id: int
    metrics: tuple[str, ...]
    push_interval_ms: int


@dataclass(slots=True)
class Instance:
    """One client, as far as its pushes go."""

    subscription: Subscription
    last_get_ms: int = NEVER
    last_push_ms: int = NEVER
    last_error: Error = Error.NONE
    is_terminating: bool = False

    def may_ask(self, now_ms: int) -> bool:
        """Whether a push interval has passed since it last asked or pushed."""
        last_ms = max(self.last_get_ms, self.last_push_ms)
        return last_ms == NEVER or now_ms - last_ms >= self.subscription.push_interval_ms

    def may_push(self, now_ms: int) -> bool:
        """Whether it has asked since its last push, or an interval has passed since then."""
        if self.last_get_ms > self.last_push_ms or self.last_push_ms == NEVER:
            return True
        return now_ms - self.last_push_ms >= self.subscription.push_interval_ms


class Telemetry:
    """The client instances that this broker has heard of."""

    def __init__(self, max_instances: int = MAX_INSTANCES) -> None:
        self._max_instances = max_instances
        self._instances: OrderedDict[bytes, Instance] = OrderedDict()
        self._of_connections: dict[int, bytes] = {}  # the instance that last began on it
        self.receiver: Receiver | None = None
        self.pushed_bytes = self.throttled = self.unknown_subscriptions = 0

    def __len__(self) -> int:
        return len(self._instances)

    @property
    def wants_metrics(self) -> bool:
        """Whether anybody takes them, of whatever client."""
        return self.receiver is not None and self.receiver.wants_metrics

    def ask(
        self, image: Image, call: Call, instance_id: bytes, now_ms: int
    ) -> Steps[Subscription]:
        """What is wanted of a client; raises THROTTLING_QUOTA_EXCEEDED when it asks too often."""
        wanted = yield from _subscription(image, call, instance_id)
        instance = self._instance(instance_id, wanted, call.connection)
        if instance.may_ask(now_ms):
            instance.last_get_ms = now_ms
        elif instance.last_error not in RETRIED_AT_ONCE:
            self.throttled += 1
            raise KafkaError(Error.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = Error.NONE
        return instance.subscription

    def push(self, image: Image, call: Call, push: Push, now_ms: int) -> Steps[Later[Error]]:
        """Takes a client's metrics, or raises what is wrong with them."""
        wanted = yield from _subscription(image, call, push.instance_id)
        instance = self._instance(push.instance_id, wanted, call.connection)
        try:
            self._check_push(instance, push, now_ms)
        except KafkaError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.is_terminating = push.is_terminating
        self.pushed_bytes += len(push.metrics)
        instance.last_error = Error.NONE
        if self.receiver is None or not push.metrics:
            return Later.of(Error.NONE)
        pushed = Pushed(
            push.metrics, push.compression_type, _sender(call, push.instance_id),
            wanted.push_interval_ms, push.is_terminating,
        )  # fmt: skip

        def read(reason: object) -> Error:
            instance.last_error = Error.NONE if reason is None else Error.INVALID_RECORD
            return instance.last_error

        return self.receiver.take(pushed).map(read)

    def stop(self) -> None:
        if self.receiver is not None:
            self.receiver.stop()

    def _check_push(self, instance: Instance, push: Push, now_ms: int) -> None:
        """In Apache Kafka's order."""
        if instance.is_terminating:
            raise KafkaError(Error.INVALID_REQUEST)
        if instance.may_push(now_ms):
            instance.last_push_ms = now_ms
        elif not push.is_terminating:
            self.throttled += 1
            raise KafkaError(Error.THROTTLING_QUOTA_EXCEEDED)
        if push.subscription_id != instance.subscription.subscription_id:
            self.unknown_subscriptions += 1
            raise KafkaError(Error.UNKNOWN_SUBSCRIPTION_ID)
        if not 0 <= push.compression_type <= 4:
            raise KafkaError(Error.UNSUPPORTED_COMPRESSION_TYPE)
        if len(push.metrics) > push.max_size:
            raise KafkaError(Error.TELEMETRY_TOO_LARGE)

    def _instance(self, instance_id: bytes, wanted: Subscription, client: Client) -> Instance:
        instance = self._instances.get(instance_id)
        if instance is None or instance.subscription != wanted:
            instance = self._instances[instance_id] = Instance(wanted)
            if id(client) not in self._of_connections:
                client.when_gone(partial(self._forget, id(client)))
            self._of_connections[id(client)] = instance_id
            while len(self._instances) > self._max_instances:
                self._instances.popitem(last=False)
        self._instances.move_to_end(instance_id)
        return instance

    def _forget(self, connection: int) -> None:
        """A connection has ended."""
        instance_id = self._of_connections.pop(connection, None)
        if instance_id is not None:
            self._instances.pop(instance_id, None)


@dataclass(slots=True, frozen=True)
class Push:
    """What a client pushed."""

    instance_id: bytes
    subscription_id: int
    is_terminating: bool
    compression_type: int
    metrics: bytes
    max_size: int


def _sender(call: Call, instance_id: bytes) -> Sender:
    client = call.connection
    return Sender(
        call.client_id or "", uuid_text(instance_id), client.software_name, client.software_version
    )


def _subscription(image: Image, call: Call, instance_id: bytes) -> Steps[Subscription]:
    """The union of all subscriptions that this client matches."""
    default = client_metrics_settings()["interval.ms"].default()
    assert isinstance(default, int)
    metrics: dict[str, None] = {}
    interval_ms = default
    for settings in (yield from _matching(image, call, instance_id)):
        metrics.update(dict.fromkeys(filter(None, settings.get("metrics", "").split(","))))
        interval_ms = min(interval_ms, int(settings.get("interval.ms", default)))
    names = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics))
    seed = f"{','.join(names)} {interval_ms}".encode() + instance_id
    # A signed number of 32 bits, which changes with what is wanted.
    return Subscription(crc32c(seed) - 2**31, names, interval_ms)


def _matching(image: Image, call: Call, instance_id: bytes) -> Steps[list[dict[str, str]]]:
    host, port = call.connection.peer_address
    client = {
        "client_instance_id": uuid_text(instance_id),
        "client_software_name": call.connection.software_name,
        "client_software_version": call.connection.software_version,
        "client_source_address": host,
        "client_source_port": str(port),
    }
    if call.client_id is not None:  # nothing matches who says none
        client["client_id"] = call.client_id
    # Of the settings of all resources there are, which may be very many, few are these.
    keys = yield from chosen(list(image.configs), lambda key: key[0] == ResourceType.CLIENT_METRICS)
    found = []
    for key in sorted(keys):
        settings = image.configs.get(key, {})
        if settings and (yield from _fits_all(client, settings.get("match", "").split(","))):
            found.append(settings)
    return found


def _fits_all(client: dict[str, str], patterns: list[str]) -> Steps[bool]:
    for pattern in patterns:
        if not (yield from _fits(client, pattern)):
            return False
        yield
    return True


def _fits(client: dict[str, str], pattern: str) -> Steps[bool]:
    if not pattern:
        return True
    selector, _, expression = pattern.partition("=")
    value = client.get(selector.strip())
    if value is None:
        return False
    try:
        return (yield from Pattern(expression.strip(), Alphabet(value)).matching(value))
    except InvalidPattern:
        yield
        return _fits_by_trying(expression.strip(), value)


def _fits_by_trying(expression: str, value: str) -> bool:
    """What only an engine that backtracks can do, as Java's does, too; what has more ways to match
    than can be tried does not."""
    from kafkalite.security.expressions import Expression, TooLong  # which few brokers need

    try:
        return Expression(expression).fullmatch(value, iter(range(MOST_TRIES))) is not None
    except (TooLong, *NO_EXPRESSION):
        return False
