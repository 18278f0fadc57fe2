"""What ApiVersions says of APIs and features, kafkalite's beside that of a running Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.raw_client import RawClient
from kafkalite.protocol import spec
from kafkalite.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from tests.compat import brokers
from tests.compat.brokers import APACHE_KAFKA, KAFKALITE, Broker

Apis = dict[int, tuple[int, int]]  # the oldest and the newest version, by key


@dataclass(frozen=True, slots=True)
class Table:
    """What a broker says in one version of ApiVersions."""

    apis: Apis
    supported: dict[str, tuple[int, int]]
    finalized: dict[str, tuple[int, int]]


def table(broker: Broker, version: int) -> Table:
    client = RawClient(broker.host, broker.port)
    request = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
    try:
        answer: Any = client.call(request, version, ApiVersionsResponse)
    finally:
        client.close()
    assert answer.error_code == 0
    return Table(
        {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys},
        {each.name: (each.min_version, each.max_version) for each in answer.supported_features},
        {
            each.name: (each.min_version_level, each.max_version_level)
            for each in answer.finalized_features
        },
    )


def differing(ours: Apis, theirs: Apis) -> set[int]:
    """The APIs with other versions, but for those that Apache Kafka 4 dropped; it lists of Produce
    what it dropped, too."""
    found = ours.keys() ^ theirs.keys()
    for key in ours.keys() & theirs.keys():
        low, high = ours[key]
        if theirs[key] not in ((low, high), (spec.api(key).dropped.stop or low, high)):
            found.add(key)
    return found


@contextmanager
def both(folder: Path, features: str) -> Iterator[tuple[Broker, Broker]]:
    with ExitStack() as stack:
        started = []
        for kind in (KAFKALITE, APACHE_KAFKA):
            settings = {"kafkalite.features": features} if features else None
            started.append(brokers.start(kind, folder / kind, settings))
            stack.callback(started[-1].stop)
        yield started[0], started[1]


def check(ours: Broker, theirs: Broker) -> None:
    for version in spec.api(18).versions:
        found, expected = table(ours, version), table(theirs, version)
        assert differing(found.apis, expected.apis) == set()
        assert found.supported == expected.supported
        assert found.finalized == expected.finalized


def test_the_table_is_apache_kafkas(run_folder: Path) -> None:
    check(brokers.shared(KAFKALITE, run_folder), brokers.shared(APACHE_KAFKA, run_folder))


@pytest.mark.slow
@pytest.mark.parametrize(
    "features", ["group.version=0,share.version=0,streams.version=0,transaction.version=0",
                 "transaction.version=1,eligible.leader.replicas.version=0",
                 "metadata.version=25"],
)  # fmt: skip
def test_so_it_is_with_other_features(features: str, tmp_path: Path) -> None:
    with both(tmp_path, features) as (ours, theirs):
        check(ours, theirs)


def test_a_table_that_lacks_an_api_is_noticed(run_folder: Path) -> None:
    ours = table(brokers.shared(KAFKALITE, run_folder), 4)
    theirs = table(brokers.shared(APACHE_KAFKA, run_folder), 4)
    for key in theirs.apis:
        lacking = {each: ours.apis[each] for each in ours.apis if each != key}
        assert differing(lacking, theirs.apis) == {key}
        low, high = ours.apis[key]
        assert differing({**ours.apis, key: (low, high + 1)}, theirs.apis) == {key}
