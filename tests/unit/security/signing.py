"""An issuer of signed tokens: its keys, its set of public ones, and tokens as a test wants them."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import cache
from typing import Any

from joserfc import jws
from joserfc.jwk import ECKey, RSAKey

NOW_S = 1_700_000_000


@cache
def rsa_key(name: str) -> RSAKey:
    """Made once for each name."""
    return RSAKey.generate_key(2048, private=True)


@cache
def ec_key(name: str, curve: str = "P-256") -> ECKey:
    return ECKey.generate_key(curve, private=True)


def public(key: RSAKey | ECKey, key_id: str | None = None, **more: str) -> dict[str, Any]:
    named: dict[str, Any] = {} if key_id is None else {"kid": key_id}
    return {**key.as_dict(private=False), **named, **more}


def key_set(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


def claims(now_s: int = NOW_S, **more: Any) -> dict[str, Any]:
    """What Apache Kafka takes; None leaves one out."""
    usual = {"sub": "alice", "iat": now_s, "exp": now_s + 3_600}
    return {name: value for name, value in {**usual, **more}.items() if value is not None}


def signed(
    said: dict[str, Any] | bytes,
    key: RSAKey | ECKey,
    key_id: str | None = "one",
    algorithm: str = "RS256",
    **header: Any,
) -> str:
    payload = said if isinstance(said, bytes) else json.dumps(said).encode()
    head = {"alg": algorithm, **({} if key_id is None else {"kid": key_id}), **header}
    registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    return jws.serialize_compact(head, payload, key, registry=registry)


def part(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(data).decode().rstrip("=")


def unsecured(claims: dict[str, Any]) -> str:
    """A token that anybody may make."""
    return f"{part({'alg': 'none'})}.{part(claims)}."
