"""Two brokers with access rules: how they are set, who asks them, and how rules are changed.

Owns the connections that log in, one for each user, which are kept from one conversation to the
next, and the wait until a broker has heard of rules.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from kafkalite.client.wire import (
    CONNECT_TIMEOUT_S,
    Wire,
    correlation_id,
    decode_response,
    request_frame,
)
from kafkalite.protocol.framing import SIZE_BYTES, frame_size
from kafkalite.protocol.messages import (
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from kafkalite.security import acl as rules
from kafkalite.security.acl import Acl
from kafkalite.security.plain import plain_token
from kafkalite.testing.comparison import settling
from kafkalite.testing.comparison.names import PORT
from kafkalite.testing.comparison.side import FIRST
from tests.differential.generating import Step
from tests.differential.running import SILENT_AFTER_S, Runner, Speaker, only_ours

USERS = ("alice", "bob", "carol")
PATIENCE_S, SOON_S = 10.0, 4.0
BESIDE = -1  # the connection of questions that are not part of the conversation
GUESTS_PORT = 2_100_000_000  # what stands for it in answers
LISTENER = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def settings(
    plain: int, controller: int, guests: int, everybody: bool
) -> dict[str, str]:
    opened = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{guests}"
    users = " ".join(f'user_{each}="{each}-secret"' for each in USERS)
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": str(everybody).lower(),
        "super.users": "User:ANONYMOUS",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{opened},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": opened,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "PLAIN",
        LISTENER: f"{MODULE} required {users};",
    }


class GuestWire(Wire):
    """From an address of its own, as one user."""

    def __init__(self, host: str, port: int, source: str, user: str) -> None:
        super().__init__(host, port)
        self._source, self._user = source, user

    def _connected(self) -> socket.socket:
        made = socket.create_connection(
            (self.host, self.port), CONNECT_TIMEOUT_S, source_address=(self._source, 0)
        )
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _ask(made, SaslHandshakeRequest(mechanism="PLAIN"))
        token = plain_token(self._user, f"{self._user}-secret")
        answer = _ask(made, SaslAuthenticateRequest(auth_bytes=token))
        assert not answer.error_code, answer
        return made


def _ask(made: socket.socket, request: Any) -> Any:
    frame = request_frame(request, 1, 1, None)
    made.sendall(frame_size([frame]) + frame)
    size = int.from_bytes(_exactly(made, SIZE_BYTES))
    return decode_response(_exactly(made, size), request.API_KEY, 1)


def _exactly(made: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = made.recv(count - len(found))
        assert more, "the broker ended a login"
        found += more
    return found


class Guest(Speaker):
    """Who talks logs in, and what is done beside it is done by whoever may do everything."""

    user = USERS[0]

    def __init__(self, host: str, port: int, guests: int, source: str) -> None:
        super().__init__(host, port)
        self._guests, self._source = guests, source
        self._as: dict[str, GuestWire] = {}

    def begin(self, run: str) -> None:
        """Connections are kept: who asks is another matter than over which connection."""
        self.names.__init__(run)  # type: ignore[misc]
        self.name_addresses()
        self.names.bind(PORT, self._guests, GUESTS_PORT)

    def wire(self, connection: int = FIRST) -> Wire:
        if connection != FIRST:
            return super().wire(connection)
        if self.user not in self._as:
            wire = GuestWire(self.host, self._guests, self._source, self.user)
            self._as[self.user] = wire
        return self._as[self.user]

    def close(self) -> None:
        super().close()
        for wire in self._as.values():
            wire.close()

    def receive(self, step: Step) -> Any:
        """What Apache Kafka never answers is not waited for as long as usual."""
        frame = self.wire().receive(SILENT_AFTER_S.get(step.api, SOON_S))
        view = self.understand(frame, step.request.API_KEY, step.version)
        if not isinstance(view, dict):
            return view
        if step.api == "DescribeAcls":
            _leave_out_others(view, self._source)
        return only_ours(view, step)

    # --- rules ------------------------------------------------------------------------------------

    def say_beside(self, request: Any) -> None:
        self.wire(BESIDE).send(request_frame(request, 3, 1, None))

    def hear_beside(self, request: Any) -> Any:
        frame = self.wire(BESIDE).receive(PATIENCE_S)
        assert isinstance(frame, bytes), frame
        assert correlation_id(frame) == 1
        return decode_response(frame, request.API_KEY, 3)



def _leave_out_others(view: dict[str, Any], source: str) -> None:
    for each in view["resources"]:
        each["acls"] = [one for one in each["acls"] if one["host"] == source]
    view["resources"] = [each for each in view["resources"] if each["acls"]]


class GuestRunner(Runner):
    """Conversations of sets: a user and rules."""

    def __init__(self, ours: Guest, theirs: Guest, *, host: str) -> None:
        super().__init__(ours, theirs)
        self.guests, self.host = (ours, theirs), host
        self._rules: dict[Guest, set[Acl]] = {ours: set(), theirs: set()}
        self._may_have_changed = True

    def begin_set(self, user: str, wanted: list[Acl]) -> None:
        """Of both brokers at once, since each takes a while."""
        for side in self.guests:
            side.user = user
        self._change(wanted, _deletions, lambda known, new: known - new)
        self._change(wanted, _creations, lambda known, new: new - known)
        for side in self.guests:
            self._rules[side] = _named(side, wanted)
            self._wait(side)

    def _change(
        self,
        wanted: list[Acl],
        asking: Callable[[Iterable[Acl]], Any],
        chosen: Callable[[set[Acl], set[Acl]], set[Acl]],
    ) -> None:
        asked = {
            side: asking(changed)
            for side in self.guests
            if (changed := chosen(self._rules[side], _named(side, wanted)))
        }
        for side, request in asked.items():
            side.say_beside(request)
        for side, request in asked.items():
            answer = side.hear_beside(request)
            results = getattr(answer, "results", None) or answer.filter_results
            assert not any(each.error_code for each in results), answer

    def _wait(self, side: Guest) -> None:
        """A broker of Apache Kafka hears of rules a moment after they were made."""
        request = _all_of(self.host)
        wanted = {each for each in self._rules[side] if each.host == self.host}
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            side.say_beside(request)
            answer = side.hear_beside(request)
            if _found(answer) == wanted:
                return
            time.sleep(0.002)
        raise AssertionError("rules were not heard of")

    def _answers(self, step: Step) -> tuple[Any, Any]:
        ours, theirs = super()._answers(step)
        told = set(settling.texts(ours))
        self._may_have_changed = not isinstance(ours, dict) or "NONE" in told
        return ours, theirs

    def _settle(self, step: Step) -> None:
        """What was refused in every part of it changed nothing that would have to show."""
        if self._may_have_changed or step.api not in settling.SLOW:
            super()._settle(step)


def _named(side: Guest, acls: Iterable[Acl]) -> set[Acl]:
    return {each._replace(name=side.names.text_out(each.name)) for each in acls}


def _creations(acls: Iterable[Acl]) -> CreateAclsRequest:
    creations = [
        CreateAclsRequest.Creation(
            resource_type=each.kind, resource_name=each.name, resource_pattern_type=each.pattern,
            principal=each.principal, host=each.host, operation=each.operation,
            permission_type=each.permission,
        )
        for each in sorted(acls)
    ]  # fmt: skip
    return CreateAclsRequest(creations=creations)


def _deletions(acls: Iterable[Acl]) -> DeleteAclsRequest:
    filters = [
        DeleteAclsRequest.Filter(
            resource_type_filter=each.kind, resource_name_filter=each.name,
            pattern_type_filter=each.pattern, principal_filter=each.principal,
            host_filter=each.host, operation=each.operation, permission_type=each.permission,
        )
        for each in sorted(acls)
    ]  # fmt: skip
    return DeleteAclsRequest(filters=filters)


def _all_of(host: str) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=rules.ANY, resource_name_filter=None,
        pattern_type_filter=rules.ANY, principal_filter=None, host_filter=host,
        operation=rules.ANY, permission_type=rules.ANY,
    )  # fmt: skip


def _found(answer: Any) -> set[Acl]:
    return {
        Acl(one.resource_type, one.resource_name, one.pattern_type, each.principal, each.host,
            each.operation, each.permission_type)
        for one in answer.resources
        for each in one.acls
    }  # fmt: skip
