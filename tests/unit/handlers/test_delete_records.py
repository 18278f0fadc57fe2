"""DeleteRecords: where a log may be made to start, and what it then shows."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.env.slicing import STEPS_PER_SLICE
from kafkalite.handlers import delete_records as module
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse
from kafkalite.sim.effort import MOST_CALLS, CountingClock
from tests.unit.handlers.counted import counted
from tests.unit.handlers.test_fetch import fetch, values
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.handlers.writer import writer

Topic, Partition = DeleteRecordsRequest.Topic, DeleteRecordsRequest.Partition
HIGH_WATERMARK = -1


def delete(
    broker: WholeBroker, offset: int, version: int = 2, *, topic: str = "t", index: int = 0
) -> Any:
    asked = Topic(name=topic, partitions=[Partition(partition_index=index, offset=offset)])
    (answer,) = broker.ask(DeleteRecordsRequest(topics=[asked], timeout_ms=100), version).topics
    return answer.partitions[0]


@pytest.fixture
def filled(broker: WholeBroker) -> WholeBroker:
    """A broker whose topic "t" has two batches of two records."""
    broker.append(b"a", b"b")
    broker.append(b"c", b"d")
    return broker


@pytest.mark.parametrize("version", range(3))
def test_the_log_starts_where_it_was_told(filled: WholeBroker, version: int) -> None:
    answer = delete(filled, 2, version)
    assert (answer.error_code, answer.low_watermark) == (0, 2)
    assert fetch(filled, 1).error_code == Error.OFFSET_OUT_OF_RANGE
    assert values(fetch(filled, 2)) == [b"c", b"d"]


def test_a_start_inside_a_batch_leaves_the_batch(filled: WholeBroker) -> None:
    assert delete(filled, 1).low_watermark == 1
    answer = fetch(filled, 1)
    assert (values(answer), answer.log_start_offset) == ([b"a", b"b", b"c", b"d"], 1)


def test_a_start_never_goes_back(filled: WholeBroker) -> None:
    delete(filled, 3)
    answer = delete(filled, 1)
    assert (answer.error_code, answer.low_watermark) == (0, 3)
    assert filled.partition().log.log_start_offset == 3


def test_everything_may_go(filled: WholeBroker) -> None:
    assert delete(filled, HIGH_WATERMARK).low_watermark == 4
    assert filled.append(b"e") == 4
    assert values(fetch(filled, 4)) == [b"e"]


@pytest.mark.parametrize("offset", [5, -2])
def test_an_offset_that_is_not_there(filled: WholeBroker, offset: int) -> None:
    answer = delete(filled, offset)
    assert (answer.error_code, answer.low_watermark) == (Error.OFFSET_OUT_OF_RANGE, -1)
    assert filled.partition().log.log_start_offset == 0


def test_a_start_survives_a_restart(filled: WholeBroker) -> None:
    delete(filled, 3)
    filled.close()
    again = filled.started_again()
    assert again.partition().log.log_start_offset == 3
    again.close()


def test_an_open_transaction_loses_its_beginning(broker: WholeBroker) -> None:
    who = writer(broker)
    who.write(b"a", b"b")
    assert delete(broker, 1).low_watermark == 1
    assert broker.partition().last_stable_offset == 1
    assert who.end(commit=True) is Error.NONE
    assert broker.partition().last_stable_offset == 3


def test_compacted_topics_keep_what_they_have(broker: WholeBroker) -> None:
    broker.create("keyed", cleanup_policy="compact")
    assert delete(broker, 0, topic="keyed").error_code == Error.POLICY_VIOLATION
    broker.create("both", cleanup_policy="compact,delete")
    assert delete(broker, 0, topic="both").error_code == 0


def test_internal_topics_keep_what_they_have(broker: WholeBroker) -> None:
    writer(broker)
    answer = delete(broker, 0, topic="__transaction_state")
    assert (answer.error_code, answer.low_watermark) == (Error.INVALID_TOPIC_EXCEPTION, -1)


def test_what_is_not_there(broker: WholeBroker) -> None:
    for answer in (delete(broker, 0, topic="no"), delete(broker, 0, index=9)):
        assert answer.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
        assert answer.low_watermark == -1
    broker.stop_leading()
    assert delete(broker, 0).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_a_topic_without_partitions_is_not_answered(filled: WholeBroker) -> None:
    assert filled.ask(DeleteRecordsRequest(topics=[Topic(name="t")]), 2).topics == []


def test_of_very_many_topics_a_slice_is_looked_at_per_turn() -> None:
    broker = WholeBroker(clock=CountingClock())
    topics = [Topic(name=f"no-{number}") for number in range(2 * MOST_CALLS)]
    assert counted(broker, DeleteRecordsRequest(topics=topics), 2).topics == []


def test_what_fails_later_by_a_mistake_is_answered(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete_one = module._delete

    def fail(
        context: Context, call: Call, topic: str, *more: Any
    ) -> DeleteRecordsResponse.Partition:
        if topic == "last":
            raise ValueError("a mistake")
        return delete_one(context, call, topic, *more)

    monkeypatch.setattr(module, "_delete", fail)
    names = [*(f"t{number}" for number in range(2 * STEPS_PER_SLICE)), "last"]
    asked = [Topic(name=name, partitions=[Partition(partition_index=0)]) for name in names]
    answer = broker.ask(DeleteRecordsRequest(topics=asked, timeout_ms=100), 2)
    codes = {each.partitions[0].error_code for each in answer.topics}
    assert codes == {Error.UNKNOWN_SERVER_ERROR}


def test_what_follows_on_the_connection_does_not_overtake_it(filled: WholeBroker) -> None:
    names = [*(f"t{number}" for number in range(20 * STEPS_PER_SLICE)), "t"]
    asked = [Topic(name=name, partitions=[Partition(offset=4)]) for name in names]
    deleted = filled.send(DeleteRecordsRequest(topics=asked, timeout_ms=100), 2)
    assert not deleted.is_resolved
    assert fetch(filled, 0).error_code == Error.OFFSET_OUT_OF_RANGE
    assert deleted.value.topics[-1].partitions[0].low_watermark == 4
