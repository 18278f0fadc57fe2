"""InitProducerId: who gets which id and epoch, and what becomes of the transaction before."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.handlers.call import Call
from kafkalite.handlers.init_producer_id import init_producer_id
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import InitProducerIdRequest, InitProducerIdResponse
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.handlers.writer import Writer, writer


def ask(broker: WholeBroker, transactional_id: str | None, version: int = 5, **fields: Any) -> Any:
    fields = {"transaction_timeout_ms": 60_000, **fields}
    return broker.ask(InitProducerIdRequest(transactional_id=transactional_id, **fields), version)


@pytest.mark.parametrize("version", range(6))
def test_an_idempotent_producer_gets_an_id_of_its_own(broker: WholeBroker, version: int) -> None:
    answers = [ask(broker, None, version) for _ in range(3)]
    assert all((one.error_code, one.producer_epoch) == (0, 0) for one in answers)
    assert len({one.producer_id for one in answers}) == 3


def test_ids_do_not_come_again_after_a_restart(broker: WholeBroker) -> None:
    before = ask(broker, None).producer_id
    broker.close()
    again = broker.started_again()
    assert ask(again, None).producer_id > before
    again.close()


def test_the_same_transactional_id_keeps_its_producer_id(broker: WholeBroker) -> None:
    who = writer(broker)
    first = who.producer_id, who.epoch
    assert who.init() is Error.NONE
    assert (who.producer_id, who.epoch) == (first[0], first[1] + 1)
    assert writer(broker, "another").producer_id != who.producer_id


def test_a_successor_aborts_what_its_predecessor_left_open(broker: WholeBroker) -> None:
    zombie = writer(broker)
    zombie.write(b"a")
    successor = Writer(broker)
    assert successor.init() is Error.CONCURRENT_TRANSACTIONS
    broker.clock.advance(100)
    assert successor.init() is Error.NONE
    assert successor.producer_id == zombie.producer_id
    assert successor.epoch > zombie.epoch
    partition = broker.partition()
    assert partition.last_stable_offset == partition.high_watermark == 2
    assert len(partition.log.aborted_transactions(0, 2)) == 1
    assert zombie.write(b"b").error_code == Error.INVALID_PRODUCER_EPOCH
    assert zombie.end() is Error.PRODUCER_FENCED


def test_a_producer_goes_on_after_an_error(broker: WholeBroker) -> None:
    who = writer(broker)
    known = {"producer_id": who.producer_id, "producer_epoch": who.epoch}
    assert who.init(**known) is Error.NONE
    assert who.epoch == known["producer_epoch"] + 1
    assert who.init(**known) is Error.NONE, "the answer was lost: asked again"
    assert who.epoch == known["producer_epoch"] + 1


@pytest.mark.parametrize(
    ("version", "code"), [(3, Error.INVALID_PRODUCER_EPOCH), (4, Error.PRODUCER_FENCED)]
)
def test_who_was_replaced_cannot_go_on(broker: WholeBroker, version: int, code: Error) -> None:
    old = writer(broker)
    for _ in range(2):
        writer(broker)
    answer = ask(broker, "w", version, producer_id=old.producer_id, producer_epoch=old.epoch)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)


@pytest.mark.parametrize("transactional_id", ["w", None])
@pytest.mark.parametrize("half", [{"producer_id": 5}, {"producer_epoch": 5}])
def test_an_id_without_an_epoch_or_an_epoch_without_an_id(
    broker: WholeBroker, transactional_id: str | None, half: dict[str, int]
) -> None:
    answer = ask(broker, transactional_id, **half)
    assert answer.error_code == Error.INVALID_REQUEST
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_out_of_bounds(broker: WholeBroker, timeout_ms: int) -> None:
    answer = ask(broker, "w", transaction_timeout_ms=timeout_ms)
    assert answer.error_code == Error.INVALID_TRANSACTION_TIMEOUT
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


def test_an_empty_transactional_id(broker: WholeBroker) -> None:
    answer = ask(broker, "")
    assert answer.error_code == Error.INVALID_REQUEST
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


def test_before_there_is_a_coordinator(broker: WholeBroker) -> None:
    assert ask(broker, "w").error_code == Error.NOT_COORDINATOR


def test_a_forgotten_transaction_is_aborted_by_time(broker: WholeBroker) -> None:
    who = Writer(broker, timeout_ms=5_000)
    who.init()
    who.write(b"a")
    broker.clock.advance(4_999)
    assert broker.partition().last_stable_offset == 0
    broker.clock.advance(1)
    assert broker.partition().last_stable_offset == 2
    assert who.end(commit=True) is Error.INVALID_TXN_STATE
    assert who.init(producer_id=who.producer_id, producer_epoch=who.epoch) is Error.NONE
    who.transact(b"b", commit=True)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"enable2_pc": True}, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"keep_prepared_txn": True}, Error.UNSUPPORTED_VERSION),
    ],
)
def test_two_phase_commit_is_refused_as_where_it_is_disabled(
    broker: WholeBroker, asked: dict[str, bool], code: Error
) -> None:
    """The version that has it (KIP-939) is not stable and no listener serves it: the handler
    is asked itself."""
    request = InitProducerIdRequest(transactional_id="w", transaction_timeout_ms=60_000, **asked)
    call = Call(InitProducerIdRequest.API_KEY, 6, 0, "me", broker.connection)
    answer = init_producer_id(broker.context, call, request)
    assert isinstance(answer, InitProducerIdResponse)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)
    assert writer(broker).epoch == 0, "nothing has begun"
