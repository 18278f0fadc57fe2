"""ListTransactions, versions 0–2: the transactional ids that this broker coordinates (KIP-664).

Versions: 1 a least duration (KIP-994), 2 a pattern of ids (KIP-1152). State names that are unknown
are reported back, not refused.
"""

from __future__ import annotations

from kafkalite.coordinators.pattern_parsing import Alphabet, InvalidPattern
from kafkalite.coordinators.patterns import Pattern
from kafkalite.coordinators.transactions.events import List
from kafkalite.coordinators.transactions.transaction import STATES_BY_TITLE, State, Transaction
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ListTransactionsRequest, ListTransactionsResponse
from kafkalite.security.acl import DESCRIBE, TRANSACTIONAL_ID

LISTED_PER_STEP = 500


def list_transactions(
    context: Context, call: Call, request: ListTransactionsRequest
) -> Later[ListTransactionsResponse | InSteps]:
    _compile(request.transactional_id_pattern, Alphabet(""))  # refused before anybody is asked
    now_ms = context.env.clock.now_ms()

    def respond(
        shards: list[list[Transaction] | KafkaError],
    ) -> ListTransactionsResponse | InSteps:
        listed: list[Transaction] = []
        for found in shards:
            if isinstance(found, KafkaError):
                return ListTransactionsResponse(error_code=Error.COORDINATOR_LOAD_IN_PROGRESS)
            listed += found
        return InSteps(_respond(context, call, request, listed, now_ms))

    return context.transactions.submit_all(List).map(respond)


def _respond(
    context: Context,
    call: Call,
    request: ListTransactionsRequest,
    listed: list[Transaction],
    now_ms: int,
) -> Steps[ListTransactionsResponse]:
    """In steps, by the work that the pattern makes."""
    characters = Alphabet(char for one in listed for char in one.transactional_id)
    pattern = _compile(request.transactional_id_pattern, characters)
    wanted = []
    for number, one in enumerate(listed):
        if number % LISTED_PER_STEP == LISTED_PER_STEP - 1:
            yield
        if _is_wanted(one, request, now_ms) and (
            pattern is None or (yield from pattern.matching(one.transactional_id))
        ):
            if not may(context, call, DESCRIBE, TRANSACTIONAL_ID, one.transactional_id):
                continue
            wanted.append(_listed(one))
    return ListTransactionsResponse(
        unknown_state_filters=[
            each for each in dict.fromkeys(request.state_filters) if each not in STATES_BY_TITLE
        ],
        transaction_states=wanted,
    )


def _compile(pattern: str | None, alphabet: Alphabet) -> Pattern | None:
    if not pattern:
        return None
    try:
        return Pattern(pattern, alphabet)
    except InvalidPattern as error:
        raise KafkaError(
            Error.INVALID_REGULAR_EXPRESSION,
            f"Transaction ID pattern `{pattern}` is not a valid regular expression: {error}.",
        ) from None


def _is_wanted(one: Transaction, request: ListTransactionsRequest, now_ms: int) -> bool:
    states = {STATES_BY_TITLE.get(name) for name in request.state_filters}
    return (
        one.state is not State.DEAD
        and (not request.producer_id_filters or one.producer_id in request.producer_id_filters)
        and (not states or one.state in states)
        and (request.duration_filter < 0 or now_ms - one.started_ms > request.duration_filter)
    )


def _listed(one: Transaction) -> ListTransactionsResponse.TransactionState:
    return ListTransactionsResponse.TransactionState(
        transactional_id=one.transactional_id,
        producer_id=one.producer_id,
        transaction_state=one.state.title,
    )
