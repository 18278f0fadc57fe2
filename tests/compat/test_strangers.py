"""A crowd that claims, drips and stalls before its login: who means well comes in, on both brokers.

What the crowd costs is measured in tests/hostile; here it is small enough for Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compat.every_listener import PROTOCOLS, Place, every_listener
from tests.hostile.peers import allow_open_files
from tests.hostile.strangers import WAYS, Attack

COUNT, SHAKEN = 200, 40
pytestmark = [pytest.mark.xdist_group("tls"), pytest.mark.theirs_in_full]


@pytest.fixture(scope="module")
def place(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    allow_open_files(COUNT + 10_000)
    with every_listener(broker_kind, tmp_path_factory.mktemp("strangers")) as found:
        yield found


def test_who_means_well_comes_in_beside_a_crowd(place: Place) -> None:
    for protocol in PROTOCOLS:
        count = SHAKEN if protocol == "SASL_SSL" else COUNT
        found = Attack(place, protocol, count, has_topic=protocol != PROTOCOLS[0]).run(*WAYS)
        assert found.let_in_s
        assert not found.kept_out
        assert found.waits.all
