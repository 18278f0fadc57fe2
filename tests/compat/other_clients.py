"""Clients of other languages, and old ones of Python's, behind one face.

Owns the table of these clients, which says what each can do, and the conversation with a program,
which is asked in lines of JSON. The scenarios are in test_other_clients.py, once for all.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from tests.compat import client_builds
from tests.compat.brokers import APACHE_KAFKA, APACHE_KAFKA_3, KAFKALITE

ANSWER_TIMEOUT_S = 60
READ_SIZE = 1 << 20

# What a client can be asked for besides producing, reading and being a member of a group.
ADMIN = ("admin", "delete groups", "look up")
TRANSACTIONS = ("transactions", "transactional offsets")


class Refused(Exception):
    """What a library raised, in its own words."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record to be written, or one that came; `timestamp` 0 leaves it to the client."""

    value: bytes | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 0
    partition: int = 0
    offset: int = 0

    def to_json(self) -> dict[str, Any]:
        headers = [{"name": name, "value": _text(value)} for name, value in self.headers]
        return {
            "key": _text(self.key), "value": _text(self.value),
            "headers": headers, "timestamp": self.timestamp,
        }


def record(fields: dict[str, Any]) -> Record:
    headers = tuple((each["name"], _bytes(each["value"])) for each in fields.get("headers") or ())
    return Record(
        _bytes(fields.get("value")), _bytes(fields.get("key")), headers,
        fields.get("timestamp", 0), fields["partition"], fields["offset"],
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


@dataclass(frozen=True, slots=True)
class Client:
    """A library of one version: its program, the library's name in it, and what it can do."""

    name: str
    build: Callable[[], list[str]]
    library: str
    features: frozenset[str]
    is_core: bool = True  # part of `make test`
    is_slow: bool = False
    is_old_protocol: bool = False  # compared with Apache Kafka 3.9

    def brokers(self) -> tuple[str, str]:
        return KAFKALITE, APACHE_KAFKA_3 if self.is_old_protocol else APACHE_KAFKA


GROUPS = ("groups", "assignment")
PLACES = ("partitioner", "placed")

CLIENTS = (
    Client(
        "franz-go 1.22", client_builds.go, "franz-go",
        frozenset({
            *ADMIN, *GROUPS, *PLACES, "cooperative", "delete records", "move offsets",
            "read_committed look up", "server", "static", "transactions", "transform", "zstd",
        }),
    ),
    Client(
        "sarama 1.61", client_builds.go, "sarama",
        frozenset({
            *ADMIN, *GROUPS, *PLACES, *TRANSACTIONS, "delete records", "read_committed look up",
            "static", "zstd",
        }),
    ),
    Client(
        "kafka-go 0.4.51", client_builds.go, "kafka-go",
        frozenset({*ADMIN, *PLACES, "groups", "move offsets", "read_committed look up", "zstd"}),
    ),
    Client(
        "KafkaJS 2.2", client_builds.js, "kafkajs",
        frozenset({
            *ADMIN, *GROUPS, *PLACES, *TRANSACTIONS, "delete records", "move offsets", "zstd",
        }),
    ),
    Client(
        "rdkafka 0.39", client_builds.rust, "rdkafka",
        frozenset({
            *ADMIN, *GROUPS, *PLACES, *TRANSACTIONS, "cooperative", "delete records",
            "move offsets", "server", "static", "static server", "zstd",
        }),
        is_core=False, is_slow=True,
    ),
    Client(
        "franz-go 1.7", client_builds.go_old, "franz-go",
        frozenset({
            *ADMIN, *GROUPS, *PLACES, "cooperative", "move offsets", "read_committed look up",
            "static", "transactions", "transform", "zstd",
        }),
        is_core=False,
    ),
    Client(
        "sarama 1.26", client_builds.go_old, "sarama",
        frozenset({*ADMIN, *GROUPS, "delete records", "placed", "zstd"}),
        is_core=False, is_old_protocol=True,
    ),
    Client(
        "kafka-go 0.4.10", client_builds.go_old, "kafka-go",
        frozenset({"groups", "zstd"}), is_core=False, is_old_protocol=True,
    ),
    Client(
        "KafkaJS 1.12", client_builds.js, "kafkajs-1",
        frozenset({*GROUPS, *PLACES, *TRANSACTIONS}), is_core=False,
    ),
    Client(
        "rdkafka 0.29", client_builds.rust_old, "rdkafka",
        frozenset({
            *GROUPS, *PLACES, *TRANSACTIONS, "admin", "cooperative", "look up", "move offsets",
            "static", "zstd",
        }),
        is_core=False, is_slow=True,
    ),
    Client(
        "aiokafka 0.8", client_builds.aiokafka_old, "aiokafka",
        frozenset({*GROUPS, *PLACES, *TRANSACTIONS, "admin", "look up", "move offsets", "zstd"}),
        is_core=False,
    ),
    Client(
        "confluent-kafka 2.0", client_builds.confluent_kafka_old, "confluent_kafka",
        frozenset({
            *ADMIN, *GROUPS, *PLACES, *TRANSACTIONS, "cooperative", "move offsets",
            "read_committed look up", "static", "zstd",
        }),
        is_core=False,
    ),
)


def cases(chosen: str | None, features: Iterable[str]) -> list[Any]:
    """Each broker with each client that has these features, as pytest takes them."""
    found = []
    for client in CLIENTS:
        if client.features.issuperset(features):
            marks = [pytest.mark.timeout(client_builds.BUILD_TIMEOUT_S)]  # the first one builds
            marks += [] if client.is_core else [pytest.mark.full]
            marks += [pytest.mark.slow] if client.is_slow else []
            for kind in client.brokers():
                if kind.startswith(chosen or ""):
                    name = f"{kind}-{client.name.replace(' ', '-')}"
                    found.append(pytest.param(kind, client, marks=marks, id=name))
    return found


class Program:
    """A running program, asked one thing at a time."""

    def __init__(self, client: Client, bootstrap: str) -> None:
        call = [*client.build(), client.library, bootstrap]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the program
        self._process = subprocess.Popen(
            call,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
        )

    def ask(self, do: str, **fields: Any) -> Any:
        """Asks, and gives the answer; raises `Refused` for what the library raised."""
        if "records" in fields:
            fields["records"] = [each.to_json() for each in fields["records"]]
        stdin = self._process.stdin
        assert stdin is not None
        with suppress(BrokenPipeError):  # of a program that has died, which its last words tell
            stdin.write(json.dumps({"do": do, **fields}).encode() + b"\n")
            stdin.flush()
        answer = json.loads(self._line())
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["ok"]

    def records(self, do: str, **fields: Any) -> list[Record]:
        """Asks for what is answered with records."""
        return [record(each) for each in self.ask(do, **fields)]

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        source, line = self._process.stdout.fileno(), b""
        while not line.endswith(b"\n"):
            if not select.select([source], [], [], ANSWER_TIMEOUT_S)[0]:
                raise AssertionError(f"no answer within {ANSWER_TIMEOUT_S} s")
            more = os.read(source, READ_SIZE)
            if not more:
                self._errors.seek(0)
                raise AssertionError(self._errors.read().decode(errors="replace")[-3000:])
            line += more
        return line

    def kill(self) -> None:
        """Ends it where it stands; a member of a group does not take its leave."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
