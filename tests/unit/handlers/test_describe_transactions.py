"""DescribeTransactions: each id's state, and an error for that id alone."""

from __future__ import annotations

from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeTransactionsRequest
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.handlers.writer import writer


def describe(broker: WholeBroker, *names: str) -> list[Any]:
    request = DescribeTransactionsRequest(transactional_ids=list(names))
    found: list[Any] = broker.ask(request, 0).transaction_states
    assert [one.transactional_id for one in found] == list(names)
    return found


def test_an_id_that_has_not_begun(broker: WholeBroker) -> None:
    who = writer(broker)
    (one,) = describe(broker, "w")
    assert (one.error_code, one.transaction_state) == (0, "Empty")
    assert (one.producer_id, one.producer_epoch) == (who.producer_id, who.epoch)
    assert (one.transaction_timeout_ms, one.transaction_start_time_ms) == (60_000, -1)
    assert one.topics == []


def test_an_open_transaction_and_its_partitions(broker: WholeBroker) -> None:
    broker.create("pair", partitions=2)
    who = writer(broker)
    broker.clock.advance(5)
    begun_ms = broker.now_ms
    who.write(b"a", topic="pair", index=1)
    broker.clock.advance(5)
    who.write(b"a", topic="pair", index=0)
    who.write(b"a")
    (one,) = describe(broker, "w")
    assert (one.transaction_state, one.transaction_start_time_ms) == ("Ongoing", begun_ms)
    found = {topic.topic: sorted(topic.partitions) for topic in one.topics}
    assert found == {"pair": [0, 1], "t": [0]}


def test_what_became_of_it(broker: WholeBroker) -> None:
    kept, gone = writer(broker, "kept"), writer(broker, "gone")
    kept.transact(b"a", commit=True)
    gone.transact(b"b", commit=False)
    states = [(one.transaction_state, one.topics) for one in describe(broker, "kept", "gone")]
    assert states == [("CompleteCommit", []), ("CompleteAbort", [])]


def test_an_error_is_that_ids_alone(broker: WholeBroker) -> None:
    writer(broker)
    found = describe(broker, "nobody", "w", "")
    assert [one.error_code for one in found] == [
        Error.TRANSACTIONAL_ID_NOT_FOUND, 0, Error.INVALID_REQUEST,
    ]  # fmt: skip


def test_before_there_is_a_coordinator(broker: WholeBroker) -> None:
    assert describe(broker, "w")[0].error_code == Error.NOT_COORDINATOR


def test_a_restart_forgets_nothing(broker: WholeBroker) -> None:
    who = writer(broker)
    who.write(b"a")
    broker.close()
    again = broker.started_again()
    (one,) = describe(again, "w")
    assert (one.transaction_state, one.producer_id) == ("Ongoing", who.producer_id)
    again.clock.advance(60_000)
    assert describe(again, "w")[0].transaction_state == "CompleteAbort"
    again.close()
