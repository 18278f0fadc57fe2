"""What an administrator asks a cluster: any broker, its controller, one broker, a coordinator.

Owns the asking again: what may go better soon is asked until the time is up, a little less often
each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kafkalite.client.cluster import ClientFailed, Cluster, TryAgain, Unreachable
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FindCoordinatorRequest, MetadataRequest

TIMEOUT_S = 60.0
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
GROUP = 0  # of the kinds of keys that have coordinators
_NOT_YET = frozenset((
    Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR,
    Error.CONCURRENT_TRANSACTIONS,
))  # fmt: skip


class Admin:
    """tell: told each time that nobody could be reached."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        timeout_s: float = TIMEOUT_S,
        tell: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        self._cluster = cluster
        self._timeout_s, self._tell = timeout_s, tell

    def ask(self, request: Any) -> Any:
        """Asks any broker."""
        return self._again(lambda: self._cluster.ask_any(request))

    def ask_controller(self, request: Any, codes: Callable[[Any], list[int]]) -> Any:
        """Asks who takes changes; `codes` are those of the answer, looked at for one that says
        that this was not the controller."""

        def attempt() -> Any:
            answer = self._cluster.ask(self._controller(), request)
            if Error.NOT_CONTROLLER in codes(answer):
                raise TryAgain("the controller has moved")
            return answer

        return self._again(attempt)

    def ask_broker(self, node_id: int, request: Any) -> Any:
        """Asks one broker that the metadata knows."""

        def attempt() -> Any:
            self._controller()
            return self._cluster.ask(node_id, request)

        return self._again(attempt)

    def coordinator(self, key: str, kind: int = GROUP) -> Any:
        """Who has a group or a transactional id: its node id, host and port."""
        return self._again(lambda: self._coordinator(key, kind))

    def ask_coordinator(
        self, key: str, request: Any, codes: Callable[[Any], list[int]], kind: int = GROUP
    ) -> Any:
        """Asks who has a group or a transactional id; `codes` are looked at for those that say
        that this was not the one, or not yet."""

        def attempt() -> Any:
            answer = self._cluster.ask(self._coordinator(key, kind).node_id, request)
            for code in _NOT_YET.intersection(codes(answer)):
                raise TryAgain(f"the coordinator of {key}: {Error(code).message}")
            return answer

        return self._again(attempt)

    def _coordinator(self, key: str, kind: int) -> Any:
        found = self._cluster.ask_any(FindCoordinatorRequest(key=key, key_type=kind))
        code = Error(found.error_code)
        if code is not Error.NONE:
            failed = TryAgain if code.is_retriable else ClientFailed
            raise failed(f"the coordinator of {key}: {code.message}")
        self._cluster.learn(found.node_id, (found.host, found.port))
        return found

    def _controller(self) -> int:
        answer = self._cluster.ask_any(MetadataRequest(topics=[], allow_auto_topic_creation=False))
        for each in answer.brokers:
            self._cluster.learn(each.node_id, (each.host, each.port))
        if answer.controller_id < 0:
            raise TryAgain("there is no controller")
        return int(answer.controller_id)

    def _again(self, attempt: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + self._timeout_s
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return attempt()
            except (TryAgain, Unreachable) as failure:
                self._tell(failure)
                if time.monotonic() + pause_s >= deadline:
                    raise
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def check(what: str, entry: Any) -> None:
    """Raises what an entry of an answer says of a refusal; `what` is what did not come to be."""
    code = Error(entry.error_code)
    if code is not Error.NONE:
        told = getattr(entry, "error_message", None) or code.message
        kind = TryAgain if code.is_retriable else ClientFailed
        raise kind(f"{what}: {code.name}: {told}", code)
