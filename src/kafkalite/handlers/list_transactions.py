"""ListTransactions, versions 0–2: the transactional ids that this broker coordinates (KIP-664).

Versions: 1 a least duration (KIP-994), 2 a pattern of ids (KIP-1152). State names that are unknown
are reported back, not refused.
"""

from __future__ import annotations

from kafkalite.coordinators.pattern_parsing import Alphabet, InvalidPattern
from kafkalite.coordinators.patterns import Pattern
from kafkalite.coordinators.transactions.events import List
from kafkalite.coordinators.transactions.transaction import STATES_BY_TITLE, State, Transaction
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.later import Later
from kafkalite.env.slicing import LOOKS_PER_STEP, InSteps, Steps
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
    pattern = yield from _pattern(request.transactional_id_pattern, listed)
    filters = yield from _filters(request, now_ms)
    wanted = []
    for number, one in enumerate(listed):
        if number % LISTED_PER_STEP == LISTED_PER_STEP - 1:
            yield
        if filters.want(one) and (
            pattern is None or (yield from pattern.matching(one.transactional_id))
        ):
            if not may(context, call, DESCRIBE, TRANSACTIONAL_ID, one.transactional_id):
                continue
            wanted.append(_listed(one))
    return ListTransactionsResponse(
        unknown_state_filters=list(filters.unknown), transaction_states=wanted
    )


def _pattern(text: str | None, listed: list[Transaction]) -> Steps[Pattern | None]:
    characters = set[str]()
    for number, one in enumerate(listed if text else (), 1):
        characters.update(one.transactional_id)
        if number % LISTED_PER_STEP == 0:
            yield
    return _compile(text, Alphabet(characters))


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


@dataclass(slots=True)
class _Filters:
    """What is asked for, of which there may be very many."""

    opened_before_ms: int | None
    producer_ids: set[int] = field(default_factory=set)
    states: set[State] = field(default_factory=set)
    unknown: dict[str, None] = field(default_factory=dict)  # names of states

    def want(self, one: Transaction) -> bool:
        return (
            one.state is not State.DEAD
            and (not self.producer_ids or one.producer_id in self.producer_ids)
            and (not (self.states or self.unknown) or one.state in self.states)
            and (self.opened_before_ms is None or one.started_ms < self.opened_before_ms)
        )


def _filters(request: ListTransactionsRequest, now_ms: int) -> Steps[_Filters]:
    has_duration = request.duration_filter >= 0
    filters = _Filters(now_ms - request.duration_filter if has_duration else None)
    for number, name in enumerate(request.state_filters, 1):
        state = STATES_BY_TITLE.get(name)
        if state is None:
            filters.unknown[name] = None
        else:
            filters.states.add(state)
        if number % LOOKS_PER_STEP == 0:
            yield
    for number, producer_id in enumerate(request.producer_id_filters, 1):
        filters.producer_ids.add(producer_id)
        if number % LOOKS_PER_STEP == 0:
            yield
    return filters


def _listed(one: Transaction) -> ListTransactionsResponse.TransactionState:
    return ListTransactionsResponse.TransactionState(
        transactional_id=one.transactional_id,
        producer_id=one.producer_id,
        transaction_state=one.state.title,
    )
