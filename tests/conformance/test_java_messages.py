"""Our codecs and Apache Kafka's own message classes make the same bytes of the same values.

For every API, direction and version, and every record of the internal logs: random messages, with
every optional, nullable and tagged field set and unset, go to Java as JSON. What Java writes must
be what we write, and must read back, here and there, as what was sent. ROUNDS, SEED and REPORT (a
file to write the table of what was checked to) are read from the environment.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkalite.protocol import codec, spec
from kafkalite.protocol.messages import message_class
from tests.conformance.java_messages import GENERATIONS, Generation, JavaMessages, to_json
from tests.unit.protocol.random_messages import every_message, random_message

# A description for readers: Java has no message class for it, and test_record_interop holds it to
# the batches of four client libraries.
DESCRIBED_ONLY = frozenset({"RecordBatch"})

SEED = int(os.environ.get("SEED", "1"))
ROUNDS = int(os.environ.get("ROUNDS", "4"))

@pytest.fixture(params=GENERATIONS, ids=lambda generation: generation.name, scope="module")
def peer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Generation, JavaMessages]]:
    messages = JavaMessages(request.param, tmp_path_factory.mktemp("java"))
    yield request.param, messages
    messages.close()


def shared_versions(message: spec.Message, java: JavaMessages) -> tuple[str, range] | None:
    name = java.class_of(message)
    if name is None:
        return None
    theirs = java.versions(name)
    first = max(theirs.start, message.versions.start)
    return name, range(first, min(theirs.stop, message.versions.stop))


def test_the_same_values_are_the_same_bytes(peer: tuple[Generation, JavaMessages]) -> None:
    generation, java = peer
    checked: dict[str, range] = {}
    failures: list[str] = []
    for message in every_message():
        shared = shared_versions(message, java)
        if shared is None or message.name in generation.different:
            continue
        name, versions = shared
        checked[message.name] = versions
        for version in versions:
            failures += _check(peer, name, message, version)
    print_table(generation, checked)
    assert not failures, "\n".join(failures[:40])
    assert len(checked) > 100


def _check(
    peer: tuple[Generation, JavaMessages], name: str, message: spec.Message, version: int
) -> list[str]:
    generation, java = peer
    is_renamed = generation.renamed is None or message.name in generation.renamed
    check = _check_bytes if is_renamed else _check_values
    cls = message_class(message.name)
    chance = random.Random(f"{SEED} {message.name} {version}")
    for _ in range(ROUNDS):
        value = random_message(chance, cls, version)
        try:
            check(java, name, value, version)
        except Exception as error:  # noqa: BLE001 every message is to be looked at
            return [f"{message.name} v{version}: {str(error)[:400]}"]
    return []


def _check_bytes(java: JavaMessages, name: str, value: Any, version: int) -> None:
    ours = codec.encode(value, version)
    theirs = java.echo(name, version, ours)
    assert theirs == ours, f"bytes differ\n  java {theirs.hex()}\n  ours {ours.hex()}\n  {value}"


def _check_values(java: JavaMessages, name: str, value: Any, version: int) -> None:
    theirs, shown = java.write(name, version, to_json(value, version))
    ours = codec.encode(value, version)
    assert theirs == ours, f"bytes differ\n  java {theirs.hex()}\n  ours {ours.hex()}\n  {value}"
    back = codec.decode(type(value), version, theirs)
    assert back == value, f"read back as {back}, not {value}"
    assert without_records(to_json(back, version)) == without_records(shown)


def without_records(shown: Any) -> Any:
    """Java shows records by their size alone."""
    if isinstance(shown, dict):
        return {
            key: without_records(value)
            for key, value in shown.items()
            if key.lower().removesuffix("sizeinbytes") not in ("records", "unalignedrecords")
        }
    if isinstance(shown, list):
        return [without_records(one) for one in shown]
    return shown


def print_table(generation: Generation, checked: dict[str, range]) -> None:
    count = sum(len(versions) for versions in checked.values())
    lines = [
        f"## api versions checked against Apache Kafka {generation.name}",
        "",
        f"{len(checked)} messages, {count} versions, {ROUNDS} rounds each, seed {SEED}",
        "",
        "| message | versions |",
        "| --- | --- |",
        *(f"| {name} | {v.start}–{v.stop - 1} |" for name, v in sorted(checked.items())),
        "",
    ]
    print("\n" + "\n".join(lines))
    if "REPORT" in os.environ:
        with Path(os.environ["REPORT"]).open("a", encoding="utf-8") as report:
            report.write("\n".join(lines) + "\n")


def test_every_version_of_every_message_was_compared(tmp_path: Path) -> None:
    """Over all generations nothing is left out."""
    peers = [JavaMessages(generation, tmp_path) for generation in GENERATIONS]
    missing: list[str] = []
    for message in every_message():
        compared: set[int] = set()
        for java in peers:
            shared = shared_versions(message, java)
            compared |= set(shared[1]) if shared else set()
        lacking = sorted(set(message.versions) - compared)
        if lacking and message.name not in DESCRIBED_ONLY:
            missing.append(f"{message.name}: {lacking}")
    for java in peers:
        java.close()
    assert not missing, "\n".join(missing)
