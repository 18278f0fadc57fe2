"""Unsecured tokens (`alg` none): whoever makes one is whom it names. For tests, as Apache Kafka has
them.

Owns what such a token has to say to be taken. Rules come from the options of a line of JAAS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kafkalite.env.dataclasses import dataclass
from kafkalite.security.oauthbearer import Checked, NotTaken, Unreadable, bearer
from kafkalite.security.token_parts import (
    LATEST,
    MalformedPart,
    decoded,
    is_number,
    read_json,
)

PARTS: Final = 3
NO_SCOPE: Final = "insufficient_scope"


@dataclass(slots=True, frozen=True)
class UnsecuredRules:
    """What a token has to say."""

    user_claim: str = "sub"
    scope_claim: str = "scope"
    needed_scope: tuple[str, ...] = ()
    skew_ms: int = 0  # by which clocks may differ


class _NoAlgorithm(Exception):
    """Its header does not say how it is signed."""


class UnsecuredTokens:
    """Checks tokens."""

    def __init__(self, rules: UnsecuredRules, now_ms: Callable[[], int]) -> None:
        self._rules, self._now_ms = rules, now_ms

    def check(self, token: str) -> Checked:
        try:
            claims = _claims_of(token)
            scope = _scope(claims.get(self._rules.scope_claim))
            expires = _number(claims, "exp")
            user = claims.get(self._rules.user_claim)
            if expires is None or not isinstance(user, str) or not user.strip():
                return NotTaken(f"it lacks exp or {self._rules.user_claim}")
            why = self._untimely(_number(claims, "iat"), expires)
        except _NoAlgorithm:
            return Unreadable("its token does not say how it is signed")
        except MalformedPart as error:
            return NotTaken(str(error))
        if why is not None:
            return NotTaken(why)
        missing = [each for each in self._rules.needed_scope if each not in scope]
        if missing:
            needed = f"[{', '.join(self._rules.needed_scope)}]"
            return NotTaken(f"its scope lacks {missing[0]}", NO_SCOPE, needed)
        expires_ms = LATEST if expires > LATEST else int(expires * 1000 + 0.5)
        return bearer(user, expires_ms, self._now_ms())

    def _untimely(self, issued: float | None, expires: float) -> str | None:
        now_ms, skew_ms = self._now_ms(), self._rules.skew_ms
        if issued is not None and 1000 * issued > now_ms + skew_ms:
            return "it is issued later than now"
        if now_ms - skew_ms >= 1000 * expires:
            return "it has expired"
        if issued is not None and expires <= issued:
            return "it expires before it is issued"
        return None


def _claims_of(token: str) -> dict[str, Any]:
    """Raises MalformedPart, or _NoAlgorithm."""
    parts = token.rstrip(".").split(".")
    if token.endswith("."):
        parts.append("")
    if ".." in token or len(parts) != PARTS:
        raise MalformedPart("it does not have three parts")
    header, claims = _values(parts[0]), _values(parts[1])
    if "alg" not in header:
        raise _NoAlgorithm
    if header["alg"] != "none":
        raise MalformedPart("it is signed, and unsecured ones are taken here")
    if parts[2]:
        raise MalformedPart("it has a signature, though none is announced")
    return claims


def _values(part: str) -> dict[str, Any]:
    """What is no number and no list counts as its text."""
    data = decoded(part)
    found = read_json(data, may_repeat=True) if data.strip() else {}
    if not isinstance(found, dict):
        return {}
    return {name: _value(each) for name, each in found.items()}


def _value(value: object) -> object:
    if isinstance(value, list):
        return [_text(each) for each in value]
    return value if _is_number(value) else _text(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return "" if isinstance(value, dict | list) else str(value)


def _number(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    try:
        if is_number(value):
            return float(value)
    except OverflowError:
        pass
    raise MalformedPart(f"its {name} is no time")


def _scope(value: object) -> set[str]:
    if value is None:
        return set()
    if isinstance(value, str):
        return {value.strip()} if value.strip() else set()
    if not isinstance(value, list):
        raise MalformedPart("its scope is no text, nor a list of texts")
    return {each.strip() for each in value if each.strip()}
