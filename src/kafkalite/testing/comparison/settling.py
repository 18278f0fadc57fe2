"""Waits until what a broker has answered shows everywhere in it, and says whom to ask again.

Both brokers answer some changes before they show. So that random or recorded requests do not find
the moment between, the next one waits; and an answer that says "not yet" is asked for again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kafkalite.client.wire import NoAnswer
from kafkalite.protocol.messages import (
    AlterUserScramCredentialsRequest,
    DescribeTransactionsRequest,
    DescribeUserScramCredentialsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
)
from kafkalite.testing.comparison.side import PATIENCE_S, Side

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


def may_change(api: str, view: Any) -> bool:
    """Whether the same question may be answered otherwise without anything being done twice."""
    return api in READING or any(code in NOT_YET for code in texts(view))


def texts(view: Any) -> Iterator[str]:
    if isinstance(view, str):
        yield view
    elif isinstance(view, dict | list):
        for each in view.values() if isinstance(view, dict) else view:
            yield from texts(each)


def settle_metadata(side: Side, user: str) -> None:
    """Two changes of a user's, one after the other: when the second shows, all before the first is
    applied. A user of its own each time, since others may settle beside."""
    user = f"{user}-{uuid.uuid4().hex[:8]}"
    upsertion = AlterUserScramCredentialsRequest.Upsertion(
        name=user, mechanism=1, iterations=4096, salt=b"s", salted_password=b"p" * 32
    )
    deletion = AlterUserScramCredentialsRequest.Deletion(name=user, mechanism=1)
    asked = [DescribeUserScramCredentialsRequest.User(name=user)]
    question = DescribeUserScramCredentialsRequest(users=asked)

    def is_there() -> bool:
        return bool(side.ask(question, 0).results[0].credential_infos)

    _alter(side, AlterUserScramCredentialsRequest(upsertions=[upsertion]))
    _until(is_there, f"new credentials show at {side.host}:{side.port}")
    _alter(side, AlterUserScramCredentialsRequest(deletions=[deletion]))
    _until(lambda: not is_there(), "credentials are gone")


def _alter(side: Side, request: AlterUserScramCredentialsRequest) -> None:
    [result] = side.ask(request, 0).results
    if result.error_code:
        raise NoAnswer(f"{side.host}:{side.port} refuses: {result}")


def settle_transactions(side: Side, transactional_ids: Iterable[str]) -> None:
    """Until none of these is being ended."""
    question = DescribeTransactionsRequest(transactional_ids=list(transactional_ids))
    _until(
        lambda: not any(
            each.transaction_state.startswith("Prepare")
            for each in side.ask(question, 0).transaction_states
        ),
        f"a transaction ends at {side.host}:{side.port}",
    )


def warm_up(side: Side) -> None:
    """Until the coordinators of all groups and transactional ids have loaded."""
    side.name_addresses()
    for number in range(16):
        name = f"warm-{number}"
        beat = HeartbeatRequest(group_id=name, member_id="x")
        ask = DescribeTransactionsRequest(transactional_ids=[name])
        for key_type in (0, 1):
            find = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[name])
            _until_ready(side, find, 4)
        _until_ready(side, beat, 4)
        _until_ready(side, ask, 0)


def _until_ready(side: Side, question: Any, version: int) -> None:
    def is_ready() -> bool:
        view = side.view.of(side.ask(question, version), version)
        return not any(code in NOT_YET for code in texts(view))

    _until(is_ready, "a coordinator loads")


def _until(happened: Callable[[], bool], what: str) -> None:
    deadline, pause = time.monotonic() + PATIENCE_S, 0.002
    while not happened():
        if time.monotonic() >= deadline:
            raise NoAnswer(f"waited in vain until {what}")
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
