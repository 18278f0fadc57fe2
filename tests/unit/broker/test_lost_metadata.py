"""A record of the metadata that cannot be folded, by a mistake of ours: the broker goes on with
what the log says, or ends."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.coordinators.cluster.image import FOLDS
from kafkalite.handlers.call import CloseConnection
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import CreateTopicsRequest
from tests.unit.handlers.whole_broker import WholeBroker

FOLDED = FOLDS["PartitionRecord"]


def creation(name: str) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.Topic(name=name, num_partitions=3, replication_factor=1)
    return CreateTopicsRequest(topics=[topic])


def plant(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    left = [None] * times

    def fold(image: Any, record: Any, changes: Any) -> None:
        if record.partition_id == 1 and left:
            left.pop()
            raise ValueError("a planted mistake")
        FOLDED(image, record, changes)

    monkeypatch.setitem(FOLDS, "PartitionRecord", fold)


def test_the_broker_serves_what_the_log_says(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = WholeBroker()
    plant(monkeypatch, 1)
    assert isinstance(broker.ask(creation("t"), 7), CloseConnection)  # nobody knows
    broker.clock.advance(0)
    assert [broker.partition("t", index).is_leader for index in range(3)] == [True] * 3
    assert broker.ask(creation("t"), 7).topics[0].error_code == Error.TOPIC_ALREADY_EXISTS
    broker.close()


def test_a_broker_whose_metadata_cannot_be_folded_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = WholeBroker()
    with monkeypatch.context() as patch:
        plant(patch, 9)
        assert isinstance(broker.ask(creation("t"), 7), CloseConnection)
        broker.clock.advance(0)
        ended = broker.broker.ended
        assert ended.is_resolved
        assert "a planted mistake" in str(ended.value)
    assert broker.started_again().ask(creation("t"), 7).topics[0].error_code == (
        Error.TOPIC_ALREADY_EXISTS
    )
