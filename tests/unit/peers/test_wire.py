"""Whether a broker is asked in this process or over a link, it does the same and says the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkalite.coordinators.effects import Producer
from kafkalite.coordinators.transactions.markers import Marker
from kafkalite.coordinators.transactions.peer import Admission, Peer
from kafkalite.env.later import Later
from kafkalite.peers.wire import ADMITTING, MARKING, WirePeer
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    AddPartitionsToTxnResponse,
    WriteTxnMarkersResponse,
)
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.handlers.writer import Writer, writer

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)


class ToBroker:
    """A channel whose other end is a whole broker, that serves one of the versions."""

    def __init__(self, broker: WholeBroker, newest: int) -> None:
        self._broker, self._newest = broker, newest

    def ask(self, request: Any, versions: range) -> Later[Any]:
        return self._broker.send(request, min(versions.stop - 1, self._newest))


class Answering:
    """A channel that answers always the same."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def ask(self, request: Any, versions: range) -> Later[Any]:
        return Later.of(self._answer)


def by_wire(channel: Any) -> WirePeer:
    return WirePeer(channel, channel, channel)


def new_broker() -> WholeBroker:
    broker = WholeBroker()
    broker.create("t", 2)
    broker.create("u", 1)
    return broker


def told(broker: WholeBroker, asked: Later[Any]) -> Any:
    broker.clock.advance(0)
    assert asked.is_resolved
    return {
        where: Error(one.code if isinstance(one, KafkaError) else one)
        for where, one in asked.value.items()
    }


def by_both(act: Callable[[WholeBroker, Callable[[int], Peer]], Any], newest: int) -> Any:
    """What comes of it, which must be the same in both ways."""
    here, there = new_broker(), new_broker()
    found = act(here, lambda _: here.context.transactions)
    over_the_wire = act(there, lambda _: by_wire(ToBroker(there, newest)))
    assert over_the_wire == found
    here.close()
    there.close()
    return found


def open_transaction(broker: WholeBroker) -> Writer:
    who = writer(broker, version=1)
    assert who.add(*T0) == Error.NONE
    return who


ADMISSIONS: dict[str, tuple[Callable[[Writer], Admission], dict[Any, Error]]] = {
    "verified": (lambda who: asking(who, T0), {}),
    "not part of it": (lambda who: asking(who, T0, T1, U0), {
        T1: Error.TRANSACTION_ABORTABLE, U0: Error.TRANSACTION_ABORTABLE,
    }),
    "added": (lambda who: asking(who, T0, T1, U0, is_adding=True), {}),
    "fenced": (lambda who: asking(who, T0, T1, epoch=7, is_adding=True), {
        T0: Error.PRODUCER_FENCED, T1: Error.PRODUCER_FENCED,
    }),
    "unknown id": (lambda who: Admission("nobody", 99, 0, (T0,), is_adding=False), {
        T0: Error.INVALID_PRODUCER_ID_MAPPING,
    }),
}  # fmt: skip


def asking(who: Writer, *partitions: Any, epoch: int = -1, is_adding: bool = False) -> Admission:
    epoch = who.epoch if epoch < 0 else epoch
    return Admission(who.id, who.producer_id, epoch, partitions, is_adding)


@pytest.mark.parametrize("name", ADMISSIONS)
@pytest.mark.parametrize("newest", ADMITTING)
def test_admissions(name: str, newest: int) -> None:
    question, expected = ADMISSIONS[name]

    def act(broker: WholeBroker, peer: Callable[[int], Peer]) -> Any:
        who = open_transaction(broker)
        refusals = told(broker, peer(1).admit(question(who)))
        # And of what was added the coordinator knows.
        again = told(broker, peer(1).admit(asking(who, T0, T1, U0)))
        return refusals, sorted(again)

    refusals, absent = by_both(act, newest)
    assert refusals == expected
    assert absent == ([] if name == "added" else [T1, U0])


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("newest", MARKING)
def test_markers(commit: bool, newest: int) -> None:
    def act(broker: WholeBroker, peer: Callable[[int], Peer]) -> Any:
        who = open_transaction(broker)
        who.add(*T1)
        who.write(b"a")
        who.write(b"b", index=1)
        producer = Producer(who.producer_id, who.epoch)
        gone = ("gone", 3)
        marker = Marker(producer, 0, commit, 1, (T0, T1, gone))
        outcomes = told(broker, peer(1).write_markers(marker))
        log = broker.partition().log
        return outcomes, log.last_stable_offset, log.aborted_transactions(0, 2)

    outcomes, stable, aborted = by_both(act, newest)
    assert outcomes == {
        T0: Error.NONE, T1: Error.NONE, ("gone", 3): Error.UNKNOWN_TOPIC_OR_PARTITION,
    }  # fmt: skip
    assert stable == 2
    assert bool(aborted) is not commit


