"""SCRAM (RFC 5802, RFC 7677): a password is proved, by both sides, and never sent.

Owns the exchange as a broker leads it, and the keys that prove a password. The broker makes no key
out of a password: a login costs it three hashes of what was said, however many iterations a user
has. Who is unknown gets a challenge as anybody does, and is refused at the proof: nothing of the
exchange tells who has an account. Invariant: of what a peer says hashes are kept, and its name, so
that an exchange under way is small however long its messages are.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.later import Later
from kafkalite.security.mechanisms import (
    SCRAM_256,
    SCRAM_512,
    BrokenOff,
    Challenge,
    LoggedIn,
    Refused,
    Step,
)

if TYPE_CHECKING:
    from random import Random

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
NONCE_BITS = 130
# A message in more parts is none: clients have one extension at most, and each takes time to read.
MOST_PARTS: Final = 1_000
NAME_KEPT = 1_000  # of a name that nobody has, for the log: it may be as long as a request

_NAME = re.compile(r"[\x01-\x2b\x2d-\x3c\x3e-\x7f]+")  # without a comma and an equals sign
_VALUE = re.compile(r"[\x01-\x2b\x2d-\x7f]+")  # without a comma
_PRINTABLE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_EXTENSION = re.compile(r"[A-Za-z]+=[\x01-\x2b\x2d-\x7f]+")
_BY_TOKEN = "tokenauth="  # the extension of a login by a delegation token
_BASE64 = re.compile(r"[a-zA-Z0-9/+]*={0,2}")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(slots=True, frozen=True)
class Scram:
    """One of the two mechanisms: the number that records have for it, and its hash."""

    name: str
    number: int
    hash: str

    def salted(self, password: str, salt: bytes, iterations: int) -> bytes:
        """What stands for a password. Takes its time: never on the event loop for a number of
        iterations that a peer has chosen."""
        return hashlib.pbkdf2_hmac(self.hash, password.encode(), salt, iterations)

    def keys(self, salted: bytes) -> tuple[bytes, bytes]:
        """What a broker keeps: the one proves the client, the other one the broker."""
        client_key = hmac.digest(salted, b"Client Key", self.hash)
        stored = hashlib.new(self.hash, client_key).digest()
        return stored, hmac.digest(salted, b"Server Key", self.hash)

    def hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self.hash)


BY_NAME: Final = {
    each.name: each for each in (Scram(SCRAM_256, 1, "sha256"), Scram(SCRAM_512, 2, "sha512"))
}
BY_NUMBER: Final = {each.number: each for each in BY_NAME.values()}


class Credential(Protocol):
    """What is known of a user, as the metadata has it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


@dataclass(slots=True, frozen=True)
class TokenLogin:
    """Whom a delegation token lets in, until when, and what proves that one has it."""

    owner: str
    expires_ms: int  # by the wall clock
    credential: Credential


# Of a token's id; None: there is no such token.
FindToken = Callable[[str], "Later[TokenLogin] | None"]


@dataclass(slots=True)
class _Nobody:
    """A challenge for a name that nobody has; the same one each time that it is asked for."""

    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int = MIN_ITERATIONS


@dataclass(slots=True, frozen=True)
class _First:
    """The client's first message."""

    wanted: str
    user: str
    nonce: str
    bare: str
    is_by_token: bool


@dataclass(slots=True, frozen=True)
class _Final:
    """The client's last message."""

    binding: str
    nonce: str
    proof: bytes = field(repr=False)


class _Said:
    """What was said so far, as far as it is proved: hashed with each of a user's two keys."""

    def __init__(self, scram: Scram, credential: Credential, text: str) -> None:
        self._hashes = [
            hmac.new(key, text.encode(), scram.hash)
            for key in (credential.stored_key, credential.server_key)
        ]

    def signatures(self, text: str) -> tuple[bytes, bytes]:
        """With this said at last: what masks the client's key, and what proves the broker."""
        for each in self._hashes:
            each.update(text.encode())
        client, server = (each.digest() for each in self._hashes)
        return client, server


