"""Compressed bytes that are cut, followed by others or flipped: taken where Apache Kafka takes
them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from kafkalite.testing.comparison.side import Side
from kafkalite.testing.embedded import EmbeddedKafka
from tests.differential.codecs import EXCEPTIONS, VERDICTS, verdicts


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, str]]:
    with EmbeddedKafka() as kafka, closing(Side("127.0.0.1", kafka.port)) as side:
        yield verdicts(side, "odd")


def test_every_batch_is_judged_as_apache_kafka_judges_it(told: dict[str, str]) -> None:
    theirs = json.loads(VERDICTS.read_text(encoding="utf-8"))
    assert len(theirs) == len(told) > 300
    other = {name: (said, theirs[name]) for name, said in told.items() if said != theirs[name]}
    assert {name: said for name, (said, _) in other.items()} == {
        name: said for name, (said, _) in EXCEPTIONS.items()
    }


def test_nothing_that_is_odd_crashes(told: dict[str, str]) -> None:
    assert {*told.values()} <= {"NONE", "INVALID_RECORD", "UNKNOWN_SERVER_ERROR"}
