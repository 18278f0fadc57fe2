"""How `kafka-console-producer` sends: in batches while more is typed, or one record at a time.

Owns what is said of a record that is not written; the records after it are written all the same,
but where each is waited for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from kafkalite.client.cluster import (
    PAUSE_S,
    ClientFailed,
    Cluster,
    NotLetIn,
    TryAgain,
    Unreachable,
)
from kafkalite.client.producing import Producer, Refusal
from kafkalite.protocol.errors import Error
from kafkalite.records.varint import encode_varint
from kafkalite.tools.asking import NETWORK, known_addresses, not_let_in, warn_of_nobody
from kafkalite.tools.client_settings import security_in
from kafkalite.tools.failures import Failure, execution, kafka, refused, timeout
from kafkalite.tools.line_reader import TypedRecord
from kafkalite.tools.running import log, tell

_NO_PRODUCER = "Failed to construct kafka producer"
_CALLBACK = "org.apache.kafka.clients.producer.internals.ErrorLoggingCallback"
_BATCH_OVERHEAD, _RECORD_OVERHEAD = 61, 21  # bytes at most, as Apache Kafka's producer counts
_OF_OTHERS = "Failed to append record because it was part of a batch which had one more more " \
    "invalid records"  # fmt: skip


@dataclass(frozen=True, slots=True)
class SendingSettings:
    bootstrap: str
    topic: str
    client_id: str
    acks: int
    codec: int
    is_sync: bool
    numbers: dict[str, int]
    properties: dict[str, str] = field(repr=False)


class Sending:
    def __init__(self, settings: SendingSettings) -> None:
        self._settings = settings
        self._addresses = known_addresses(settings.bootstrap, _NO_PRODUCER)
        security = security_in(settings.properties, _NO_PRODUCER)
        self._cluster = Cluster(
            self._addresses, client_id=settings.client_id, security=security
        )
        self._producer: Producer | None = None
        self._asked = 0

    def send(self, record: TypedRecord) -> None:
        """Raises the failure of a record when each is waited for."""
        try:
            self._check_size(record)
            producer = self._found_producer()
        except Failure as failure:
            self._fail(record.key, record.value, failure)
            return
        producer.add(record.key, record.value, record.headers)
        if self._settings.is_sync or producer.is_full:
            producer.flush()

    def flush(self) -> None:
        if self._producer is not None:
            self._producer.flush()

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._cluster.close()

    def _found_producer(self) -> Producer:
        """Made when the first record is there."""
        if self._producer is None:
            self._wait_for_topic()
            numbers = self._settings.numbers
            try:
                self._producer = Producer(
                    self._cluster, self._settings.topic, partition=None, headers=(),
                    codec=self._settings.codec, acks=self._settings.acks,
                    batch_bytes=numbers["batch.size"], refuse=self._refuse,
                    timeout_s=numbers["delivery.timeout.ms"] / 1000,
                )  # fmt: skip
            except ClientFailed as failure:
                raise kafka(str(failure)) from failure
        return self._producer

    def _wait_for_topic(self) -> None:
        topic, limit_ms = self._settings.topic, self._settings.numbers["max.block.ms"]
        deadline = time.monotonic() + limit_ms / 1000
        while True:
            try:
                self._asked += 1
                self._cluster.topic(topic, may_create=True)
                return
            except (TryAgain, Unreachable) as failure:
                self._warn(failure)
            except NotLetIn as failure:
                raise not_let_in(failure, self._addresses, self._client) from failure
            except ClientFailed as failure:
                self._warn(failure)
                raise self._no_topic(failure) from failure
            if time.monotonic() + PAUSE_S > deadline:
                raise timeout(f"Topic {topic} not present in metadata after {limit_ms} ms.")
            time.sleep(PAUSE_S)

    def _warn(self, failure: ClientFailed) -> None:
        if isinstance(failure, Unreachable):
            warn_of_nobody(self._addresses, self._client)
        elif failure.code:
            log(
                "WARN",
                f"[{self._client}] The metadata response from the cluster reported a recoverable "
                f"issue with correlation id {self._asked} : "
                f"{{{self._settings.topic}={failure.code.name}}}",
                NETWORK,
            )

    @property
    def _client(self) -> str:
        return f"Producer clientId={self._settings.client_id}"

    def _no_topic(self, failure: ClientFailed) -> Failure:
        topic = self._settings.topic
        if failure.code is Error.INVALID_TOPIC_EXCEPTION:
            return refused(failure.code, f"Invalid topics: [{topic}]")
        if failure.code is Error.TOPIC_AUTHORIZATION_FAILED:
            return refused(failure.code, f"Not authorized to access topics: [{topic}]")
        return refused(failure.code) if failure.code else kafka(str(failure))

    def _check_size(self, record: TypedRecord) -> None:
        size, most = _largest_size(record), self._settings.numbers["max.request.size"]
        if size > most:
            raise refused(
                Error.MESSAGE_TOO_LARGE,
                f"The message is {size} bytes when serialized which is larger than {most}, which "
                "is the value of the max.request.size configuration.",
            )

    def _refuse(self, refusal: Refusal) -> None:
        code, message = refusal.code, refusal.message
        failure = kafka(_OF_OTHERS) if code is None else refused(code, message)
        self._fail(refusal.key, refusal.value, failure)

    def _fail(self, key: bytes | None, value: bytes | None, failure: Failure) -> None:
        if self._settings.is_sync:
            raise execution(failure)
        log(
            "ERROR",
            f"Error when sending message to topic {self._settings.topic} with key: {_shown(key)}, "
            f"value: {_shown(value)} with error:",
            _CALLBACK,
        )
        tell(failure.stack().removesuffix("\n"))


def _shown(field: bytes | None) -> str:
    return "null" if field is None else f"{len(field)} bytes"


def _largest_size(record: TypedRecord) -> int:
    """Of a batch with only this record."""
    fields = [record.key, record.value]
    for name, value in record.headers:
        fields += [name.encode() if isinstance(name, str) else name, value]
    sizes = sum(1 if each is None else len(encode_varint(len(each))) + len(each) for each in fields)
    return _BATCH_OVERHEAD + _RECORD_OVERHEAD + sizes + len(encode_varint(len(record.headers)))
