"""The clients of the matrix of secured brokers, behind one face: they write, read, or are refused.

Owns their table, and what of their words is left when ports, times and places are taken out.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from kafkalite.jvm import jars, java
from kafkalite.security.client_settings import jaas_line, jaas_of, module_of
from kafkalite.security.mechanisms import OAUTHBEARER
from tests.compat import client_builds
from tests.compat.brokers import RUN_FOLDER
from tests.compat.java_classes import compile_classes
from tests.compat.other_clients import Client, Program, Record, Refused
from tests.compat.secured_lab import STORE_PASSWORD, Security

HERE = Path(__file__).parent
OLD_KAFKA_PYTHON = Path(sys.prefix) / "side" / "kafka-python-old"
WAIT_MS = 20_000
# For libraries that go on until time is over where others say at once that they are kept out.
SHORT_WAIT_MS = 6_000


class Teller(Protocol):
    """A running program of one library."""

    def write(self, at: str, how: Security, topic: str, value: str, wait_ms: int) -> None:
        """Raises Refused."""

    def read(self, at: str, how: Security, topic: str, offset: int, wait_ms: int) -> str:
        """The value; raises Refused."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Library:
    """A row of the matrix."""

    name: str
    start: Callable[[], Teller]
    is_core: bool = False  # a sample of it is part of `make test`
    at_once: int = 3  # programs that wait beside each other
    refused_ms: int = WAIT_MS  # how long it may take until it says that it is refused


class InJson:
    """A program of other_clients.py."""

    def __init__(
        self, name: str, build: Callable[[], list[str]], library: str, *, is_member: bool = False
    ) -> None:
        """`is_member`: it hears as a member of a group alone that it may not read."""
        self._is_member = is_member
        self._program = Program(Client(name, build, library, frozenset()), "nowhere")

    def write(self, at: str, how: Security, topic: str, value: str, wait_ms: int) -> None:
        self._secure(at, how, wait_ms)
        sent = [Record(value.encode())]
        told = {"topic": topic, "partition": 0, "records": sent, "wait_ms": wait_ms}
        self._program.ask("produce", **told)

    def read(self, at: str, how: Security, topic: str, offset: int, wait_ms: int) -> str:
        self._secure(at, how, wait_ms)
        told = {"topic": topic, "partition": 0, "offset": offset, "count": 1, "wait_ms": wait_ms}
        found = self._as_member(told) if self._is_member else self._program.records("read", **told)
        if not found:
            raise Refused("nothing came")
        return (found[0].value or b"").decode()

    def _as_member(self, told: dict[str, Any]) -> list[Record]:
        self._program.ask("join", **told, group=told["topic"])
        try:
            return self._program.records("poll", **told)
        finally:
            self._program.ask("leave")

    def _secure(self, at: str, how: Security, wait_ms: int) -> None:
        told = dataclasses.asdict(how)
        self._program.ask("secure", bootstrap=at, security=told, wait_ms=wait_ms)

    def close(self) -> None:
        self._program.kill()


