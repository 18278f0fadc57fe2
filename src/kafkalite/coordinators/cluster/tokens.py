"""Decides on delegation tokens: who is given one, how long it holds, and which are over (KIP-48).

Owns Kafka's rules for that. Who may ask at all, and for whom, was
asked before. Principals are texts, `User:alice`; moments are those of who asks, by the wall clock.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.records import DELEGATION_TOKENS
from kafkalite.coordinators.cluster.view import View, decided, decided_in_steps
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.events import Event
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.slicing import Steps
from kafkalite.log.names import uuid_text
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    CreateDelegationTokenResponse,
    DelegationTokenRecord,
    ExpireDelegationTokenResponse,
    RemoveDelegationTokenRecord,
    RenewDelegationTokenResponse,
)
from kafkalite.security.delegation import SECRET, token_hmac

LATEST = 2**63 - 1
MOST_AT_ONCE = 1_000  # expired ones that go in one decision
LOOKED_AT_PER_STEP = 256


@dataclass(slots=True, eq=False)
class CreateToken(Event[CreateDelegationTokenResponse]):
    """Asked for by one, for another one or for itself."""

    requester: str
    owner: str
    renewers: list[str]
    max_lifetime_ms: int  # of 0 or less: as long as may be
    now_ms: int


@dataclass(slots=True, eq=False)
class RenewToken(Event[RenewDelegationTokenResponse]):
    hmac: bytes = field(repr=False)
    period_ms: int  # of 0 or less: as long as may be
    asker: str
    now_ms: int


@dataclass(slots=True, eq=False)
class ExpireToken(Event[ExpireDelegationTokenResponse]):
    hmac: bytes = field(repr=False)
    period_ms: int  # below 0: it goes at once
    asker: str
    now_ms: int


@dataclass(slots=True, eq=False)
class RemoveExpired(Event[bool]):
    """Answered with whether there may be more of them."""

    now_ms: int


def named(owner: str, requester: str, error: Error) -> CreateDelegationTokenResponse:
    """An answer that says for whom, and nothing of a token."""
    response = CreateDelegationTokenResponse(error_code=error)
    response.principal_type, _, response.principal_name = owner.partition(":")
    kind, _, name = requester.partition(":")
    response.token_requester_principal_type, response.token_requester_principal_name = kind, name
    return response


def create_token(view: View, asked: CreateToken) -> Effects:
    error = _unserved(view)
    response = named(asked.owner, asked.requester, error)
    if error is not Error.NONE:
        return decided(view, (), response)
    longest_ms = view.config.get_int("delegation.token.max.lifetime.ms")
    if asked.max_lifetime_ms > 0:
        longest_ms = min(longest_ms, asked.max_lifetime_ms)
    latest = _after(asked.now_ms, longest_ms)
    record = DelegationTokenRecord(
        owner=asked.owner,
        requester=asked.requester,
        renewers=asked.renewers,
        issue_timestamp=asked.now_ms,
        max_timestamp=latest,
        expiration_timestamp=min(latest, _after(asked.now_ms, _renewed_ms(view))),
        token_id=uuid_text(view.random_uuid()),
    )
    response.issue_timestamp_ms = record.issue_timestamp
    response.expiry_timestamp_ms = record.expiration_timestamp
    response.max_timestamp_ms = record.max_timestamp
    response.token_id = record.token_id
    response.hmac = token_hmac(_secret(view), record.token_id)
    return decided(view, (record,), response)


def renew_token(view: View, asked: RenewToken) -> Steps[Effects]:
    response = RenewDelegationTokenResponse()
    token = yield from _found(view, asked)
    if isinstance(token, DelegationTokenRecord) and _is_over(token, asked.now_ms):
        token = Error.DELEGATION_TOKEN_EXPIRED
    if isinstance(token, DelegationTokenRecord) and not _may_change(token, asked.asker):
        token = Error.DELEGATION_TOKEN_OWNER_MISMATCH
    if isinstance(token, Error):
        response.error_code = token
        return decided(view, (), response)
    period_ms = _renewed_ms(view)
    if asked.period_ms > 0:
        period_ms = min(period_ms, asked.period_ms)
    until = response.expiry_timestamp_ms = min(
        token.max_timestamp, _after(asked.now_ms, period_ms)
    )
    return decided(view, (_until(token, until),), response)


def expire_token(view: View, asked: ExpireToken) -> Steps[Effects]:
    response = ExpireDelegationTokenResponse()
    token = yield from _found(view, asked)
    if isinstance(token, DelegationTokenRecord) and not _may_change(token, asked.asker):
        token = Error.DELEGATION_TOKEN_OWNER_MISMATCH
    is_kept = asked.period_ms >= 0
    if isinstance(token, DelegationTokenRecord) and is_kept and _is_over(token, asked.now_ms):
        token = Error.DELEGATION_TOKEN_EXPIRED
    if isinstance(token, Error):
        response.error_code = token
        return decided(view, (), response)
    if not is_kept:
        response.expiry_timestamp_ms = asked.now_ms
        return decided(view, (RemoveDelegationTokenRecord(token_id=token.token_id),), response)
    until = response.expiry_timestamp_ms = min(
        token.max_timestamp, _after(asked.now_ms, asked.period_ms)
    )
    return decided(view, (_until(token, until),), response)


def remove_expired(view: View, asked: RemoveExpired) -> Steps[Effects]:
    over: list[RemoveDelegationTokenRecord] = []
    for number, token in enumerate(view.image.tokens.values(), 1):
        if _is_over(token, asked.now_ms):
            over.append(RemoveDelegationTokenRecord(token_id=token.token_id))
            if len(over) == MOST_AT_ONCE:
                break
        if number % LOOKED_AT_PER_STEP == 0:
            yield
    return (yield from decided_in_steps(view, over, len(over) == MOST_AT_ONCE))


def _found(
    view: View, asked: RenewToken | ExpireToken
) -> Steps[DelegationTokenRecord | Error]:
    error = _unserved(view)
    if error is not Error.NONE:
        return error
    found = yield from view.token_ids.find(_secret(view), view.image.tokens, asked.hmac)
    return Error.DELEGATION_TOKEN_NOT_FOUND if found is None else found


def _unserved(view: View) -> Error:
    if not _secret(view):
        return Error.DELEGATION_TOKEN_AUTH_DISABLED
    if view.image.metadata_version < DELEGATION_TOKENS:
        return Error.UNSUPPORTED_VERSION
    return Error.NONE


def _secret(view: View) -> str:
    return view.config.get_optional_str(SECRET) or ""


def _renewed_ms(view: View) -> int:
    return view.config.get_int("delegation.token.expiry.time.ms")


def _after(now_ms: int, duration_ms: int) -> int:
    return min(LATEST, now_ms + duration_ms)


def _is_over(token: DelegationTokenRecord, now_ms: int) -> bool:
    return min(token.max_timestamp, token.expiration_timestamp) < now_ms


def _may_change(token: DelegationTokenRecord, asker: str) -> bool:
    return asker == token.owner or asker in token.renewers


def _until(token: DelegationTokenRecord, until: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=until,
        token_id=token.token_id,
    )
