"""One connection that asks a broker in the protocol's own messages, and asks again what passes.

Owns no knowledge of what an answer should be. The same questions go to both brokers, in versions
that both serve.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bench.raw_client import RawClient
from kafkalite.coordinators.shards import partition_of
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DescribeTransactionsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    message_class,
)

HOST = "127.0.0.1"
PATIENCE_S = 30
PAUSE_S = 0.05
GROUP, TRANSACTION, SHARE = 0, 1, 2

# What every client tries again after: somebody is not ready yet.
PASSING = (
    Error.CONCURRENT_TRANSACTIONS,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.LEADER_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.UNKNOWN_TOPIC_ID,
)


class Asker:
    """Requests by hand."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.client = RawClient(HOST, port)

    def close(self) -> None:
        self.client.close()

    def ask(self, request: Any, version: int) -> Any:
        name = type(request).SPEC.api.name
        return self.client.call(request, version, message_class(f"{name}Response"))

    def patiently(
        self,
        request: Any,
        version: int,
        code_of: Callable[[Any], int] = lambda answer: int(answer.error_code),
    ) -> Any:
        """The answer that does not pass, or the last one."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self.ask(request, version)
            if code_of(answer) not in PASSING or time.monotonic() > deadline:
                return answer
            time.sleep(PAUSE_S)

    def find(self, key: str, kind: int = GROUP) -> None:
        """Waits until the coordinator of a key is there."""
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        answer = self.patiently(request, 6, lambda got: int(got.coordinators[0].error_code))
        assert answer.coordinators[0].error_code == Error.NONE, answer


    def await_loaded(self, topic: str, partitions: int) -> None:
        """Until each coordinator of an internal topic has read its log: lists would lack some."""
        for index in range(partitions):
            probe = next(
                f"probe {number}" for number in range(10_000)
                if partition_of(f"probe {number}", partitions) == index
            )  # fmt: skip
            if topic == "__consumer_offsets":
                self.find(probe, GROUP)
                heartbeat = HeartbeatRequest(group_id=probe, generation_id=0, member_id="probe")
                # Apache Kafka says that all is well while it still reads.
                code = self.patiently(
                    heartbeat, 4, lambda got: int(got.error_code or Error.NOT_COORDINATOR)
                ).error_code
                assert code == Error.UNKNOWN_MEMBER_ID, f"{topic}-{index} is not served: {code}"
            else:
                self.find(probe, TRANSACTION)
                request = DescribeTransactionsRequest(transactional_ids=[probe])
                answer = self.patiently(
                    request, 0, lambda got: int(got.transaction_states[0].error_code)
                )
                (state,) = answer.transaction_states
                assert state.error_code == Error.TRANSACTIONAL_ID_NOT_FOUND, state


def worst(codes: list[int]) -> int:
    """A code that passes if any does: then the whole is asked again."""
    return next((code for code in codes if code in PASSING), max(codes, default=0))
