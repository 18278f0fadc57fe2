"""Sets of public keys (RFC 7517): read from bytes, and the one among them that a token means.

Owns which keys count: those of kinds that sign, strong enough, one by one, so that a strange one
spoils no other; and the choice among them, as Apache Kafka makes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.security.token_parts import MalformedPart, decoded, object_of

if TYPE_CHECKING:
    from joserfc.jwk import Key

# By the beginning of an algorithm's name: the kind of its keys. Keys that both sides know are none
# of a set that anybody may read.
KINDS: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC"}
CURVES: Final = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", *CURVES)
LEAST_RSA_BITS: Final = 2048
MOST_RSA_BITS: Final = 16_384  # a larger one takes long


@dataclass(slots=True, frozen=True)
class PublicKey:
    """One of a set, and for what it is meant."""

    key_id: str | None
    kind: str
    use: str | None
    algorithm: str | None
    curve: str | None
    key: Key = field(repr=False)


def read_keys(data: bytes) -> tuple[PublicKey, ...]:
    """Raises MalformedPart for what is no set of keys. Takes some milliseconds, and more the first
    time: what checks signatures is loaded with it, so that the loop need not wait for that."""
    import_module("joserfc.jws")
    listed = object_of(data).get("keys")
    if not isinstance(listed, list):
        raise MalformedPart("there is no list of keys in it")
    found = (_key_of(each) for each in listed if isinstance(each, dict))
    return tuple(each for each in found if each is not None)


def chosen(keys: Sequence[PublicKey], header: Mapping[str, Any]) -> PublicKey | None:
    """The key that a token of this header is to be checked with; None: there is none."""
    algorithm, key_id = header["alg"], header.get("kid")
    found = [
        each
        for each in keys
        if each.kind == KINDS.get(algorithm[:2])
        and key_id in (None, each.key_id)
        and each.use in (None, "sig")
    ]
    if len(found) > 1:
        found = [each for each in found if each.algorithm in (None, algorithm)]
    if len(found) > 1 and algorithm in CURVES:
        found = [each for each in found if each.curve == CURVES[algorithm]]
    return found[0] if found else None


def _key_of(told: dict[str, Any]) -> PublicKey | None:
    from joserfc.errors import JoseError
    from joserfc.jwk import import_key

    kind = _text(told, "kty")
    if kind is None or kind not in KINDS.values() or not _is_strong(told):
        return None
    names = "kty n e" if kind == "RSA" else "kty crv x y"
    try:
        key = import_key({name: told[name] for name in names.split()})
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return PublicKey(
        _text(told, "kid"), kind, _text(told, "use"), _text(told, "alg"), _text(told, "crv"), key
    )


def _is_strong(told: dict[str, Any]) -> bool:
    if told["kty"] != "RSA":
        return told.get("crv") in CURVES.values()
    try:
        modulus = int.from_bytes(decoded(_text(told, "n") or ""), "big")
    except MalformedPart:
        return False
    return LEAST_RSA_BITS <= modulus.bit_length() <= MOST_RSA_BITS


def _text(told: dict[str, Any], name: str) -> str | None:
    value = told.get(name)
    return value if isinstance(value, str) else None
