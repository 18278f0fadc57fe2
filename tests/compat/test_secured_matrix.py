"""Clients of secured brokers: every library, every way to come in, what each hears who is refused.

On both brokers: a record is written and read, and who is kept out, or may not, hears what
secured_refusals.json has, which is what Apache Kafka's broker had each hear. SECURED_RECORD=1 with
that broker writes the file anew; the table of all is docs/generated/secured_clients.md.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from tests.compat import client_builds
from tests.compat.differences import differs
from tests.compat.other_clients import Refused
from tests.compat.secured_clients import (
    ALERTS,
    LIBRARIES,
    SPARK,
    WAIT_MS,
    Library,
    Teller,
    bare,
)
from tests.compat.secured_lab import OPEN, SHUT, WAYS, Lab, Security, Way, lab
from tests.compat.secured_page import CELL, HEARD, heard_on, with_found
from tests.compat.secured_spark import InSpark
from tests.compat.spark_connector import spark
from tests.compat.waiting import PATIENCE_S

__all__ = ["spark"]

# What `make test` has time for, with programs that it has built anyway.
SAMPLE = ("mutual TLS", "SASL_SSL SCRAM-SHA-512")
pytestmark = [
    pytest.mark.xdist_group("secured-matrix"),
    pytest.mark.theirs_in_full,
    pytest.mark.timeout(client_builds.BUILD_TIMEOUT_S),
]

Act = Callable[[Teller], object]


def cells() -> Iterator[object]:
    for library in LIBRARIES:
        for way in WAYS:
            is_daily = library.is_core and way.name in SAMPLE
            name = CELL.format(library=library.name, way=way.name)
            yield pytest.param(
                library, way, id=name, marks=[] if is_daily else [pytest.mark.full]
            )


@pytest.fixture(scope="module")
def place(broker_kind: str) -> Iterator[Lab]:
    with lab(broker_kind) as found:
        yield found


class Running:
    """The programs of the library that was asked for last."""

    def __init__(self) -> None:
        self._library: Library | None = None
        self._tellers: list[Teller] = []

    def of(self, library: Library) -> list[Teller]:
        if library is not self._library:
            self.close()
            self._library = library
            for _ in range(library.at_once):
                self._tellers.append(library.start())
        return self._tellers

    def close(self) -> None:
        while self._tellers:
            self._tellers.pop().close()


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    found = Running()
    yield found
    found.close()


@pytest.mark.parametrize(("library", "way"), list(cells()))
def test_client(
    place: Lab, running: Running, library: Library, way: Way, record_property
) -> None:
    record_property("client", f"{library.name}, secured")
    show(place, running.of(library), library.name, way, library.refused_ms)


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    "way", [pytest.param(way, id=CELL.format(library=SPARK, way=way.name)) for way in WAYS]
)
def test_spark(place: Lab, spark, way: Way, record_property) -> None:
    record_property("client", f"{SPARK}, secured")
    show(place, [InSpark(spark)], SPARK, way, WAIT_MS)


def show(place: Lab, tellers: Sequence[Teller], library: str, way: Way, wait_ms: int) -> None:
    topic = re.sub(r"[^\w.]+", "-", f"{OPEN}-{library}-{way.name}")
    place.create(topic)
    at, right = place.bootstrap(way), place.right(way)
    tellers[0].write(at, right, topic, "value", WAIT_MS)
    assert tellers[0].read(at, right, topic, 0, WAIT_MS) == "value"
    told = all_told(tellers, refused(place, way, topic, wait_ms))
    compare(place, library, way.name, told)
    assert end_of(place, topic) == 1, "somebody wrote who was refused"


def compare(place: Lab, library: str, way: str, told: dict[str, str]) -> None:
    """With what is on file, or puts it there: of kafkalite what it alone says, and no more."""
    own = ALERTS if differs(place.broker, "Alerts of TLS") else ()
    found = {f"{what} (kafkalite)" if what in own else what: told[what] for what in told}
    heard = json.loads(HEARD.read_text())
    if "SECURED_RECORD" in os.environ:
        own_alone = [what for what in found if what not in told]
        kept = own_alone if place.broker.is_kafkalite else list(found)
        heard = with_found(heard, library, way, {what: found[what] for what in kept})
        HEARD.write_text(json.dumps(heard, indent=1, ensure_ascii=False) + "\n")
    expected = heard_on(heard, library, way)
    assert found == {what: expected.get(what) for what in found}


def refused(place: Lab, way: Way, topic: str, wait_ms: int) -> dict[str, Act]:
    """What nobody may, by what is wrong with it."""
    at, right = place.bootstrap(way), place.right(way)

    def writes(how: Security, where: str) -> Act:
        return lambda teller: teller.write(at, how, where, "no", wait_ms)

    acts = {what: writes(wrong, topic) for what, wrong in place.wrong(way).items()}
    acts["no rule to write"] = writes(right, SHUT)
    acts["no rule to read"] = lambda teller: teller.read(at, right, SHUT, 0, wait_ms)
    return acts


def all_told(tellers: Sequence[Teller], acts: dict[str, Act]) -> dict[str, str]:
    """What each comes to, as many at a time as there are programs."""
    free: SimpleQueue[Teller] = SimpleQueue()
    for teller in tellers:
        free.put(teller)

    def told(act: Act) -> str:
        teller = free.get()
        try:
            act(teller)
            return "let in"
        except Refused as refusal:
            return bare(str(refusal))
        finally:
            free.put(teller)

    with ThreadPoolExecutor(len(tellers)) as threads:
        return dict(zip(acts, threads.map(told, acts.values()), strict=True))


def end_of(place: Lab, topic: str) -> int:
    partition = TopicPartition(topic, 0)
    asked = place.admin.list_offsets({partition: OffsetSpec.latest()})
    return int(asked[partition].result(PATIENCE_S).offset)
