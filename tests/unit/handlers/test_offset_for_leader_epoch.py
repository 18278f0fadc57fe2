"""OffsetForLeaderEpoch: where each epoch ended, and what of epochs that never were."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import OffsetForLeaderEpochRequest
from tests.unit.handlers.whole_broker import WholeBroker

Topic, Partition = OffsetForLeaderEpochRequest.Topic, OffsetForLeaderEpochRequest.Partition


def ask(
    broker: WholeBroker, epoch: int, version: int = 4, *, topic: str = "t", **fields: Any
) -> Any:
    asked = Partition(leader_epoch=epoch, **fields)
    request = OffsetForLeaderEpochRequest(topics=[Topic(topic=topic, partitions=[asked])])
    (answer,) = broker.ask(request, version).topics
    assert answer.topic == topic
    return answer.partitions[0]


def end_of(broker: WholeBroker, epoch: int, version: int = 4) -> tuple[int, int]:
    """The epoch found and its end."""
    answer = ask(broker, epoch, version)
    assert answer.error_code == 0, Error(answer.error_code)
    return answer.leader_epoch, answer.end_offset


@pytest.fixture
def grown(broker: WholeBroker) -> WholeBroker:
    """Epoch 0 up to offset 2, epoch 1 without a record, epoch 2 up to offset 3."""
    broker.append(b"a", b"b")
    broker.next_epoch()
    broker.next_epoch()
    broker.append(b"c")
    return broker


@pytest.mark.parametrize("version", range(1, 5))
def test_an_epoch_ends_where_the_next_begins(grown: WholeBroker, version: int) -> None:
    assert end_of(grown, 0, version) == (0, 2)
    assert end_of(grown, 2, version) == (2, 3), "the current one at the log's end"


def test_version_0_has_no_epoch_to_answer(grown: WholeBroker) -> None:
    assert end_of(grown, 0, 0) == (-1, 2)


def test_an_epoch_without_records(grown: WholeBroker) -> None:
    assert end_of(grown, 1) == (0, 2), "the largest known one up to it"


@pytest.mark.parametrize("epoch", [3, -1])
def test_an_epoch_that_is_not_known(grown: WholeBroker, epoch: int) -> None:
    assert end_of(grown, epoch) == (-1, -1)


def test_an_epoch_that_was_deleted_ended_before_the_first_that_is_left(
    grown: WholeBroker,
) -> None:
    partition = grown.partition()
    partition.log.roll()
    grown.next_epoch()
    grown.append(b"d")
    partition.delete_records_before(3)
    assert end_of(grown, 0) == (0, 3)


def test_a_log_without_records(broker: WholeBroker) -> None:
    assert end_of(broker, 0) == (0, 0)


def test_the_epoch_of_the_asker_must_be_the_leaders(grown: WholeBroker) -> None:
    assert ask(grown, 0, current_leader_epoch=2).error_code == 0
    fenced = ask(grown, 0, current_leader_epoch=1)
    assert fenced.error_code == Error.FENCED_LEADER_EPOCH
    assert (fenced.leader_epoch, fenced.end_offset) == (-1, -1)
    ahead = ask(grown, 0, current_leader_epoch=3)
    assert ahead.error_code == Error.UNKNOWN_LEADER_EPOCH


def test_what_is_not_there(broker: WholeBroker) -> None:
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(broker, 0, topic="no").error_code == unknown
    assert ask(broker, 0, partition=9).error_code == unknown
    broker.stop_leading()
    assert ask(broker, 0).error_code == Error.NOT_LEADER_OR_FOLLOWER
