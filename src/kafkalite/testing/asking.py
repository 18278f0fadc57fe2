"""What tests ask a cluster in one line: write some records, read them, wait for a group.

    kafka.produce("orders", {"id": 1}, {"id": 2})
    assert kafka.records("orders", count=2)[0].json() == {"id": 1}
    kafka.wait_for_group("clerks", state="Stable", members=2)
    kafka.assert_lag("clerks", 0)

Works by the protocol, so of any Kafka. Owns how values are written and told; what is not as
expected is an AssertionError that says how it was.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kafkalite.testing.arguments import HIGHEST_MOMENT_MS
from kafkalite.testing.clients import client_config

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster
    from kafkalite.client.groups import Group, Lag
    from kafkalite.records.record import Record
    from kafkalite.security.client_login import Security

LOOK_SECONDS = 0.02
TIMEOUT_SECONDS = 10.0
CLIENT_ID = "kafkalite's helpers of tests"
MOST_RECORDS = 1_000_000
MOST_SHOWN = 5
LEAST_SECONDS = 1.0  # for an answer, also when nobody wants to wait
CURE = "start it, or say where it is (bootstrap_servers, --kafkalite-url)"

T = TypeVar("T")
Value = bytes | bytearray | memoryview | str | dict[str, Any] | list[Any] | int | float | None
Headers = Mapping[str, Value] | Iterable[tuple[str, Value]]


@dataclass(slots=True, frozen=True)
class TestRecord:
    """A record as a test looks at it."""

    __test__ = False  # no test class of pytest's

    topic: str
    partition: int
    offset: int
    timestamp: datetime
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes | None]  # the last of each name
    all_headers: tuple[tuple[str, bytes | None], ...] = ()  # in their order, names twice as well

    @property
    def text(self) -> str:
        """The value as UTF-8."""
        return (self.value or b"").decode()

    def json(self) -> Any:
        """What the value says in JSON."""
        return json.loads(self.text)


class Records(list[TestRecord]):
    """Records in the order of their partitions and offsets."""

    def one(self) -> TestRecord:
        """The only one."""
        assert len(self) == 1, f"expected one record, and there are {len(self)}: {self._shown()}"
        return self[0]

    @property
    def values(self) -> list[bytes | None]:
        return [record.value for record in self]

    def json(self) -> list[Any]:
        return [record.json() for record in self]

    def _shown(self) -> str:
        shown = ", ".join(
            f"{each.topic}-{each.partition}@{each.offset} {each.value!r:.60}"
            for each in self[:MOST_SHOWN]
        )
        more = len(self) - MOST_SHOWN
        return (shown or "none") + (f", and {more} more" if more > 0 else "")


class Asking(Protocol):
    """Whoever knows where a cluster is."""

    @property
    def bootstrap_servers(self) -> str: ...

    @property
    def _security(self) -> Security | None:
        """How the helpers come in, where that is not open to everybody."""
        return None

    def _can_be_asked(self, what: str) -> None:
        """Raises when whoever asks would wait for itself; nobody does who asks another process."""
        return

    def _now_ms(self) -> int:
        """What records are stamped with."""
        return int(time.time() * 1000)

    def client_config(self, library: str) -> dict[str, Any]:
        """What a client of a library is to be told: "kafka-python", "aiokafka", "confluent",
        "java" or "spark"."""
        return client_config(library, self.bootstrap_servers)

    def produce(
        self,
        topic: str,
        *values: Value | tuple[Value, Value],
        key: Value = None,
        partition: int | None = None,
        headers: Headers | None = None,
    ) -> None:
        """Writes records, each once; returns when all replicas that must have them do. A tuple is
        a key and a value, a dict or list is written as JSON. `headers` is a dict, or pairs where a
        name is there twice."""
        from kafkalite.client.producing import Producer

        self._can_be_asked("be written to")
        pairs = _header_pairs(headers)
        records = [_key_and_value(each, key) for each in values]
        with _cluster(self.bootstrap_servers, security=self._security) as cluster:
            producer = Producer(
                cluster, topic, partition=partition, headers=pairs, codec=0,
                timeout_s=TIMEOUT_SECONDS, now_ms=self._now_ms,
            )  # fmt: skip
            for own_key, value in records:
                producer.add(own_key, value)
                if producer.is_full:
                    producer.flush()
            producer.flush()

    def records(
        self,
        topic: str,
        *,
        count: int = 1,
        timeout: float = TIMEOUT_SECONDS,
        committed: bool = True,
    ) -> Records:
        """All records of a topic, once there are so many; AssertionError when they do not come in
        time. With `count=0` those that are there."""

        self._can_be_asked("be read")
        seen: list[Records] = []

        def look() -> Records | None:
            seen[:] = [_read(self, topic, timeout, committed=committed)]
            return seen[0] if len(seen[0]) >= count else None

        def said() -> str:
            [found] = seen
            return f"{topic} has {len(found)} records and not {count}: {found._shown()}"

        return _wait(look, said, timeout)

    def wait_for_group(
        self,
        group_id: str,
        *,
        state: str | None = "Stable",
        members: int | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> Group:
        """The group, once it is in a state and has so many members."""
        self._can_be_asked("tell of a group")
        seen: list[Group] = []

        def look() -> Group | None:
            from kafkalite.client.groups import Groups

            with _cluster(self.bootstrap_servers, timeout, self._security) as cluster:
                group = Groups(cluster, timeout).describe(group_id)
            seen[:] = [group]
            is_so = state is None or group.state.lower() == state.lower()
            return group if is_so and members in (None, len(group.members)) else None

        def said() -> str:
            [group] = seen
            wanted = [] if state is None else [state]
            wanted += [] if members is None else [f"of {members}"]
            is_now = f"is {group.state} and of {len(group.members)}"
            return f"group {group_id} {is_now}, not {' and '.join(wanted)}"

        return _wait(look, said, timeout)

    def lag(self, group_id: str, topics: list[str] | None = None) -> list[Lag]:
        """How far a group is behind, partition by partition."""
        return self._lag(group_id, topics, TIMEOUT_SECONDS)

    def _lag(self, group_id: str, topics: list[str] | None, timeout: float) -> list[Lag]:
        from kafkalite.client.groups import Groups

        if isinstance(topics, str):
            raise TypeError(f"topics={topics!r}: expected a list, [{topics!r}]")
        self._can_be_asked("tell of a group")
        with _cluster(self.bootstrap_servers, timeout, self._security) as cluster:
            return Groups(cluster, timeout).lag(group_id, topics)

    def assert_lag(
        self,
        group_id: str,
        expected: int,
        *,
        topics: list[str] | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        """That a group is, or comes to be, so many records behind."""
        seen: list[list[Lag]] = []

        def look() -> bool | None:
            seen[:] = [self._lag(group_id, topics, timeout)]
            return True if sum(each.records for each in seen[0]) == expected else None

        def said() -> str:
            parts = ", ".join(f"{each.topic}-{each.partition}: {each.records}" for each in seen[0])
            total = sum(each.records for each in seen[0])
            return f"group {group_id} is {total} records behind, not {expected} ({parts or 'none'})"

        _wait(look, said, timeout)


# --- helpers --------------------------------------------------------------------------------------


def _read(kafka: Asking, topic: str, timeout: float, *, committed: bool) -> Records:
    from kafkalite.client.consuming import Reader, Start

    found = Records()
    with _cluster(kafka.bootstrap_servers, timeout, kafka._security) as cluster:
        reader = Reader(
            cluster, topic, partitions=(), start=Start(), follows=False, is_committed=committed,
            timeout_s=timeout, tell=lambda _: None,
        )  # fmt: skip
        for partition, record in reader.records():
            found.append(_record(topic, partition, record))
            assert len(found) <= MOST_RECORDS, f"{topic} has more than {MOST_RECORDS} records"
    found.sort(key=lambda each: (each.partition, each.offset))
    return found


def _record(topic: str, partition: int, record: Record) -> TestRecord:
    headers = tuple(
        (bytes(name).decode(errors="backslashreplace"), _own(value))
        for name, value in record.headers
    )
    return TestRecord(
        topic, partition, record.offset, _moment(record.timestamp), _own(record.key),
        _own(record.value), dict(headers), headers,
    )  # fmt: skip


def _moment(timestamp_ms: int) -> datetime:
    """The nearest that a datetime can show: clients stamp records as they like."""
    return datetime.fromtimestamp(min(timestamp_ms, HIGHEST_MOMENT_MS) / 1000, UTC)


def _own(value: bytes | memoryview | None) -> bytes | None:
    return None if value is None else bytes(value)


def _key_and_value(
    given: Value | tuple[Value, Value], key: Value
) -> tuple[bytes | None, bytes | None]:
    if not isinstance(given, tuple):
        return _bytes(key), _bytes(given)
    if len(given) != 2:
        raise ValueError(f"{given!r:.100}: a tuple is a key and a value; a list is one value")
    return _bytes(given[0]), _bytes(given[1])


def _header_pairs(headers: Headers | None) -> tuple[tuple[str, bytes | None], ...]:
    pairs = [] if headers is None else headers
    found = []
    for name, value in pairs.items() if isinstance(pairs, Mapping) else pairs:
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is no name of a header: expected a str")
        found.append((name, _bytes(value)))
    return tuple(found)


def _bytes(value: Value) -> bytes | None:
    if value is None or isinstance(value, bytes | bytearray | memoryview):
        return None if value is None else bytes(value)
    try:
        return (value if isinstance(value, str) else json.dumps(value, allow_nan=False)).encode()
    except (TypeError, ValueError) as error:  # half a character, too
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{value!r:.100} is not to be written: {error}: give bytes, or what JSON knows"
        ) from None


def _wait(look: Callable[[], T | None], said: Callable[[], str], timeout: float) -> T:
    """What a look has found; a client that fails may do better a moment later."""
    from kafkalite.client.cluster import ClientFailed
    from kafkalite.protocol.errors import Error

    deadline = time.monotonic() + timeout
    while True:
        failure = found = None
        try:
            found = look()
        except ClientFailed as error:
            failure = error
            if error.code is Error.INVALID_TOPIC_EXCEPTION:  # waiting will not mend it
                raise AssertionError(str(error)) from error
        if found is not None:
            return found
        if time.monotonic() >= deadline:
            why = said() if failure is None else str(failure)
            raise AssertionError(f"{why}, after {timeout:g} s") from failure
        time.sleep(LOOK_SECONDS)


@contextmanager
def _cluster(
    bootstrap: str, timeout: float = TIMEOUT_SECONDS, security: Security | None = None
) -> Iterator[Cluster]:
    from kafkalite.client.addresses import addresses
    from kafkalite.client.cluster import Cluster
    from kafkalite.security.client_login import OPEN

    patience_s = max(timeout, LEAST_SECONDS)
    known = addresses(bootstrap)
    made = Cluster(
        known, cure=CURE, patience_s=patience_s, client_id=CLIENT_ID, security=security or OPEN
    )
    with closing(made) as cluster:
        yield cluster