def test_what_fails_on_the_way_is_told_for_each_partition() -> None:
    peer = by_wire(Answering(KafkaError(Error.NETWORK_EXCEPTION)))
    refusals = peer.admit(Admission("w", 1, 0, (T0, T1), is_adding=True)).value
    assert {where: one.code for where, one in refusals.items()} == {
        T0: Error.NETWORK_EXCEPTION, T1: Error.NETWORK_EXCEPTION,
    }  # fmt: skip
    outcomes = peer.write_markers(Marker(Producer(1, 0), 0, True, 1, (T0, T1))).value
    assert set(outcomes.values()) == {Error.NETWORK_EXCEPTION}


@pytest.mark.parametrize(
    "answer",
    [
        AddPartitionsToTxnResponse(),
        AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResponse.ResultsByTransaction(transactional_id="another")
            ]
        ),
    ],
)
def test_a_partition_that_an_answer_leaves_out_is_not_admitted(answer: Any) -> None:
    peer = by_wire(Answering(answer))
    refusals = peer.admit(Admission("w", 1, 0, (T0,), is_adding=True)).value
    assert refusals[T0].code == Error.UNKNOWN_SERVER_ERROR


def test_an_answer_with_an_error_of_its_own_refuses_all() -> None:
    answer = AddPartitionsToTxnResponse(error_code=Error.CLUSTER_AUTHORIZATION_FAILED)
    peer = by_wire(Answering(answer))
    refusals = peer.admit(Admission("w", 1, 0, (T0,), is_adding=True)).value
    assert refusals[T0].code == Error.CLUSTER_AUTHORIZATION_FAILED


def test_a_marker_that_an_answer_leaves_out_is_not_taken_for_written() -> None:
    peer = by_wire(Answering(WriteTxnMarkersResponse()))
    outcomes = peer.write_markers(Marker(Producer(1, 0), 0, True, 1, (T0,))).value
    assert outcomes == {T0: Error.UNKNOWN_SERVER_ERROR}


def test_an_error_that_nobody_has_heard_of_is_one() -> None:
    topic = WriteTxnMarkersResponse.Topic(
        name="t",
        partitions=[WriteTxnMarkersResponse.Partition(partition_index=0, error_code=9_999)],
    )
    entry = WriteTxnMarkersResponse.Marker(producer_id=1, topics=[topic])
    peer = by_wire(Answering(WriteTxnMarkersResponse(markers=[entry])))
    outcomes = peer.write_markers(Marker(Producer(1, 0), 0, True, 1, (T0,))).value
    assert outcomes == {T0: Error.UNKNOWN_SERVER_ERROR}


def test_no_producer_hears_that_a_peer_was_too_slow() -> None:
    """As with Apache Kafka, to which it is a connection that failed."""
    admission = Admission("mine", 1, 0, (T0,), is_adding=True)
    late = by_wire(Answering(KafkaError(Error.REQUEST_TIMED_OUT)))
    assert late.admit(admission).value[T0].code == Error.NETWORK_EXCEPTION


def test_a_mistake_with_an_answer_leaves_nobody_waiting(caplog: pytest.LogCaptureFixture) -> None:
    peer = by_wire(Answering(object()))
    admission = Admission("mine", 1, 0, (T0,), is_adding=True)
    assert peer.admit(admission).value[T0].code == Error.UNKNOWN_SERVER_ERROR
    marker = Marker(Producer(1, 0), 0, True, 0, (T0,))
    assert peer.write_markers(marker).value == {T0: Error.UNKNOWN_SERVER_ERROR}
    assert caplog.text.count("an answer was not understood: object") == 2
