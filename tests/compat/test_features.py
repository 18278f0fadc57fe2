"""Features that a cluster does not have, and that come and go while it runs, on both brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    UpdateFeaturesRequest,
)
from tests.compat.admin_peer import Admin
from tests.compat.brokers import Broker
from tests.compat.conftest import StartBroker
from tests.compat.waiting import eventually

UPGRADE, SAFE_DOWNGRADE = 1, 2
UNSERVED = "UNSUPPORTED_VERSION"
NEWEST = {"group.version": 1, "share.version": 1, "streams.version": 1, "transaction.version": 2}
# What no group is ready for is asked all the same: that there are none of its kind comes first.
ASKED: dict[str, list[tuple[Any, int]]] = {
    "group.version": [
        (ConsumerGroupHeartbeatRequest(group_id="", member_id="", member_epoch=-7), 1),
        (ConsumerGroupDescribeRequest(group_ids=["g", ""]), 1),
    ],
    "share.version": [
        (ShareGroupHeartbeatRequest(group_id="", member_id="", member_epoch=-7), 1),
        (ShareGroupDescribeRequest(group_ids=["g", ""]), 1),
        (ShareFetchRequest(group_id="g", member_id="m", share_session_epoch=7, topics=[]), 1),
        (ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=7), 1),
        (DescribeShareGroupOffsetsRequest(
            groups=[DescribeShareGroupOffsetsRequest.Group(group_id="g", topics=None)]), 0),
        (AlterShareGroupOffsetsRequest(group_id=""), 0),
        (DeleteShareGroupOffsetsRequest(group_id=""), 0),
    ],
    "streams.version": [
        (StreamsGroupHeartbeatRequest(group_id="", member_id="", member_epoch=-7), 0),
        (StreamsGroupDescribeRequest(group_ids=["g", ""]), 0),
    ],
}  # fmt: skip


def codes(answer: Any) -> list[str]:
    """Of the answer as a whole, and of each group."""
    parts = [answer, *getattr(answer, "groups", ())]
    found = [Error(part.error_code).name for part in parts if hasattr(part, "error_code")]
    return [name for name in found if name != "NONE"]


def refusals(admin: Admin, feature: str) -> set[str]:
    return {name for request, version in ASKED[feature]
            for name in codes(admin.ask(request, version))}  # fmt: skip


def is_refused(admin: Admin, feature: str) -> bool:
    return refusals(admin, feature) == {UNSERVED}


def is_served(admin: Admin, feature: str) -> bool:
    return UNSERVED not in refusals(admin, feature)


def update(admin: Admin, **features: int) -> tuple[Error, str | None]:
    """To these levels, whichever way that is."""
    updates = [
        UpdateFeaturesRequest.FeatureUpdate(
            feature=name.replace("_", "."), max_version_level=level,
            upgrade_type=SAFE_DOWNGRADE if level == 0 else UPGRADE,
        )
        for name, level in features.items()
    ]  # fmt: skip
    request = UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=updates)
    answer = admin.ask(request, 2)
    return Error(answer.error_code), answer.error_message


@pytest.fixture
def bare(start_broker: StartBroker) -> Iterator[Admin]:
    """A cluster that began without any of them."""
    broker: Broker = start_broker(
        {"kafkalite.features": ",".join(f"{name}=0" for name in NEWEST)}
    )
    with closing(Admin(broker)) as admin:
        yield admin


@pytest.mark.slow
def test_without_a_feature_each_request_is_answered_alike(bare: Admin) -> None:
    for feature in ASKED:
        for request, version in ASKED[feature]:
            found = codes(bare.ask(request, version))
            assert set(found) == {UNSERVED}, type(request).__name__
    assert update(bare, group_version=1) == (Error.NONE, None)
    eventually(bare.broker, lambda: is_served(bare, "group.version"))
    assert is_refused(bare, "share.version")
    assert update(bare, share_version=1, streams_version=1) == (Error.NONE, None)
    for feature in ASKED:
        eventually(bare.broker, partial(is_served, bare, feature))
    assert update(bare, group_version=0, share_version=0, streams_version=0)[0] == Error.NONE
    for feature in ASKED:
        eventually(bare.broker, partial(is_refused, bare, feature))
    assert update(bare, transaction_version=1) == (Error.NONE, None)
    assert update(bare, transaction_version=2) == (Error.NONE, None)


@pytest.mark.slow
def test_protocols_that_a_broker_is_not_to_serve(start_broker: StartBroker) -> None:
    """Share groups are their feature's alone."""
    broker = start_broker({"group.coordinator.rebalance.protocols": "classic"})
    with closing(Admin(broker)) as admin:
        assert is_refused(admin, "group.version")
        assert is_refused(admin, "streams.version")
        assert is_served(admin, "share.version")