class ScramExchange:
    """One login."""

    def __init__(
        self,
        scram: Scram,
        find: Callable[[str], Credential | None],
        random: Random,
        secret: bytes,
        find_token: FindToken,
    ) -> None:
        self._scram, self._find, self._random = scram, find, random
        self._find_token = find_token
        self._secret = secret  # of the broker's, to make up what nobody has
        self._user: str | None = None  # as it called itself in a first message that was one
        self._said: _Said | None = None
        self._nonce = self._nonce_twice = b""  # the hash of what it is to say again
        self._credential: Credential | None = None  # also of somebody who is not known
        self._is_known = False
        self._token: TokenLogin | None = None

    def take(self, token: bytes) -> Step | Later[Step]:
        if not token.isascii():
            return Refused("what it sent is no message of SCRAM", user=self._user)
        text = token.decode("ascii")
        return self._begin(text) if self._said is None else self._finish(self._said, text)

    def _begin(self, text: str) -> Step | Later[Step]:
        first = _first_of(text)
        if first is None:
            return Refused("its first message is none of SCRAM, or asks for a channel binding")
        if not first.is_by_token:
            return self._challenged(first, self._find(first.user))
        found = self._find_token(first.user)
        if found is None:
            return Refused("there is no such delegation token", user=first.user)
        return found.map(partial(self._begun_by_token, first))

    def _begun_by_token(self, first: _First, token: TokenLogin) -> Step:
        self._token = token
        return self._challenged(first, token.credential)

    def _challenged(self, first: _First, found: Credential | None) -> Step:
        if first.wanted not in ("", first.user):
            why = "Authentication failed: Client requested an authorization id that is different "
            return Refused(why + "from username", told=why + "from username", user=first.user)
        credential = found or self._nobody(first.user)
        if credential.iterations < MIN_ITERATIONS:
            why = f"Iterations {credential.iterations} is less than the minimum {MIN_ITERATIONS}"
            return Refused(f"{why} for {self._scram.name}", user=first.user)
        self._user = first.user if found is not None else first.user[:NAME_KEPT]
        self._credential, self._is_known = credential, found is not None
        nonce = first.nonce + in_base_36(self._random.getrandbits(NONCE_BITS))
        self._nonce, self._nonce_twice = _hashed(nonce), _hashed(first.nonce + nonce)
        salt = b64encode(credential.salt).decode()
        challenge = f"r={nonce},s={salt},i={credential.iterations}"
        self._said = _Said(self._scram, credential, f"{first.bare},{challenge}")
        return Challenge(challenge.encode())

    def _finish(self, said: _Said, text: str) -> Step:
        final, user, credential = _final_of(text), self._user, self._credential
        assert user is not None
        assert credential is not None
        if final is None:
            return Refused("its last message is none of SCRAM", user=user)
        nonce = _hashed(final.nonce)
        if nonce != self._nonce:
            return Refused(self._wrong_nonce(nonce), user=user)
        signature, proof = said.signatures(f",c={final.binding},r={final.nonce}")
        if len(final.proof) != len(signature):
            return BrokenOff("its proof is not as long as a hash", user)
        pairs = zip(signature, final.proof, strict=True)
        client_key = bytes(ours ^ theirs for ours, theirs in pairs)
        stored = hashlib.new(self._scram.hash, client_key).digest()
        if not hmac.compare_digest(stored, credential.stored_key):
            return Refused("Invalid client credentials", user=user)
        if not self._is_known:
            return Refused("there is no such user", user=user)
        shown, token = b"v=" + b64encode(proof), self._token
        if token is None:
            return LoggedIn(user, shown)
        return LoggedIn(token.owner, shown, token.expires_ms, is_by_token=True)

    def _wrong_nonce(self, nonce: bytes) -> str:
        why = "Invalid client nonce in the final client message"
        if nonce == self._nonce_twice:
            why += (
                ": it is there twice, as librdkafka before 2.6.1 sends it and Apache Kafka 4 does "
                "not take it any more. Upgrade that client"
            )
        return why

    def _nobody(self, user: str) -> _Nobody:
        made_up = hmac.digest(self._secret, user.encode(), "sha512")
        salt = in_base_36(int.from_bytes(made_up[:NONCE_BITS // 8], "big")).encode()
        stored = self._scram.hmac(self._secret, b"stored" + made_up)
        return _Nobody(salt, stored, stored)


def _hashed(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def made_up_salt(random: Random) -> bytes:
    """As Apache Kafka makes one for who brings none."""
    return in_base_36(random.getrandbits(NONCE_BITS)).encode()


def password_of(proof: bytes) -> str:
    """The HMAC of a delegation token as its owner gives it in place of a password."""
    return b64encode(proof).decode()


def in_base_36(number: int) -> str:
    """As Java writes a number with all digits and letters."""
    digits = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits or "0"


def _first_of(text: str) -> _First | None:
    """`n,[a=WANTED],[m=VALUE,]n=USER,r=NONCE[,EXTENSION…]`; None for anything else. What is
    reserved is passed over, and is missing in what is proved, as with Apache Kafka."""
    parts = text.split(",", MOST_PARTS)
    if len(parts) > MOST_PARTS:
        return None
    if len(parts) > 2 and parts[2].startswith("m=") and _VALUE.fullmatch(parts[2], 2):
        del parts[2]
    if len(parts) < 4 or parts[0] != "n" or not all(map(_EXTENSION.fullmatch, parts[4:])):
        return None
    wanted, name, nonce = parts[1:4]
    if wanted and not (wanted.startswith("a=") and _is_name(wanted[2:])):
        return None
    if not (name.startswith("n=") and _is_name(name[2:])):
        return None
    if not (nonce.startswith("r=") and _PRINTABLE.fullmatch(nonce, 2)):
        return None
    user = name[2:].replace("=2C", ",").replace("=3D", "=")
    by_token = [each.lower() for each in parts[4:] if each.startswith(_BY_TOKEN)]
    is_by_token = by_token[-1:] == [f"{_BY_TOKEN}true"]
    return _First(wanted[2:], user, nonce[2:], ",".join(parts[2:]), is_by_token)


def _final_of(text: str) -> _Final | None:
    """`c=BINDING,r=NONCE[,EXTENSION…],p=PROOF`; None for anything else. Extensions are passed
    over."""
    parts = text.split(",", MOST_PARTS)
    if not 3 <= len(parts) <= MOST_PARTS:
        return None
    binding, nonce, *extensions, proof = parts
    if not (binding.startswith("c=") and proof.startswith("p=")):
        return None
    if not (nonce.startswith("r=") and _PRINTABLE.fullmatch(nonce, 2)):
        return None
    if not all(map(_EXTENSION.fullmatch, extensions)):
        return None
    if not (_is_base64(binding[2:]) and _is_base64(proof[2:])):
        return None
    again = b64encode(b64decode(binding[2:])).decode()
    return _Final(again, nonce[2:], b64decode(proof[2:]))


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text.replace("=2C", "_").replace("=3D", "_")) is not None


def _is_base64(text: str) -> bool:
    return len(text) % 4 == 0 and _BASE64.fullmatch(text) is not None
