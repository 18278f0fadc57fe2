"""Runs conversations on both brokers and compares each answer.

After a change that Apache Kafka applies later than it answers (topics, settings, ends of
transactions) the run waits until it shows, and an answer that says "not yet" is asked for again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kafkalite.protocol import messages
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import (
    AlterUserScramCredentialsRequest,
    ApiVersionsRequest,
    DescribeTransactionsRequest,
    DescribeUserScramCredentialsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
)
from kafkalite.testing.comparison import differences
from kafkalite.testing.comparison.comparing import Comparison, Difference, resolve
from kafkalite.testing.comparison.names import Names, translate
from kafkalite.testing.comparison.views import View
from kafkalite.testing.comparison.wire import (
    NoReply,
    Wire,
    decode_response,
    request_frame,
)
from tests.differential.generating import Step
from tests.differential.memory import Memory

REPLY_TIMEOUT_S = 2.0
ATTEMPTS, PAUSE_S = 12, 0.03
PATIENCE_S = 20.0
CLIENT_ID = "differential"
# Asking again changes nothing.
READING = frozenset(
    "Metadata ListOffsets OffsetFetch FindCoordinator DescribeGroups ListGroups ApiVersions"
    " DescribeConfigs DescribeLogDirs DescribeClientQuotas DescribeUserScramCredentials"
    " DescribeCluster DescribeProducers DescribeTransactions ListTransactions"
    " ConsumerGroupDescribe ListConfigResources DescribeTopicPartitions DescribeQuorum"
    " ListPartitionReassignments OffsetForLeaderEpoch DescribeAcls".split()
)
NOT_YET = frozenset(
    "COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR"
    " CONCURRENT_TRANSACTIONS LEADER_NOT_AVAILABLE NOT_LEADER_OR_FOLLOWER".split()
)
# The answer comes before the change shows everywhere in Apache Kafka.
SLOW = frozenset(
    "CreateTopics DeleteTopics CreatePartitions AlterConfigs IncrementalAlterConfigs"
    " AlterClientQuotas AlterUserScramCredentials Metadata ElectLeaders"
    " AlterPartitionReassignments DeleteRecords".split()
)
TRANSACTIONAL = frozenset(
    "EndTxn InitProducerId AddPartitionsToTxn Produce TxnOffsetCommit".split()
)


@dataclass(slots=True)
class Outcome:
    """How a conversation went: the steps taken, and what of the last one differed."""

    steps: list[Step] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    allowed: list[Difference] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)


class Side:
    """One broker: a connection, and what ids mean there."""

    def __init__(self, host: str, port: int) -> None:
        self.wire = Wire(host, port)
        self.names = Names()
        self.view = View(self.names, lambda: int(time.time() * 1000))

    def close(self) -> None:
        self.wire.close()

    def begin(self, run: str) -> None:
        self.wire.close()
        self.names.__init__(run)  # type: ignore[misc]

    def send(self, step: Step) -> None:
        request = translate(step.request, step.version, self.names)
        self.wire.send(request_frame(request, step.version, 1, CLIENT_ID))

    def receive(self, step: Step) -> Any:
        """The view of the answer, or why there is none."""
        frame = self.wire.receive(REPLY_TIMEOUT_S)
        if isinstance(frame, NoReply):
            return frame.value
        try:
            message = decode_response(frame, step.request.API_KEY, step.version)
        except MalformedFrame as reason:
            return f"malformed: {reason}"
        return _only_ours(self.view.of(message, step.version), step)

    def answer(self, step: Step) -> Any:
        if step.api == "Produce" and step.request.acks == 0:
            return self.is_still_open()
        return self.receive(step)

    def is_still_open(self) -> str:
        """After a request without an answer, which fails by closing the connection."""
        self.wire.send(request_frame(ApiVersionsRequest(), 0, 1, CLIENT_ID))
        is_open = isinstance(self.wire.receive(REPLY_TIMEOUT_S), bytes)
        return "the connection is open" if is_open else "the connection is closed"

    def ask(self, request: Any, version: int) -> Any:
        """Beside the conversation: the message as it is."""
        self.wire.send(request_frame(request, version, 1, CLIENT_ID))
        frame = self.wire.receive(PATIENCE_S)
        assert not isinstance(frame, NoReply), frame
        return decode_response(frame, request.API_KEY, version)


class Runner:
    """Two brokers, and conversations with both."""

    def __init__(self, ours: Side, theirs: Side) -> None:
        self.sides = (ours, theirs)
        self.count = 0
        self.served = _served(*self.sides)
        self.prefix = f"x{secrets.token_hex(4)}"
        for side in self.sides:
            warm_up(side)

    def close(self) -> None:
        for side in self.sides:
            side.close()

    def run(self, steps: Iterable[Step], memory: Memory | None = None) -> Outcome:
        """Until the steps end or an answer differs without a reason."""
        self.count += 1
        for side in self.sides:
            side.begin(f"{self.prefix}n{self.count}e")
        self.comparison = Comparison(*(side.names for side in self.sides))
        outcome = Outcome()
        for step in steps:
            outcome.steps.append(step)
            self._step(step, outcome, memory)
            if outcome.differences:
                break
        return outcome

    def _step(self, step: Step, outcome: Outcome, memory: Memory | None) -> None:
        ours, theirs = self._answers(step)
        found = self._compare(step, ours, theirs)
        outcome.answers.append(ours)
        outcome.differences = differences.unexplained(found)
        outcome.allowed += [each for each in found if differences.explain(each)]
        self.comparison.learn(ours, theirs)
        if memory is not None and isinstance(ours, dict):
            memory.learn(resolve(ours, self.sides[0].names))
        self._settle(step, ours)

    def _answers(self, step: Step) -> tuple[Any, Any]:
        """Asks both at once, and again whoever may answer otherwise in a moment."""
        answers: dict[Side, Any] = {}
        asked: list[Side] = list(self.sides)
        for attempt in range(1, ATTEMPTS + 1):
            for side in asked:
                side.send(step)
            for side in asked:
                answers[side] = side.answer(step)
            ours, theirs = (answers[side] for side in self.sides)
            if not differences.unexplained(self._compare(step, ours, theirs)):
                break
            asked = [side for side in self.sides if _may_change(step, answers[side])]
            time.sleep(PAUSE_S * attempt if asked else 0)
        return ours, theirs

    def _compare(self, step: Step, ours: Any, theirs: Any) -> list[Difference]:
        return self.comparison.differences(step.api, step.version, ours, theirs)

    def _settle(self, step: Step, view: Any) -> None:
        if step.api in SLOW:
            for side in self.sides:
                settle_metadata(side)
        elif step.api in TRANSACTIONAL:
            for side in self.sides:
                settle_transactions(side)


def _may_change(step: Step, view: Any) -> bool:
    """Whether the same question may be answered otherwise without anything being done twice."""
    return step.api in READING or any(code in NOT_YET for code in _texts(view))


def _texts(view: Any) -> Iterator[str]:
    if isinstance(view, str):
        yield view
    elif isinstance(view, dict | list):
        for each in view.values() if isinstance(view, dict) else view:
            yield from _texts(each)


def settle_metadata(side: Side) -> None:
    """Two changes, one after the other: when the second shows, all before the first is applied."""
    name = side.names.text_out("settled-RUN")
    upsertion = AlterUserScramCredentialsRequest.Upsertion(
        name=name, mechanism=1, iterations=4096, salt=b"s", salted_password=b"p" * 32
    )
    deletion = AlterUserScramCredentialsRequest.Deletion(name=name, mechanism=1)
    for change, is_there in (({"upsertions": [upsertion]}, 1), ({"deletions": [deletion]}, 0)):
        side.ask(AlterUserScramCredentialsRequest(**change), 0)
        user = DescribeUserScramCredentialsRequest.User(name=name)
        question = DescribeUserScramCredentialsRequest(users=[user])
        deadline = time.monotonic() + PATIENCE_S
        while bool(side.ask(question, 0).results[0].credential_infos) != bool(is_there):
            assert time.monotonic() < deadline, "a change of credentials does not show"
            time.sleep(0.002)


def settle_transactions(side: Side) -> None:
    """Until no transaction of this conversation is being ended."""
    names = [side.names.text_out(name) for name in ("till-RUN", "bank-RUN")]
    question = DescribeTransactionsRequest(transactional_ids=names)
    deadline = time.monotonic() + PATIENCE_S
    while any(
        each.transaction_state.startswith("Prepare")
        for each in side.ask(question, 0).transaction_states
    ):
        assert time.monotonic() < deadline, "a transaction does not end"
        time.sleep(0.005)


def warm_up(side: Side) -> None:
    """Until the coordinators of all groups and transactional ids have loaded."""
    for key_type in (0, 1):
        for number in range(16):
            name = f"warm-{number}"
            find = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[name])
            _patiently(lambda find=find: side.ask(find, 4).coordinators[0].error_code)
            if key_type == 0:
                beat = HeartbeatRequest(group_id=name, member_id="x")
                _patiently(lambda beat=beat: side.ask(beat, 4).error_code)
            else:
                ask = DescribeTransactionsRequest(transactional_ids=[name])
                _patiently(
                    lambda ask=ask: side.ask(ask, 0).transaction_states[0].error_code
                )


def _patiently(ask: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while ask() in (14, 15, 16):
        assert time.monotonic() < deadline, "a coordinator does not load"
        time.sleep(0.05)


def _served(*sides: Side) -> dict[str, range]:
    """The versions of each API that both serve; those that would end the broker are left out."""
    found: list[dict[int, range]] = []
    for side in sides:
        answer = side.ask(ApiVersionsRequest(), 0)
        keys = answer.api_keys
        found.append({one.api_key: range(one.min_version, one.max_version + 1) for one in keys})
    left, right = found
    return dict(_shared(left, right))


def _shared(left: dict[int, range], right: dict[int, range]) -> Iterator[tuple[str, range]]:
    from kafkalite.protocol import spec

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


def _only_ours(view: dict[str, Any], step: Step) -> dict[str, Any]:
    """Of what lists everything on a broker, what this conversation made."""
    name = _LISTED.get(step.api)
    if step.api == "DescribeLogDirs":
        for each in view["results"]:
            each["topics"] = [one for one in each["topics"] if "RUN" in one["name"]]
    elif name in view and isinstance(view[name], list):
        view[name] = [each for each in view[name] if "RUN" in str(each)]
    return view
