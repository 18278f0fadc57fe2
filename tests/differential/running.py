"""Runs one conversation with both brokers and stops at the first answer that differs.

Both are asked the same at once. So that timing decides nothing, comparison/settling.py waits where
an answer comes before its change shows, and an answer that says "not yet" is asked for again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kafkalite.client.wire import NoAnswer
from kafkalite.protocol import messages, spec
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    DeleteTopicsRequest,
    DescribeTransactionsRequest,
)
from kafkalite.testing.comparison import differences, settling
from kafkalite.testing.comparison.comparing import Comparison, Difference, resolve
from kafkalite.testing.comparison.side import Side
from tests.differential.generating import Step
from tests.differential.ledger import Ledger
from tests.differential.memory import Memory
from tests.differential.pools import ODD_TOPICS, TOPICS
from tests.differential.unlike import leaves_unlike, parts_states

REPLY_TIMEOUT_S = 20.0
# Apache Kafka never answers some of these; see the table of allowed differences.
SILENT_AFTER_S = {
    **dict.fromkeys("Produce AddPartitionsToTxn WriteTxnMarkers AlterConfigs Fetch".split(), 2.0),
    "JoinGroup": 12.0,  # longer than a member of the pools may wait for another
}
ATTEMPTS, PAUSE_S = 12, 0.03
CREATING = frozenset(("CreateTopics", "Metadata"))
TRANSACTIONAL_IDS = ("till-RUN", "bank-RUN")
LEFT_PREPARED = "a transaction that both leave prepared"


@dataclass(slots=True)
class Outcome:
    """How a conversation went: the steps taken, and what of the last one differed."""

    steps: list[Step] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    allowed: list[Difference] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)


class Speaker(Side):
    """A side in a conversation of steps."""

    def begin(self, run: str) -> None:
        self.close()
        self.names.__init__(run)  # type: ignore[misc]
        self.name_addresses()

    def say(self, step: Step) -> None:
        self.send(step.request, step.version)

    def receive(self, step: Step) -> Any:
        frame = self.wire().receive(SILENT_AFTER_S.get(step.api, REPLY_TIMEOUT_S))
        view = self.understand(frame, step.request.API_KEY, step.version)
        return only_ours(view, step) if isinstance(view, dict) else view

    def answer(self, step: Step) -> Any:
        """The view of the answer, or why there is none."""
        if _has_no_answer(step):
            return self.is_still_open()
        return self.receive(step)

    def is_still_open(self) -> str:
        """After a request without an answer, which fails by closing the connection."""
        self.send(ApiVersionsRequest(), 0)
        is_open = isinstance(self.wire().receive(REPLY_TIMEOUT_S), bytes)
        return "the connection is open" if is_open else "the connection is closed"


class Runner:
    """Two brokers, and conversations with both.

    A conversation that writes markers of its own may leave a transaction that neither ends: its
    partition refuses the coordinator's, and both give it up.
    """

    has_marked = is_left_prepared = False  # in this conversation

    def __init__(
        self, ours: Speaker, theirs: Speaker, *, served: dict[str, range] | None = None
    ) -> None:
        """Where it is known what they have `served`, both have been warmed up before."""
        self.sides = (ours, theirs)
        self.count = 0
        self.served = served or _served(*self.sides)
        self.prefix = f"x{secrets.token_hex(4)}"
        if served is None:
            for side in self.sides:
                settling.warm_up(side)

    def close(self) -> None:
        for side in self.sides:
            side.close()

    def run(self, steps: Iterable[Step], memory: Memory | None = None) -> Outcome:
        """Until the steps end or an answer differs without a reason."""
        self.begin()
        outcome = Outcome()
        for step in steps:
            outcome.steps.append(step)
            self._step(step, outcome, memory)
            if outcome.differences or any(map(parts_states, outcome.allowed)):
                break
            if self.is_left_prepared:
                break
            before = [each.request for each in outcome.steps[:-1]]
            if leaves_unlike(step.request, outcome.answers[-1], before):
                break
        self._clean_up(outcome)
        return outcome

    def begin(self) -> None:
        """A new conversation, which knows nothing of those before."""
        self.count += 1
        self.has_marked = self.is_left_prepared = False
        for side in self.sides:
            side.begin(f"{self.prefix}n{self.count}e")
        self.comparison = Comparison(*(side.names for side in self.sides))

    def _clean_up(self, outcome: Outcome) -> None:
        """Deletes what was created, so that thousands of conversations leave no partitions."""
        if any(step.api in CREATING for step in outcome.steps):
            for side in self.sides:
                names = [side.names.text_out(name) for name in {*TOPICS, *ODD_TOPICS}]
                side.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=10_000), 5)

    def _step(self, step: Step, outcome: Outcome, memory: Memory | None) -> None:
        ours, theirs = self._answers(step)
        found = self._compare(step, ours, theirs)
        outcome.answers.append(ours)
        outcome.differences = differences.unexplained(found)
        outcome.allowed += [each for each in found if differences.explain(each)]
        _note(outcome, step, ours, theirs)
        self.comparison.learn(ours, theirs)
        if memory is not None and isinstance(ours, dict):
            memory.learn(resolve(ours, self.sides[0].names))
        self.has_marked = self.has_marked or step.api == "WriteTxnMarkers"
        try:
            self._settle(step)
        except NoAnswer:
            self.is_left_prepared = self.has_marked and self._leave_prepared()
            if not self.is_left_prepared:
                raise

    def _leave_prepared(self) -> bool:
        ours, theirs = map(_states, self.sides)
        return ours == theirs and any(each.startswith("Prepare") for each in ours)

    def _answers(self, step: Step) -> tuple[Any, Any]:
        """Asks both at once, and again whoever may answer otherwise in a moment."""
        answers: dict[Speaker, Any] = {}
        asked: list[Speaker] = list(self.sides)
        for attempt in range(1, ATTEMPTS + 1):
            for side in asked:
                side.say(step)
            for side in asked:
                answers[side] = side.answer(step)
            ours, theirs = (answers[side] for side in self.sides)
            if not differences.unexplained(self._compare(step, ours, theirs)):
                break
            asked = [side for side in self.sides if settling.may_change(step.api, answers[side])]
            time.sleep(PAUSE_S * attempt if asked else 0)
        return ours, theirs

    def _compare(self, step: Step, ours: Any, theirs: Any) -> list[Difference]:
        return self.comparison.differences(step.api, step.version, ours, theirs, step.request)

    def _settle(self, step: Step) -> None:
        for side in self.sides:
            if step.api in settling.SLOW:
                settling.settle_metadata(side, side.names.text_out("settled-RUN"))
            elif step.api in settling.TRANSACTIONAL:
                names = [side.names.text_out(name) for name in TRANSACTIONAL_IDS]
                settling.settle_transactions(side, names)


def _states(side: Speaker) -> list[str]:
    names = [side.names.text_out(name) for name in TRANSACTIONAL_IDS]
    answer = side.ask(DescribeTransactionsRequest(transactional_ids=names), 0)
    return [each.transaction_state for each in answer.transaction_states]


def _note(outcome: Outcome, step: Step, ours: Any, theirs: Any) -> None:
    if _has_no_answer(step):
        outcome.ledger.leave_out(step.api, "no answer is due (acks=0)", sent=True)
        return
    answered = isinstance(ours, dict) and isinstance(theirs, dict)
    outcome.ledger.compared(step.api, answered=answered, differed=bool(outcome.differences))


def _has_no_answer(step: Step) -> bool:
    return step.api == "Produce" and bool(step.request.acks == 0)


def _served(*sides: Speaker) -> dict[str, range]:
    """The versions of each API that both serve; those that would end the broker are left out."""
    found: list[dict[int, range]] = []
    for side in sides:
        answer = side.ask(ApiVersionsRequest(), 0)
        keys = answer.api_keys
        found.append({one.api_key: range(one.min_version, one.max_version + 1) for one in keys})
    left, right = found
    return dict(_shared(left, right))


def _shared(left: dict[int, range], right: dict[int, range]) -> Iterator[tuple[str, range]]:
    for key in sorted(left.keys() & right.keys()):
        # Apache Kafka advertises a few versions that it dropped, and closes the connection then.
        start = max(left[key].start, right[key].start, spec.api(key).stable.start)
        stop = min(left[key].stop, right[key].stop)
        name = spec.api(key).name
        if start < stop and name not in ("UnregisterBroker", "SaslHandshake", "SaslAuthenticate"):
            assert hasattr(messages, f"{name}Request")
            yield name, range(start, stop)


_LISTED = {
    "Metadata": "topics",
    "ListGroups": "groups",
    "ListTransactions": "transaction_states",
    "DescribeTopicPartitions": "topics",
    "ListConfigResources": "config_resources",
    "DescribeClientQuotas": "entries",
    "DescribeUserScramCredentials": "results",
    "ElectLeaders": "replica_election_results",
}


def only_ours(view: dict[str, Any], step: Step) -> dict[str, Any]:
    """Of what lists everything on a broker, what this conversation made."""
    name = _LISTED.get(step.api)
    if step.api == "DescribeLogDirs":
        for each in view["results"]:
            each["topics"] = [one for one in each["topics"] if "RUN" in one["name"]]
    elif name in view and isinstance(view[name], list):
        view[name] = [each for each in view[name] if "RUN" in str(each)]
    return view
