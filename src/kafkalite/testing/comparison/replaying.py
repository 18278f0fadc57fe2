"""Sends the requests of a trace to two brokers and says where their answers differ.

The trace's order is kept: what was asked before an answer came is asked before that answer is
awaited, on connections as they were. Ids that the trace's broker chose are renamed to what each of
the two chose in the same place, and counters (shifts.py) to where the two stand. What was answered
"not yet" is left out, because settling.py waits instead; a Fetch that waited in vain does not wait
again.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafkalite.client.secrets import hides_settings
from kafkalite.client.wire import NoReply
from kafkalite.protocol.messages import MetadataRequest, ProduceRequest
from kafkalite.testing.comparison import differences, settling
from kafkalite.testing.comparison.batches import with_epochs
from kafkalite.testing.comparison.comparing import Comparison, Difference, in_order, resolve
from kafkalite.testing.comparison.names import NODE_ID, Names
from kafkalite.testing.comparison.shifts import Shifts
from kafkalite.testing.comparison.side import Side
from kafkalite.testing.comparison.views import View
from kafkalite.testing.recording.said import REQUEST, Said, frame_of
from kafkalite.testing.recording.secrets import HANDSHAKE, LOGIN

ANSWER_TIMEOUT_S = 40.0
# What is not answered in this time waits for something that comes later in the trace.
PARKED_AFTER_S = 0.1
FETCH_WAIT_MS = 3_000
ATTEMPTS, PAUSE_S = 9, 0.03
SETTLED_USER = "kafkalite-replay-settled"

# Why a request is left out, or sent and not compared.
UNREAD = "could not be read when it was recorded"
NOT_ON_THE_WIRE = "cannot be put on the wire"
A_LOGIN = "was a login: each broker has its own, which is said beside the trace"
TOO_EARLY = "was answered “not yet” when it was recorded"
A_SECRET = "sets something secret, which was not written down"
UNANSWERED = "has no answer in the trace"
SILENT = "was answered by neither broker in time"
UNREADABLE = "was answered by both in a way that cannot be read"


@dataclass(slots=True, eq=False)
class Exchange:
    """One request of the trace, what was answered then, and what is answered now."""

    asked: Said
    answered: Said | None = None
    frames: dict[int, bytes | NoReply] = field(default_factory=dict)  # by side
    differences: list[Difference] = field(default_factory=list)
    allowed: list[Difference] = field(default_factory=list)
    left_out: str = ""  # why it was not sent
    not_compared: str = ""  # why not, although it was sent

    @property
    def is_left_out(self) -> bool:
        return bool(self.left_out)

    @property
    def is_never_answered(self) -> bool:
        message = self.asked.message
        return isinstance(message, ProduceRequest) and message.acks == 0

    @property
    def api(self) -> str:
        return str(self.asked.api)

    @property
    def version(self) -> int:
        assert self.asked.version is not None
        return self.asked.version


class Replay:
    """One trace, two brokers. `run` yields each exchange when its answers have been compared."""

    def __init__(self, ours: Side, theirs: Side, trace: Sequence[Said]) -> None:
        self.sides = (ours, theirs)
        self._events = list(_exchanges(trace))
        self._comparison = Comparison(ours.names, theirs.names)
        self._recorded = View(Names())
        self._shifts = Shifts()
        self._waiting: dict[int, deque[Exchange]] = defaultdict(deque)
        self._last_use = {
            exchange.asked.connection: number for number, (_, exchange) in enumerate(self._events)
        }
        self._transactions = sorted(_transactional_ids(trace))

    def __len__(self) -> int:
        """The number of requests."""
        return sum(kind == REQUEST for kind, _ in self._events)

    def run(self) -> Iterator[Exchange]:
        for side in self.sides:
            settling.warm_up(side)
            _name_nodes(side, self._events)
        for number, (kind, exchange) in enumerate(self._events):
            if kind == REQUEST:
                self._ask(exchange)
                if exchange.is_left_out or exchange.answered is None:
                    yield exchange
            elif not exchange.is_left_out:
                self._compare(exchange)
                yield exchange
            if self._last_use[exchange.asked.connection] == number:
                self._hang_up(exchange.asked.connection)

    def _hang_up(self, connection: int) -> None:
        for side in self.sides:
            side.hang_up(connection)
        self._waiting.pop(connection, None)

    # --- asking -----------------------------------------------------------------------------------

    def _ask(self, exchange: Exchange) -> None:
        exchange.left_out = self._why_left_out(exchange)
        if exchange.left_out:
            return
        _adjust_waiting(exchange)
        self._shift(exchange.asked.message)
        connection = exchange.asked.connection
        for side in self.sides:
            side.send(exchange.asked.message, exchange.version, connection)
        if not exchange.is_never_answered:
            self._waiting[connection].append(exchange)
        if exchange.answered is None:
            exchange.not_compared = UNANSWERED
            return
        for number in range(len(self.sides)):
            self._receive(number, exchange, PARKED_AFTER_S)

    def _why_left_out(self, exchange: Exchange) -> str:
        if exchange.asked.message is None:
            return UNREAD
        if exchange.api in (HANDSHAKE, LOGIN):
            return A_LOGIN
        if hides_settings(exchange.asked.message):
            return A_SECRET
        try:
            frame_of(exchange.asked)
        except ValueError:
            return NOT_ON_THE_WIRE
        return TOO_EARLY if self._came_too_early(exchange) else ""

    def _shift(self, message: Any) -> None:
        if isinstance(message, ProduceRequest):
            for partition in (one for topic in message.topic_data for one in topic.partition_data):
                if partition.records is not None:
                    epochs = self._shifts.producer_epoch
                    partition.records = with_epochs(partition.records, epochs)
        self._shifts.apply(message)

    def _came_too_early(self, exchange: Exchange) -> bool:
        if exchange.answered is None or exchange.answered.message is None:
            return False
        view = self._view_then(exchange)
        is_early = any(code in settling.NOT_YET for code in settling.texts(view))
        return is_early and exchange.api != "Produce"

    def _receive(self, number: int, exchange: Exchange, timeout_s: float) -> None:
        """The answers on this connection, in order, until that of this exchange has come."""
        wire = self.sides[number].wire(exchange.asked.connection)
        for each in self._waiting[exchange.asked.connection]:
            if number not in each.frames:
                frame = wire.poll(timeout_s)
                if frame is None:
                    return
                each.frames[number] = frame
            if each is exchange:
                return

    # --- comparing --------------------------------------------------------------------------------

    def _compare(self, exchange: Exchange) -> None:
        for number in range(len(self.sides)):
            self._receive(number, exchange, ANSWER_TIMEOUT_S)
        waiting = self._waiting[exchange.asked.connection]
        while waiting.popleft() is not exchange:
            pass
        if all(exchange.frames.get(each) == NoReply.SILENT for each in (0, 1)):
            exchange.not_compared = SILENT
            return
        ours, theirs = self._views(exchange)
        if ours == theirs and not isinstance(ours, dict) and ours != NoReply.CLOSED.value:
            exchange.not_compared = UNREADABLE
            return
        found = self._found(exchange, ours, theirs)
        exchange.differences = differences.unexplained(found)
        exchange.allowed = [each for each in found if differences.explain(each)]
        then = self._view_then(exchange)
        self._comparison.learn(ours, theirs, then)
        if not found:
            answer = in_order(resolve(ours, self.sides[0].names))
            self._shifts.learn(exchange.asked.message, answer, in_order(resolve(then, Names())))
        self._settle(exchange.api)

    def _found(self, exchange: Exchange, ours: Any, theirs: Any) -> list[Difference]:
        asked = exchange.asked.message
        return self._comparison.differences(exchange.api, exchange.version, ours, theirs, asked)

    def _views(self, exchange: Exchange) -> tuple[Any, Any]:
        """Of the answers, or of later ones when who is asked again may answer otherwise."""
        frames = [exchange.frames.get(number, NoReply.SILENT) for number in (0, 1)]
        for attempt in range(1, ATTEMPTS + 1):
            ours, theirs = (self._view(number, exchange, frames[number]) for number in (0, 1))
            found = self._found(exchange, ours, theirs)
            again = [number for number, view in enumerate((ours, theirs))
                     if settling.may_change(exchange.api, view)]
            if not again or not differences.unexplained(found):
                break
            time.sleep(PAUSE_S * attempt)
            for number in again:
                side = self.sides[number]
                frames[number] = side.ask_again(exchange.asked.message, exchange.version)
        return ours, theirs

    def _view(self, number: int, exchange: Exchange, frame: bytes | NoReply) -> Any:
        message = exchange.asked.message
        assert message is not None
        return self.sides[number].understand(frame, message.API_KEY, exchange.version)

    def _view_then(self, exchange: Exchange) -> Any:
        """Of the answer in the trace; its ids are names of their own."""
        said = exchange.answered
        if said is None or said.message is None or said.version is None:
            return None
        return self._recorded.of(said.message, said.version)

    def _settle(self, api: str) -> None:
        for side in self.sides:
            if api in settling.SLOW:
                settling.settle_metadata(side, SETTLED_USER)
            elif api in settling.TRANSACTIONAL and self._transactions:
                settling.settle_transactions(side, self._transactions)


def _exchanges(trace: Sequence[Said]) -> Iterator[tuple[str, Exchange]]:
    """What was said, in order: each request, and each response that answers one."""
    asked: dict[tuple[int, int | None], deque[Exchange]] = defaultdict(deque)
    for said in trace:
        waiting = asked[said.connection, said.correlation_id]
        if said.kind == REQUEST:
            exchange = Exchange(said)
            if not exchange.is_never_answered:  # what has its correlation id answers a later one
                waiting.append(exchange)
            yield said.kind, exchange
        elif waiting:
            waiting[0].answered = said
            yield said.kind, waiting.popleft()


def _adjust_waiting(exchange: Exchange) -> None:
    """A Fetch whose answer was empty does not wait; one that came to something may wait long."""
    message, answered = exchange.asked.message, exchange.answered
    if exchange.api != "Fetch" or message is None or answered is None or answered.message is None:
        return
    has_records = any(
        partition.records for topic in answered.message.responses for partition in topic.partitions
    )
    message.max_wait_ms = FETCH_WAIT_MS if has_records and message.max_wait_ms > 0 else 0


def _transactional_ids(trace: Sequence[Said]) -> set[str]:
    found = (getattr(said.message, "transactional_id", None) for said in trace)
    return {each for each in found if each}


def _name_nodes(side: Side, events: Sequence[tuple[str, Exchange]]) -> None:
    """The nodes of the trace by the order of their ids are those of the side by theirs."""
    recorded = sorted(
        {
            broker.node_id
            for _, each in events
            if each.api == "Metadata" and each.answered and each.answered.message
            for broker in each.answered.message.brokers
        }
    )
    actual = side.ask(MetadataRequest(topics=[]), 5).brokers
    actual.sort(key=lambda broker: broker.node_id)
    for canonical, broker in zip(recorded, actual, strict=False):
        side.names.bind(NODE_ID, broker.node_id, canonical)
