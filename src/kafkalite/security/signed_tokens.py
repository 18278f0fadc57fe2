"""Signed tokens (RFC 7519): what one has to say, and that its signature is of a key that is known.

Owns the rules by which a token is taken, as Apache Kafka's broker has them, and their order: the
signature comes before anything that it covers is looked at. No sentence quotes a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kafkalite.env.dataclasses import dataclass
from kafkalite.security.key_sets import ALGORITHMS, PublicKey, chosen
from kafkalite.security.oauthbearer import Checked, NotTaken, bearer
from kafkalite.security.token_parts import MalformedPart, decoded, object_of, seconds_of

PARTS: Final = 3
LARGEST_HEADER: Final = 16_384  # of which nothing is proved yet
LARGEST: Final = 1_048_576


@dataclass(slots=True, frozen=True)
class SignedRules:
    """What a token has to say."""

    audience: tuple[str, ...] = ()  # one of which it is for; without any it is for nobody
    issuer: str | None = None
    skew_s: int = 0  # by which clocks may differ
    scope_claim: str = "scope"
    user_claim: str = "sub"


@dataclass(slots=True, frozen=True)
class UnknownKey(NotTaken):
    """It may be of a key that came since keys were read."""

    key_id: str | None = None


def checked(token: str, keys: Sequence[PublicKey], rules: SignedRules, now_ms: int) -> Checked:
    """Whom a token names, or why it is not taken."""
    try:
        parts = token.split(".")
        if len(parts) != PARTS or not all(parts):
            return NotTaken("it does not have three parts")
        header = _header(parts[0])
        key = chosen(keys, header)
        if key is None:
            why = f"no key is known for a token of {header['alg']} with its key id"
            return UnknownKey(why, key_id=header.get("kid"))
        if not _is_signed_by(key, token, header["alg"]):
            return NotTaken("its signature is not of the key that it names")
        return _bearer(object_of(decoded(parts[1])), rules, now_ms)
    except MalformedPart as error:
        return NotTaken(str(error))


def _header(part: str) -> dict[str, Any]:
    if len(part) > LARGEST_HEADER:
        raise MalformedPart("its header is too large")
    header = object_of(decoded(part))
    if header.get("alg") not in ALGORITHMS:
        raise MalformedPart(f"its algorithm is none of {', '.join(ALGORITHMS)}")
    if not isinstance(header.get("kid", ""), str):
        raise MalformedPart("its key id is no text")
    return header


def _is_signed_by(key: PublicKey, token: str, algorithm: str) -> bool:
    from joserfc import jws
    from joserfc.errors import JoseError

    registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    registry.max_header_length = LARGEST_HEADER
    registry.max_payload_length = LARGEST
    registry.max_signature_length = LARGEST_HEADER
    try:
        jws.deserialize_compact(token, key.key, registry=registry)
    except (JoseError, ValueError, TypeError):
        return False
    return True


def _bearer(claims: dict[str, Any], rules: SignedRules, now_ms: int) -> Checked:
    expires = seconds_of(claims, "exp")
    why = _untimely(claims, expires, now_ms // 1000, rules.skew_s) or _stranger(claims, rules)
    user = claims.get(rules.user_claim)
    if why is None and (not isinstance(user, str) or not user.strip()):
        why = f"its {rules.user_claim} names nobody"
    if why is None and not _is_scope(claims.get(rules.scope_claim)):
        why = f"its {rules.scope_claim} is no list of different texts"
    if why is not None or expires is None or not isinstance(user, str):
        return NotTaken(why or "it never expires")
    return bearer(user.strip(), expires * 1000, now_ms)


def _untimely(
    claims: dict[str, Any], expires: int | None, now: int, skew: int
) -> str | None:
    issued, begins = seconds_of(claims, "iat"), seconds_of(claims, "nbf")
    if expires is None or expires < 0:
        return "it never expires"
    if issued is None or issued < 0:
        return "it does not say when it was issued"
    if now - skew >= expires:
        return "it has expired"
    if expires < issued or (begins is not None and expires < begins):
        return "it expires before it begins"
    if begins is not None and now + skew < begins:
        return "it does not hold yet"
    return None


def _stranger(claims: dict[str, Any], rules: SignedRules) -> str | None:
    """Why it is of another issuer, or for somebody else."""
    issuer, audience = claims.get("iss"), claims.get("aud")
    if rules.issuer is not None and issuer != rules.issuer:
        return "it has another issuer than sasl.oauthbearer.expected.issuer"
    if issuer is not None and not isinstance(issuer, str):
        return "its iss is no text"
    if not all(isinstance(claims.get(name, ""), str) for name in ("sub", "jti")):
        return "its sub or its jti is no text"
    named = [audience] if isinstance(audience, str) else audience
    if named is None:
        return "it is for nobody" if rules.audience else None
    if not _are_texts(named):
        return "its aud is no text"
    if not set(named).intersection(rules.audience):
        return "it is for none of sasl.oauthbearer.expected.audience"
    return None


def _is_scope(value: object) -> bool:
    """Whatever is neither a text nor a list counts as none."""
    scopes = [value] if isinstance(value, str) else value
    if not isinstance(scopes, list):
        return True
    if not _are_texts(scopes):
        return False
    bare = [each.strip() for each in scopes]
    return all(bare) and len(set(bare)) == len(bare)


def _are_texts(values: object) -> bool:
    return isinstance(values, list) and all(isinstance(each, str) for each in values)
