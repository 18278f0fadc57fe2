"""A broker in memory that gives delegation tokens to who has logged in."""

from __future__ import annotations

from typing import Any

from kafkalite.protocol.messages import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from tests.unit.handlers.world import World

SECRET = "the-secret-of-the-brokers"
ALICE, BOB, CAROL, ROOT = "User:alice", "User:bob", "User:carol", "User:root"
DAY_MS = 24 * 3_600_000
WEEK_MS = 7 * DAY_MS
GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": ROOT,
}


def desk(principal: str = ALICE, **settings: str) -> World:
    """Asked by somebody on a listener of SASL_SSL."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    world = World(settings={"delegation.token.secret.key": SECRET, **given})
    world.connection.principal, world.connection.protocol = principal, "SASL_SSL"
    return world


def create(world: World, version: int = 3, **named: Any) -> Any:
    named.setdefault("max_lifetime_ms", -1)
    renewers = [_split(CreateDelegationTokenRequest.Renewer, each) for each in
                named.pop("renewers", ())]
    owner = named.pop("owner", None)
    if owner is not None:
        named["owner_principal_type"], _, named["owner_principal_name"] = owner.partition(":")
    return world.ask(CreateDelegationTokenRequest(renewers=renewers, **named), version)


def renew(world: World, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
    return world.ask(request, version)


def expire(world: World, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    return world.ask(request, version)


def describe(world: World, owners: list[str] | None = None, version: int = 3) -> Any:
    asked = None
    if owners is not None:
        asked = [_split(DescribeDelegationTokenRequest.Owner, each) for each in owners]
    return world.ask(DescribeDelegationTokenRequest(owners=asked), version)


def _split(kind: type[Any], principal: str) -> Any:
    principal_type, _, name = principal.partition(":")
    return kind(principal_type=principal_type, principal_name=name)
