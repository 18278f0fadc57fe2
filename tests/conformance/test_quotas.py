"""Quotas are reckoned as Apache Kafka's own managers reckon them, to the millisecond."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import pytest

from kafkalite.env.clock import ManualClock
from kafkalite.jvm import jars, java
from kafkalite.quotas.gauges import Gauges
from kafkalite.quotas.permits import Permits
from kafkalite.quotas.rates import LONGEST_MS, Rate, TokenBucket, Window
from tests.compat.java_classes import compile_classes

pytestmark = pytest.mark.conformance

SOURCE = Path(__file__).with_name("Quotas.java")
WALKS, STEPS = 300, 120
EPOCH_MS = 1_700_000_000_000
USERS, CLIENTS = ("alice", "bob", "Ünal:x"), ("one", "two", "-")
LIMITS = ("1", "1000", "1048576", "3.5", "0.01", "-", "-")


class Ours:
    """The same lines, for the broker's own arithmetic."""

    def __init__(self) -> None:
        self.clock = ManualClock(EPOCH_MS)

    def say(self, *words: str) -> str:
        match words:
            case ("at", at):
                self.clock.advance(int(at) - EPOCH_MS - self.clock.monotonic_ms())
            case ("begin", samples, seconds):
                window = Window(int(samples), int(seconds) * 1000)
                self.bytes = Gauges(Rate, window, self.clock)
                self.mutations = Gauges(TokenBucket, window, self.clock)
            case ("set", user, client, limit):
                _set(self.bytes, user, client, limit)
            case ("mutations", user, client, limit):
                _set(self.mutations, user, client, limit)
            case ("take", user, client, amount):
                return str(self.bytes.take(_name(user), _name(client), float(amount)))
            case ("mutate", user, client, partitions, way):
                return self._mutated(user, client, int(partitions), way)
        return "-"

    def _mutated(self, user: str, client: str, partitions: int, way: str) -> str:
        if not self.mutations.is_on:
            return "done 0"
        bucket = self.mutations.find(_name(user), _name(client))
        permits = Permits(bucket, self.clock, is_strict=way == "strict")
        verdict = "done" if permits.take(partitions) else "refused"
        return f"{verdict} {permits.wait_ms()}"


def _set(gauges: Gauges[Rate] | Gauges[TokenBucket], user: str, client: str, limit: str) -> None:
    gauges.limits.set(_part(user), _part(client), None if limit == "-" else float(limit))


def _part(word: str) -> str | None:
    return None if word == "*" else _name(word)


def _name(word: str) -> str:
    return "" if word == "-" else word


def walk(random: Random, began_ms: int) -> list[tuple[str, ...]]:
    """Some minutes of quotas that come and go, and of clients that take much and little."""
    lines: list[tuple[str, ...]] = [
        ("at", str(began_ms)),
        ("begin", str(random.choice((11, 11, 2, 1, 5))), random.choice("112")),
    ]
    now_ms = began_ms
    for _ in range(STEPS):
        now_ms += random.choice((0, 1, 7, 100, 333, 999, 1000, 1001, 2500, 11_000, 12_500))
        lines.append(("at", str(now_ms)))
        user, client = random.choice(USERS), random.choice(CLIENTS)
        kind = random.random()
        if kind < 0.15:
            named = random.choice(((user, "-"), (user, "*"), ("*", "-"), ("*", "*"), ("-", "*")))
            if client != "-" and random.random() < 0.5:
                named = random.choice(((user, client), ("-", client), ("*", client)))
            which = random.choice(("set", "mutations"))
            lines.append((which, *named, random.choice(LIMITS)))
        elif kind < 0.7:
            lines.append(("take", user, client, str(random.choice((0, 1, 57, 4096, 10**6, 10**8)))))
        else:
            partitions = str(random.choice((1, 3, 50, 1000)))
            lines.append(
                ("mutate", user, client, partitions, random.choice(("strict", "lenient")))
            )
    return lines


def test_waits_are_apache_kafkas(tmp_path: Path) -> None:
    lines: list[tuple[str, ...]] = []
    began_ms = EPOCH_MS
    for seed in range(WALKS):
        lines += walk(Random(seed), began_ms)
        began_ms = int(next(words for words in reversed(lines) if words[0] == "at")[1])
    ours = Ours()
    said = [ours.say(*words) for words in lines]
    theirs = asked_of_kafka(tmp_path, lines)
    assert len(said) == len(theirs)
    told = enumerate(zip(lines, said, theirs, strict=True))
    # Longer waits than can be told are some number in Apache Kafka, what is left of them.
    wrong = [
        (number, *each) for number, each in told if each[1] not in (each[2], str(LONGEST_MS))
    ]
    assert wrong == []
    waits = [each for each in said if each.split()[-1] not in ("-", "0")]
    assert len(waits) > len(said) / 20, "mostly nobody had to wait"


def asked_of_kafka(folder: Path, lines: list[tuple[str, ...]]) -> list[str]:
    classes, asked = folder / "classes", folder / "lines"
    classes.mkdir()
    asked.write_text("\n".join(map(" ".join, lines)))
    compile_classes([SOURCE], classes, ["reference"])
    class_path = f"{classes}:{jars.class_path('reference')}"
    call = java.command(class_path, "Quotas", str(asked), heap="256M")
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()
