"""What the specs say of listeners and of names is what Apache Kafka's own definitions say."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from kafkalite.protocol import files, spec
from tests.conformance.definitions import GENERATIONS, Definition, Way, definitions, fields_of
from tests.unit.protocol.random_messages import every_message

pytestmark = pytest.mark.conformance

# A description for readers, of which Apache Kafka has none.
DESCRIBED_ONLY = frozenset({"RecordBatch"})
KINDS: dict[str | None, str | None] = {
    None: None,
    "topicName": "topic",
    "groupId": "group",
    "transactionalId": "transactional",
    "producerId": "producer",
    "brokerId": "broker",
}


@cache
def generation(number: int) -> dict[str, Definition]:
    return definitions(GENERATIONS[number])


def own_fields(struct: spec.Struct, above: Way = ()) -> Iterator[tuple[Way, spec.Field]]:
    for field in struct.fields:
        here = (*above, field.name)
        yield here, field
        if field.struct is not None:
            yield from own_fields(field.struct, here)


@cache
def defined(message: str) -> dict[Way, Definition]:
    """The fields of a message, each as the newest Apache Kafka defines it that has it."""
    found: dict[Way, Definition] = {}
    for number in reversed(range(len(GENERATIONS))):
        if message in generation(number):
            found.update(fields_of(generation(number)[message]))
    return found


def test_every_api_is_at_the_listeners_that_apache_kafka_has_it_at() -> None:
    theirs = {
        each["apiKey"]: sorted(each.get("listeners", ()))
        for each in generation(0).values()
        if each["type"] == "request"
    }
    assert {key: sorted(spec.api(key).listeners) for key in files.api_files()} == theirs


def test_every_field_names_what_it_names_in_apache_kafka() -> None:
    wrong, compared, named = [], 0, 0
    for message in every_message():
        if message.name in DESCRIBED_ONLY:
            continue
        for way, field in own_fields(message.root):
            theirs: str | None = defined(message.name)[way].get("entityType")
            compared += 1
            named += field.resource is not None
            if field.resource != KINDS[theirs]:
                wrong.append(f"{message.name} {'.'.join(way)}: {field.resource}, not {theirs}")
    assert wrong == []
    assert (compared, named) > (2_000, 250)
