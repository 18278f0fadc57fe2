"""A login from the client's side: what to say first, and what to a challenge. Sans-IO.

Owns a user with a password, how a client comes to brokers, and the exchange by which a user is
shown: a SCRAM server proves, too, that it knows the password. Says with LoginFailed why it would
not go on.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.security.mechanisms import BY_PASSWORD, PLAIN
from kafkalite.security.plain import plain_token
from kafkalite.security.scram import BY_NAME, MIN_ITERATIONS, NONCE_BITS, Scram, in_base_36

if TYPE_CHECKING:
    import ssl
    from random import Random

# Whoever asks for more wants to keep us busy: Apache Kafka's users have 16,384 at most.
MOST_ITERATIONS = 1_000_000
MOST_DIGITS = 9  # however many noughts there are in front


class LoginFailed(Exception):
    """The server is not who it should be, or speaks no such mechanism."""


@dataclass(slots=True, frozen=True)
class Login:
    """Who somebody is, and how it is shown."""

    mechanism: str
    user: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        if self.mechanism not in BY_PASSWORD:
            raise ValueError(f"{self.mechanism!r}: expected one of {', '.join(BY_PASSWORD)}")

    def begin(self, random: Random) -> tuple[bytes, Callable[[bytes], bytes | None]]:
        """The first token, and what makes of each answer the next one; None: it is over."""
        if self.mechanism == PLAIN:
            return plain_token(self.user, self.password), lambda _: None
        exchange = ScramClient(BY_NAME[self.mechanism], self.user, self.password, random)
        return exchange.first, exchange.take


@dataclass(slots=True, frozen=True)
class Security:
    """How a client comes to brokers; None: in the open, without a login."""

    context: ssl.SSLContext | None = None
    login: Login | None = None


OPEN = Security()


class ScramClient:
    def __init__(self, scram: Scram, user: str, password: str, random: Random) -> None:
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._scram, self._password = scram, password
        self._nonce = in_base_36(random.getrandbits(NONCE_BITS))
        self._bare = f"n={name},r={self._nonce}"
        self._signature: bytes | None = None  # that the server has to show

    @property
    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def take(self, token: bytes) -> bytes | None:
        if self._signature is None:
            return self._proof(token.decode("ascii", "replace"))
        if not hmac.compare_digest(token, b"v=" + b64encode(self._signature)):
            raise LoginFailed("the broker does not know the password either")
        return None

    def _proof(self, challenge: str) -> bytes:
        fields = dict(part.partition("=")[::2] for part in challenge.split(","))
        nonce, iterations = fields.get("r", ""), fields.get("i", "")
        if not nonce.startswith(self._nonce) or not iterations.isdecimal():
            raise LoginFailed("its challenge is none of SCRAM")
        count = int(iterations[:MOST_DIGITS])
        if len(iterations) > MOST_DIGITS or not MIN_ITERATIONS <= count <= MOST_ITERATIONS:
            raise LoginFailed(f"it asks for {iterations[:MOST_DIGITS]} iterations")
        try:
            salt = b64decode(fields.get("s", ""))
        except ValueError:
            raise LoginFailed("its salt is no base64") from None
        salted = self._scram.salted(self._password, salt, count)
        last = f"c=biws,r={nonce}"
        said = f"{self._bare},{challenge},{last}".encode()
        stored, server_key = self._scram.keys(salted)
        self._signature = self._scram.hmac(server_key, said)
        ours = self._scram.hmac(salted, b"Client Key")
        mask = self._scram.hmac(stored, said)
        proof = bytes(one ^ other for one, other in zip(ours, mask, strict=True))
        return f"{last},p={b64encode(proof).decode()}".encode()
