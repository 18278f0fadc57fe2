"""Whether a transaction may be committed or aborted now: the rules of EndTxn as tables.

Owns no state. Before transaction version 2 the epoch of a request must be the current one, and a
repeated request is known by the state alone. From version 2 on (KIP-890) the epoch rises with each
end, so a repeated request is known by the epoch before, or, when the producer id was replaced
because its epochs were used up, by the last epoch of the id before. While an end is under way
everybody has to wait.
"""

from __future__ import annotations

from enum import Enum

from kafkalite.coordinators.transactions.events import EndTransaction
from kafkalite.coordinators.transactions.transaction import (
    LAST_CLIENT_EPOCH,
    PREPARED,
    SETTLED,
    State,
    Transaction,
)
from kafkalite.protocol.errors import Error, KafkaError


class Outcome(Enum):
    """What EndTxn comes to when it is not refused."""

    PREPARE = "prepare"
    DONE_ALREADY = "done already"

    @property
    def is_done_already(self) -> bool:
        return self is Outcome.DONE_ALREADY


P, D = Outcome.PREPARE, Outcome.DONE_ALREADY
WRONG = Error.INVALID_TXN_STATE

# (state, is a commit asked for) -> outcome or refusal
BEFORE_VERSION_2: dict[tuple[State, bool], Outcome | Error] = {
    (State.ONGOING, True): P,
    (State.ONGOING, False): P,
    (State.COMPLETE_COMMIT, True): D,
    (State.COMPLETE_COMMIT, False): WRONG,
    (State.COMPLETE_ABORT, True): WRONG,
    (State.COMPLETE_ABORT, False): D,
    (State.EMPTY, True): WRONG,
    (State.EMPTY, False): WRONG,
}

# (state, is a commit asked for, is a repeated request) -> outcome or refusal
SINCE_VERSION_2: dict[tuple[State, bool, bool], Outcome | Error] = {
    (State.ONGOING, True, False): P,
    (State.ONGOING, False, False): P,
    (State.COMPLETE_COMMIT, True, True): D,
    (State.COMPLETE_COMMIT, True, False): WRONG,
    (State.COMPLETE_COMMIT, False, True): WRONG,
    (State.COMPLETE_COMMIT, False, False): P,
    (State.COMPLETE_ABORT, True, True): WRONG,
    (State.COMPLETE_ABORT, True, False): WRONG,
    (State.COMPLETE_ABORT, False, True): D,
    (State.COMPLETE_ABORT, False, False): P,
    (State.EMPTY, True, False): WRONG,
    (State.EMPTY, False, False): P,
}


def outcome_of(current: Transaction, event: EndTransaction) -> Outcome:
    """What to do about the request; raises KafkaError when it is refused."""
    if event.client_version < 2:
        _check_producer(current, event)
        refuse_while_it_ends(current)
        found = BEFORE_VERSION_2[current.state, event.is_commit]
    else:
        refuse_while_it_ends(current)
        is_repeated = _is_repeated(current, event)
        found = SINCE_VERSION_2[current.state, event.is_commit, is_repeated]
    if isinstance(found, Error):
        raise KafkaError(found)
    return found


def refuse_while_it_ends(current: Transaction | None) -> None:
    """Since version 2 before anything else: its producer was told at once who it is afterwards, and
    may come as that (KAFKA-18464)."""
    if current is not None and current.state in PREPARED:
        raise KafkaError(Error.CONCURRENT_TRANSACTIONS)


def _check_producer(current: Transaction, event: EndTransaction) -> None:
    if current.producer_id != event.producer_id:
        raise KafkaError(Error.INVALID_PRODUCER_ID_MAPPING)
    if current.producer_epoch != event.producer_epoch:
        raise KafkaError(Error.PRODUCER_FENCED)


def _is_repeated(current: Transaction, event: EndTransaction) -> bool:
    """Tell a repeated request from a new one by its epoch; one with any other epoch is fenced."""
    was_replaced = (
        current.previous_producer_id == event.producer_id
        and event.producer_epoch == LAST_CLIENT_EPOCH
        and current.producer_epoch == 0
    )
    was_bumped = current.producer_epoch == event.producer_epoch + 1
    is_current = current.producer_epoch == event.producer_epoch
    if current.producer_id != event.producer_id and not was_replaced:
        raise KafkaError(Error.INVALID_PRODUCER_ID_MAPPING)
    if current.state in SETTLED and current.state is not State.EMPTY:
        is_known = was_bumped or was_replaced or is_current
    else:
        is_known = is_current
    if not is_known:
        raise KafkaError(Error.PRODUCER_FENCED)
    return was_bumped or was_replaced
