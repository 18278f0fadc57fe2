"""ListTransactions, versions 0–2: the transactional ids that this broker coordinates (KIP-664).

Versions: 1 a least duration (KIP-994), 2 a pattern of ids (KIP-1152). State names that are unknown
are reported back, not refused.
"""

from __future__ import annotations

import re
from typing import Any

from kafkalite.coordinators.transactions.transaction import STATES_BY_TITLE, State, Transaction
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ListTransactionsRequest, ListTransactionsResponse


def list_transactions(
    context: Context, call: Call, request: ListTransactionsRequest
) -> Later[ListTransactionsResponse]:
    pattern = _compile(request.transactional_id_pattern)
    now_ms = context.env.clock.now_ms()
    response: Later[ListTransactionsResponse] = Later()

    def respond(shards: list[Any]) -> None:
        if any(isinstance(answer, KafkaError) for answer in shards):
            response.resolve(
                ListTransactionsResponse(error_code=Error.COORDINATOR_LOAD_IN_PROGRESS)
            )
            return
        response.resolve(ListTransactionsResponse(
            unknown_state_filters=[
                each for each in dict.fromkeys(request.state_filters) if each not in STATES_BY_TITLE
            ],
            transaction_states=[
                _listed(one)
                for shard in shards for one in shard
                if _is_wanted(one, request, pattern, now_ms)
            ],
        ))

    context.transactions.list().then(respond)
    return response


def _compile(pattern: str | None) -> re.Pattern[str] | None:
    if not pattern:
        return None
    try:
        return re.compile(pattern)
    except re.error as error:
        raise KafkaError(
            Error.INVALID_REGULAR_EXPRESSION,
            f"Transaction ID pattern `{pattern}` is not a valid regular expression: {error}.",
        ) from None


def _is_wanted(
    one: Transaction,
    request: ListTransactionsRequest,
    pattern: re.Pattern[str] | None,
    now_ms: int,
) -> bool:
    states = {STATES_BY_TITLE.get(name) for name in request.state_filters}
    return (
        one.state is not State.DEAD
        and (not request.producer_id_filters or one.producer_id in request.producer_id_filters)
        and (not states or one.state in states)
        and (request.duration_filter < 0 or now_ms - one.started_ms > request.duration_filter)
        and (pattern is None or pattern.fullmatch(one.transactional_id) is not None)
    )


def _listed(one: Transaction) -> ListTransactionsResponse.TransactionState:
    return ListTransactionsResponse.TransactionState(
        transactional_id=one.transactional_id,
        producer_id=one.producer_id,
        transaction_state=one.state.title,
    )
