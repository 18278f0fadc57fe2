"""What is answered at listeners for controllers otherwise than at those for clients.

Owns that a fetch is one of the metadata log there, and that what brokers forward is answered as if
its sender were connected: by a connection that lives for one request, whose answer goes back in an
envelope. Decides nothing about requests.
"""

from __future__ import annotations

from functools import partial

from kafkalite import handlers
from kafkalite.config.listeners import CONTROLLER, PLAINTEXT, SASL_PLAINTEXT
from kafkalite.env.disk import FileRange
from kafkalite.env.later import Later
from kafkalite.handlers.api_set import ApiSet
from kafkalite.handlers.call import ANONYMOUS, CloseConnection
from kafkalite.handlers.context import Context
from kafkalite.handlers.sender import Sender
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.counting import Counts
from kafkalite.server.dispatch import Dispatcher
from kafkalite.server.limits import LimitedLog
from kafkalite.server.terms import Outcome, reply_in

SIZE_BYTES = 4
FETCH_KEY = 1


def dispatchers_of(
    context: Context, log: LimitedLog, counts: Counts | None = None
) -> dict[str, Dispatcher]:
    """By the kind of listener."""
    context.api_sets[CONTROLLER] = ApiSet(CONTROLLER, _handler)
    found = {
        kind: Dispatcher(context, log, apis, counts) for kind, apis in context.api_sets.items()
    }
    context.answer_forwarded = partial(answer_forwarded, found[CONTROLLER])
    return found


def _handler(api_key: int) -> handlers.Handler | None:
    if api_key != FETCH_KEY:
        return handlers.handler(api_key)
    from kafkalite.handlers.fetch_metadata import fetch_metadata  # most brokers are not asked

    return fetch_metadata


def answer_forwarded(
    dispatcher: Dispatcher, data: bytes, sender: Sender
) -> Later[bytes | None]:
    """The response with its header; None when there can be none."""
    info = ConnectionInfo(
        sender.listener, sender.local_address, (sender.host, 0), CONTROLLER,
        PLAINTEXT if sender.principal == ANONYMOUS else SASL_PLAINTEXT,
        sender.principal, sender.is_by_token,
    )  # fmt: skip
    answer = dispatcher.answer(memoryview(data), info)
    if isinstance(answer, Later):
        return answer.map(_packed)
    return Later.of(None if answer is None else _packed(answer))


def _packed(outcome: Outcome) -> bytes | None:
    reply = reply_in(outcome)
    if isinstance(reply, CloseConnection):
        return None
    parts = (part.read() if isinstance(part, FileRange) else bytes(part) for part in reply)
    return b"".join(parts)[SIZE_BYTES:]
