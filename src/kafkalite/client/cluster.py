"""A client for commands: asks the brokers of a cluster, one request after the other.

Owns connections, the version of each request that both sides know, and who leads what. Built on
the project's own codecs, so that a light installation has it. Raises TryAgain for what may go
better soon and ClientFailed for the rest; each says cause and cure in one sentence.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafkalite.client.logging_in import VERSION as LOGIN_VERSION
from kafkalite.client.logging_in import logging_in
from kafkalite.client.wire import NoReply, NotEncrypted, Wire, decode_response, request_frame
from kafkalite.env.randomness import system_random
from kafkalite.protocol.errors import Error, MalformedFrame
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    MetadataRequest,
)
from kafkalite.security.client_login import OPEN, Login, LoginFailed, Security

CLIENT_ID = "kafkalite"
ANSWER_TIMEOUT_S = 40  # more than what a broker is given for a request
FIRST_ANSWER_TIMEOUT_S = 10
PAUSE_S = 0.1
# The highest versions that this client speaks where it is not all that there are: those that know
# topics by name.
SPOKEN = {
    "Fetch": 12,
    "FindCoordinator": 3,
    "InitProducerId": 4,
    "ListOffsets": 11,
    "Metadata": 12,
    "OffsetCommit": 9,
    "OffsetFetch": 7,
    "Produce": 12,
}

T = TypeVar("T")
Address = tuple[str, int]


class ClientFailed(Exception):
    """What a person is told, in one sentence; the code that a broker gave, if it was one."""

    def __init__(self, message: str, code: Error = Error.NONE) -> None:
        super().__init__(message)
        self.code = code


class Unreachable(ClientFailed):
    """Nobody answers there, or nobody who speaks the protocol."""


class NotLetIn(ClientFailed):
    """A login that is refused, which has the code of that, or no encryption: it will not go better
    by itself."""

    def __init__(self, message: str, told: str, code: Error = Error.NONE) -> None:
        super().__init__(message, code)
        self.told = told  # what the broker says of it, or OpenSSL


class Unserved(ClientFailed):
    """Who answers does not know such requests."""

    def __init__(self, api: str, where: str) -> None:
        super().__init__(f"the broker at {where} does not serve {api}: ask one that does")
        self.api = api


class Unsaid(ClientFailed):
    """What the protocol has no room for; nobody is asked."""


class TryAgain(ClientFailed):
    """It may go better soon: a leader that moved, a connection that ended."""


@dataclass(slots=True)
class Topic:
    """The partitions of a topic and their leaders; -1 where there is none."""

    name: str
    leaders: dict[int, int] = field(default_factory=dict)


class Peer:
    """One broker's connection."""

    def __init__(
        self,
        address: Address,
        client_id: str = CLIENT_ID,
        patience_s: float = ANSWER_TIMEOUT_S,
        security: Security = OPEN,
    ) -> None:
        self._patience_s = patience_s
        self._login = security.login
        self._wire = Wire(*address, security.context)
        self._client_id = client_id
        self._where = f"{address[0]}:{address[1]}"
        self._versions: dict[int, tuple[int, int]] = {}
        self._correlation_id = 0
        self._asked = 0, 0  # whose answer is on its way: API and version

    def ask(self, request: Any) -> Any:
        """The answer to a request, in the highest version that both sides know."""
        self.begin(request)
        return self.finish()

    def begin(self, request: Any) -> None:
        """Asks; `finish` waits for the answer, before anything else is asked."""
        if not self._versions:
            answer = self._exchange(ApiVersionsRequest(), 0, FIRST_ANSWER_TIMEOUT_S)
            if self._login is not None:
                self._log_in(self._login)
            self._versions = {
                each.api_key: (each.min_version, each.max_version) for each in answer.api_keys
            }
        version = self._version(request)
        self._send(request, version)
        self._asked = request.API_KEY, version

    def finish(self) -> Any:
        return self._receive(*self._asked, ANSWER_TIMEOUT_S)

    @property
    def has_answer(self) -> bool:
        return self._wire.has_some()

    def _log_in(self, login: Login) -> None:
        steps = logging_in(login, system_random())
        try:
            request = next(steps)
            while True:
                request = steps.send(self._exchange(request, LOGIN_VERSION))
        except StopIteration:
            return
        except LoginFailed as error:
            raise self._no_login(str(error)) from None

    def _no_login(self, why: str) -> NotLetIn:
        self.close()
        code = Error.SASL_AUTHENTICATION_FAILED
        return NotLetIn(f"no login at {self._where}: {why}", why, code)

    def _version(self, request: Any) -> int:
        spec = type(request).SPEC
        name = spec.api.name
        if request.API_KEY not in self._versions:
            raise Unserved(name, self._where)
        lowest, highest = self._versions[request.API_KEY]
        spoken = SPOKEN.get(name, spec.versions[-1])
        version: int = min(highest, spoken)
        if version < lowest:
            raise Unreachable(
                f"the broker at {self._where} serves {name} in versions {lowest} to {highest}, and "
                f"this client speaks up to {spoken}"
            )
        return version

    def _exchange(self, request: Any, version: int, timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
        self._send(request, version)
        return self._receive(request.API_KEY, version, timeout_s)

    def _send(self, request: Any, version: int) -> None:
        self._correlation_id += 1
        try:
            asked = request_frame(request, version, self._correlation_id, self._client_id)
        except ValueError as error:  # a number or a text that is too large for its field
            raise Unsaid(f"the protocol cannot say that: {error}") from error
        with self._told():
            self._wire.send(asked)

    def _receive(self, api_key: int, version: int, timeout_s: float) -> Any:
        with self._told():
            frame = self._wire.receive(min(timeout_s, self._patience_s))
            if not isinstance(frame, NoReply):
                return decode_response(frame, api_key, version)
        self._versions.clear()
        raise TryAgain(f"{frame.value} at {self._where}")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What goes wrong on a connection, as it is told."""
        try:
            yield
        except NotEncrypted as error:
            raise NotLetIn(f"{self._where}: {error}", error.reason) from error
        except OSError as error:
            raise Unreachable(f"{self._where}: {error.strerror or error}") from error
        except MalformedFrame as error:
            self.close()
            raise Unreachable(
                f"what answers at {self._where} does not speak the Kafka protocol: {error}"
            ) from error

    def close(self) -> None:
        self._wire.close()


class Cluster:
    """All brokers of a cluster, found through some of them.

    cure: what to do when none of these can be reached.
    patience_s: how long an answer is waited for.
    security: how it comes to brokers, and as whom."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        cure: str = "start one with `kafkalite serve`, or say with --bootstrap where it is",
        patience_s: float = ANSWER_TIMEOUT_S,
        client_id: str = CLIENT_ID,
        security: Security = OPEN,
    ) -> None:
        self._bootstrap = list(bootstrap)
        self._security = security
        self._client_id = client_id
        self._cure, self._patience_s = cure, patience_s
        self._first: Peer | None = None
        self._has_answered = False
        self._addresses: dict[int, Address] = {}
        self._peers: dict[int, Peer] = {}

    def ask(self, node_id: int, request: Any) -> Any:
        """Asks one of the brokers."""
        self.begin(node_id, request)
        return self.finish(node_id)

    def begin(self, node_id: int, request: Any) -> None:
        """Asks; `finish` waits for the answer, before that broker is asked anything else."""
        if node_id not in self._addresses:
            raise TryAgain(f"no broker has the id {node_id}")
        if node_id not in self._peers:
            self._peers[node_id] = Peer(
                self._addresses[node_id], self._client_id, self._patience_s, self._security
            )
        with self._reaching(node_id):
            self._peers[node_id].begin(request)

    def finish(self, node_id: int) -> Any:
        with self._reaching(node_id):
            return self._peers[node_id].finish()

    def has_answer(self, node_id: int) -> bool:
        """Whether `finish` would not have to wait for one to begin."""
        return self._peers[node_id].has_answer

    @contextmanager
    def _reaching(self, node_id: int) -> Iterator[None]:
        try:
            yield
        except Unreachable as error:
            self._peers.pop(node_id).close()
            host, port = self._addresses[node_id]
            raise TryAgain(
                f"broker {node_id} is advertised at {host}:{port} and cannot be reached there "
                f"({error}): is it up, and is that an address that this machine can reach?"
            ) from error

    def learn(self, node_id: int, address: Address) -> None:
        """Where a broker is, as another one says."""
        self._addresses[node_id] = address

    def ask_any(self, request: Any) -> Any:
        """Asks whoever can be reached."""
        if self._first is not None:
            try:
                return self._first.ask(request)
            except (NotLetIn, Unserved, Unsaid):
                raise
            except ClientFailed:
                self._first.close()
                self._first = None
        failures = []
        for address in self._bootstrap:
            peer = Peer(address, self._client_id, self._patience_s, self._security)
            try:
                answer = peer.ask(request)
            except (NotLetIn, Unserved, Unsaid):
                peer.close()
                raise
            except ClientFailed as error:
                peer.close()
                failures.append(str(error))
            else:
                self._first, self._has_answered = peer, True
                return answer
        kind = TryAgain if self._has_answered else Unreachable
        raise kind(f"no broker answers ({'; '.join(failures)}): {self._cure}")

    def topic(self, name: str, *, may_create: bool) -> Topic:
        """A topic as the cluster now has it; TryAgain while it has no leaders."""
        request = MetadataRequest(
            topics=[MetadataRequest.Topic(name=name)], allow_auto_topic_creation=may_create
        )
        answer = self.ask_any(request)
        for each in answer.brokers:
            self.learn(each.node_id, (each.host, each.port))
        [found] = answer.topics
        self._check(name, Error(found.error_code), may_create)
        return Topic(name, {each.partition_index: each.leader_id for each in found.partitions})

    def _check(self, name: str, code: Error, may_create: bool) -> None:
        if code is Error.UNKNOWN_TOPIC_OR_PARTITION and not may_create:
            raise ClientFailed(f"there is no topic {name}", code)
        if code is Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise TryAgain(
                f"there is no topic {name}, and asking for it does not create it: create it, or "
                "look for auto.create.topics.enable and the cause in the broker's log",
                code,
            )
        if code is not Error.NONE:
            kind = TryAgain if code.is_retriable else ClientFailed
            raise kind(f"topic {name}: {code.name}: {code.message}", code)

    def close(self) -> None:
        for peer in (self._first, *self._peers.values()):
            if peer is not None:
                peer.close()


class Patience:
    """How long something is tried again; begins anew with each success."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        self._is_tried = False
        self.begin()

    def begin(self) -> None:
        """Something is about to be asked; what came before it, such as a reader that took its time
        with a record, does not count."""
        if not self._is_tried:
            self._deadline = time.monotonic() + self._seconds

    def wait_after(self, failure: TryAgain) -> None:
        """Lets a moment pass; raises the failure when there was time enough for it to heal."""
        self._is_tried = True
        if time.monotonic() >= self._deadline:
            raise failure
        time.sleep(PAUSE_S)