class InJava:
    """java/Secured.java with one version of Apache Kafka's clients."""

    def __init__(self, version: str) -> None:
        classes = _classes()
        path = f"{classes}:{jars.class_path(f'kafka-clients-{version}')}"
        call = java.command(path, "Secured", heap="128M")
        call[1:1] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        self._process = subprocess.Popen(
            call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip

    def write(self, at: str, how: Security, topic: str, value: str, wait_ms: int) -> None:
        self._ask("produce", topic, wait_ms, value, java_settings(at, how))

    def read(self, at: str, how: Security, topic: str, offset: int, wait_ms: int) -> str:
        return self._ask("read", topic, wait_ms, str(offset), java_settings(at, how))

    def _ask(self, do: str, topic: str, wait_ms: int, what: str, told: dict[str, str]) -> str:
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        words = [do, topic, str(wait_ms), what, *(f"{name}={told[name]}" for name in told)]
        pipe_in.write("\t".join(words) + "\n")
        pipe_in.flush()
        outcome, _, said = pipe_out.readline().rstrip("\n").partition(" ")
        if outcome != "ok":
            raise Refused(said)
        return said

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def _classes() -> Path:
    """Compiled once for a run."""
    folder = Path(os.environ[RUN_FOLDER], "secured-classes")
    if not folder.exists():
        sources = [HERE / "java" / name for name in ("Secured.java", "GivenToken.java")]
        compile_classes(sources, folder, ["kafka-clients-2.8.2"])
    return folder


def java_settings(at: str, how: Security) -> dict[str, str]:
    """The same in the words of Java's clients."""
    told = {"bootstrap.servers": at, "security.protocol": how.protocol}
    if how.ca:
        told |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": how.ca}
    if how.certificate:
        store = str(Path(how.certificate).with_suffix(".p12"))
        told |= {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": store}
        told["ssl.keystore.password"] = STORE_PASSWORD
    if how.mechanism == OAUTHBEARER:
        told["sasl.jaas.config"] = jaas_line(module_of(OAUTHBEARER), {"token": how.token})
        told["sasl.login.callback.handler.class"] = "GivenToken"
    elif how.mechanism:
        told["sasl.jaas.config"] = jaas_of(how.mechanism, how.user, how.password)
    if how.mechanism:
        told["sasl.mechanism"] = how.mechanism
    return told


def _python(*first: Path) -> list[str]:
    """python/client.py with the modules of `secured`, and what is to be found before the rest."""
    path = os.pathsep.join(map(str, (*first, HERE / "secured", HERE.parents[1])))
    return ["env", f"PYTHONPATH={path}", sys.executable, str(HERE / "python" / "client.py")]


def _in_json(
    name: str, build: Callable[[], list[str]], library: str, *, is_member: bool = False, **more: Any
) -> Library:
    return Library(name, partial(InJson, name, build, library, is_member=is_member), **more)


LIBRARIES: Sequence[Library] = (
    _in_json(
        "kafka-python 2.2", partial(_python, OLD_KAFKA_PYTHON), "secured_kafka_python",
        refused_ms=SHORT_WAIT_MS,
    ),
    _in_json("kafka-python 3.0", _python, "secured_kafka_python", refused_ms=SHORT_WAIT_MS),
    _in_json("aiokafka 0.14", _python, "secured_aiokafka", refused_ms=SHORT_WAIT_MS),
    _in_json("confluent-kafka 2.16", _python, "secured_confluent_kafka"),
    *(
        Library(f"Java {version}", partial(InJava, f"{version}"), at_once=1)
        for version in ("2.8.2", "3.9.2", "4.3.1")
    ),
    _in_json("franz-go 1.22", client_builds.go, "franz-go", is_core=True),
    _in_json("sarama 1.61", client_builds.go, "sarama", is_core=True),
    _in_json("KafkaJS 2.2", client_builds.js, "kafkajs", is_core=True),
    _in_json("rdkafka 0.39", client_builds.rust, "rdkafka", is_member=True),
)
SPARK = "Spark 4.2's connector"
NAMES = (*(each.name for each in LIBRARIES), SPARK)

# --- what they say --------------------------------------------------------------------------------

NOISE = (
    (re.compile(r"127\.0\.0\.1:\d+"), "BROKER"),
    (re.compile(r"127\.0\.0\.1"), "HOST"),
    (re.compile(r"\b\w+://BROKER/\w+: |^Told: "), ""),  # of librdkafka
    (re.compile(r"^(\w+Error: )\1"), r"\1"),
    (re.compile(r"after \d\.\d secs"), "after some secs"),
    (re.compile(r"\('HOST', \d+"), "('HOST', PORT"),
    (re.compile(r" \(after \d+ms in state \w+\)"), ""),
    (re.compile(r"<\w+Transport \[[^]]*\]>: |<BrokerConnection .*\)\]>: "), ""),
    (re.compile(r"\b[0-9A-F]{12,16}:error:"), "error:"),  # OpenSSL's, behind a thread
    (re.compile(r"\b(\w+\.c(pp)?):\d+"), r"\1"),
    # kafka-python 3 reads why, or no more than that the connection is over.
    (re.compile(r" \[(socket disconnected|Error receiving network data .*|Abort \(.*)\]$"), ""),
)


# What is told by an alert alone, which differs: see differences.py.
ALERTS = ("certificate of another authority", "no certificate")


def bare(said: str) -> str:
    """Without what differs between two runs."""
    for pattern, word in NOISE:
        said = pattern.sub(word, said)
    return said.strip()
