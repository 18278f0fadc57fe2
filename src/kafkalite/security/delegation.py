"""What proves a delegation token: the HMAC that its owner was given, and SCRAM's keys made of it.

Owns how both are made of the brokers' secret and the token's id. Neither lies in any log; whoever
has the secret makes them again. Keys of SCRAM take milliseconds, so a worker makes them at a
token's first login, and those of the last logins are kept. Invariant: memory for keys is bounded.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from kafkalite.env.background import Background
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.later import Later
from kafkalite.security.scram import MIN_ITERATIONS, Scram, TokenLogin, made_up_salt, password_of

if TYPE_CHECKING:
    from random import Random

SECRET: Final = "delegation.token.secret.key"
MOST_KEPT = 10_000


class Token(Protocol):
    """As the metadata has one."""

    owner: str
    expiration_timestamp: int


@dataclass(slots=True, frozen=True)
class Keys:
    """What checks who has the HMAC, by one mechanism."""

    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int = MIN_ITERATIONS


def token_hmac(secret: str, token_id: str) -> bytes:
    """What the owner of a token is given."""
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")


class TokenLogins:
    """Of one broker."""

    def __init__(
        self,
        secret: str,
        find: Callable[[str], Token | None],
        background: Background,
        random: Random,
    ) -> None:
        self._secret, self._find = secret, find
        self._background, self._random = background, random
        self._keys: dict[tuple[str, str], Later[Keys]] = {}
        self._being_made: dict[tuple[str, str], Later[Keys]] = {}

    def find(self, scram: Scram, token_id: str) -> Later[TokenLogin] | None:
        """Whom a token lets in; None of one that there is not. What has expired is there until the
        controller takes it away: as with Apache Kafka it lets in, for no time at all."""
        token = self._find(token_id)
        if token is None or not self._secret:
            return None
        owner = token.owner.partition(":")[2]
        login = partial(TokenLogin, owner, token.expiration_timestamp)
        return self._keys_of(scram, token_id).map(login)

    def stop(self, why: Exception) -> None:
        """Nobody waits for keys that nobody will make."""
        for known in list(self._being_made.values()):
            known.fail(why)
        self._being_made.clear()

    def _keys_of(self, scram: Scram, token_id: str) -> Later[Keys]:
        place = (token_id, scram.name)
        known = self._being_made.get(place) or self._keys.get(place)
        if known is None:
            known = self._keys[place] = self._being_made[place] = Later()
            if len(self._keys) > MOST_KEPT:
                del self._keys[next(iter(self._keys))]
            salt = made_up_salt(self._random)
            make = partial(_keys, scram, token_hmac(self._secret, token_id), salt)
            self._background.submit(make, partial(self._made, place))
        return known

    def _made(self, place: tuple[str, str], outcome: Keys | BaseException) -> None:
        known = self._being_made.pop(place, None)
        if known is None:  # the broker has stopped
            return
        if isinstance(outcome, BaseException):
            self._keys.pop(place, None)  # the next login tries again
            mistake = RuntimeError("no keys could be made of a delegation token")
            mistake.__cause__ = outcome
            known.fail(mistake, is_read=False)
        else:
            known.resolve(outcome)


def _keys(scram: Scram, proof: bytes, salt: bytes) -> Keys:
    return Keys(salt, *scram.keys(scram.salted(password_of(proof), salt, MIN_ITERATIONS)))
