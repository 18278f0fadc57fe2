"""A broker whose clients log in, and clients that say what a test has them say."""

from __future__ import annotations

import itertools
import random
from typing import Any

from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    MetadataRequest,
    RequestHeader,
    ResponseHeader,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    UserScramCredentialRecord,
    message_class,
)
from kafkalite.security.client_login import Login
from kafkalite.security.scram import BY_NAME
from kafkalite.server.limits import SWEEP_MS
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.server.support import FakeLink, frame

LISTENER = "SASL_PLAINTEXT"
PASSWORD = "hunter2"
DELAY_MS = 100
PLAIN = Login("PLAIN", "alice", PASSWORD)
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'user_alice="{PASSWORD}" user_bob="{PASSWORD}";'
    ),
    "connection.failed.authentication.delay.ms": str(DELAY_MS),
}


def broker(**settings: str) -> WholeBroker:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return WholeBroker(SETTINGS | given)


def add_user(world: WholeBroker, user: str, mechanism: str, password: str = PASSWORD) -> None:
    """As AlterUserScramCredentials leaves one."""
    scram = BY_NAME[mechanism]
    stored, server = scram.keys(scram.salted(password, b"salt", 4096))
    world.context.metadata.image.scram[user, scram.number] = UserScramCredentialRecord(
        name=user, mechanism=scram.number, salt=b"salt", stored_key=stored, server_key=server,
        iterations=4096,
    )  # fmt: skip


class Client:
    """One connection."""

    def __init__(self, world: WholeBroker, port: int = 50_000) -> None:
        self.link = FakeLink(peer_address=("203.0.113.7", port))
        world.broker.server.take_over(LISTENER, self.link)
        self._world = world
        self._ids = itertools.count(1)
        self._asked: list[tuple[int, int]] = []
        self._seen = 0

    def say(self, body: bytes) -> None:
        """A frame, as far as the broker still reads."""
        self.send(frame(body))

    def send(self, data: bytes) -> None:
        while data and self.link.is_reading and self.link.receiver is not None:
            buffer = self.link.receiver.buffer()
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            data = data[count:]
            self.link.receiver.received(count)

    def ask(self, request: Any, version: int) -> Any:
        """The answer, None when there is none so far."""
        key = request.API_KEY
        head = RequestHeader(
            request_api_key=key, request_api_version=version,
            correlation_id=next(self._ids), client_id="me",
        )  # fmt: skip
        header_version = headers.request_header_version(key, version)
        self._asked.append((key, version))
        self.say(codec.encode(head, header_version) + codec.encode(request, version))
        return self.answer(key, version)

    def answer(self, key: int, version: int) -> Any:
        replies = self.link.replies()
        if len(replies) == self._seen:
            return None
        [reply] = replies[self._seen :]
        self._seen += 1
        header_version = headers.response_header_version(key, version)
        _, position = codec.decode_prefix(ResponseHeader, header_version, reply)
        return codec.decode(
            message_class(f"{spec.api(key).name}Response"), version, reply, position
        )

    def late_answer(self) -> Any:
        """To what was asked last, once a refused login is told so."""
        assert self.link.replies()[self._seen :] == []
        self._world.clock.advance(DELAY_MS - 1)
        assert not self.link.is_ended
        self._world.clock.advance(1)
        answer = self.answer(*self._asked[-1])
        assert self.link.is_ended is (answer is None), "there is time to read it"
        assert not self.link.is_reading
        self._world.clock.advance(SWEEP_MS)
        return answer

    def token(self) -> bytes | None:
        """A reply that is nothing but a token."""
        replies = self.link.replies()[self._seen :]
        self._seen += len(replies)
        return replies[0] if replies else None

    # --- what one usually asks --------------------------------------------------------------------

    def versions(self, version: int = 3, name: str = "a-client") -> Any:
        request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
        return self.ask(request, version)

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.ask(SaslHandshakeRequest(mechanism=mechanism), version)

    def authenticate(self, token: bytes, version: int = 2) -> Any:
        return self.ask(SaslAuthenticateRequest(auth_bytes=token), version)

    def metadata(self) -> Any:
        return self.ask(MetadataRequest(topics=[]), 12)

    def log_in(self, login: Login = PLAIN, version: int = 2) -> Any:
        """The last answer of a login."""
        assert self.handshake(login.mechanism).error_code == 0
        token: bytes | None
        token, go_on = login.begin(random.Random(5))
        answer = None
        while token is not None:
            answer = self.authenticate(token, version)
            if answer is None or answer.error_code:
                return answer
            token = go_on(bytes(answer.auth_bytes))
        return answer
