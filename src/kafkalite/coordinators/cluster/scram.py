"""Decides on users' SCRAM credentials.

Owns Kafka's rules for them. Passwords never come here: a client sends them salted and hashed, and
what is stored proves a password without holding it (RFC 5802).
"""

from __future__ import annotations

from typing import overload

from kafkalite.coordinators.cluster.records import SCRAM
from kafkalite.coordinators.cluster.view import View, decided_in_steps
from kafkalite.coordinators.effects import Effects
from kafkalite.env.slicing import ELEMENTS_PER_STEP, Steps, in_steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kafkalite.security.scram import BY_NUMBER, MAX_ITERATIONS, MIN_ITERATIONS

Deletion = AlterUserScramCredentialsRequest.Deletion
Upsertion = AlterUserScramCredentialsRequest.Upsertion


def alter_user_scram_credentials(
    view: View, request: AlterUserScramCredentialsRequest
) -> Steps[Effects]:
    """Sets and removes credentials; a user may stand in a request once."""
    changes: list[Deletion | Upsertion] = [*request.deletions, *request.upsertions]
    outcomes: dict[str, KafkaError | None] = {}
    wanted: dict[str, Deletion | Upsertion] = {}
    for number, change in enumerate(changes, 1):
        _sort_out(view, change, outcomes, wanted)
        if number % ELEMENTS_PER_STEP == 0:
            yield
    passwordless = [
        change.name
        for change in wanted.values()
        if isinstance(change, Upsertion) and not change.salted_password
    ]
    for name in passwordless:
        del wanted[name]
        # Nothing can be derived from it, which Apache Kafka finds out as late.
        outcomes[name] = KafkaError(Error.UNKNOWN_SERVER_ERROR)
    response = AlterUserScramCredentialsResponse(
        results=(yield from in_steps(_result(*one) for one in outcomes.items()))
    )
    records = (record_of(change) for change in wanted.values())
    return (yield from decided_in_steps(view, records, response))


def _sort_out(
    view: View,
    change: Deletion | Upsertion,
    outcomes: dict[str, KafkaError | None],
    wanted: dict[str, Deletion | Upsertion],
) -> None:
    name = change.name
    if name in wanted:
        del wanted[name]
        why = "A user credential cannot be altered twice in the same request"
        outcomes[name] = KafkaError(Error.DUPLICATE_RESOURCE, why)
    elif outcomes.get(name) is None:
        outcomes[name] = _refusal(view, change)
        if outcomes[name] is None:
            wanted[name] = change


def _refusal(view: View, change: Deletion | Upsertion) -> KafkaError | None:
    if view.image.metadata_version < SCRAM:
        why = "The current metadata.version does not support SCRAM"
        return KafkaError(Error.UNSUPPORTED_VERSION, why)
    if not change.name:
        return KafkaError(Error.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in BY_NUMBER:
        return KafkaError(Error.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, Deletion):
        if (change.name, change.mechanism) in view.image.scram:
            return None
        why = "Attempt to delete a user credential that does not exist"
        return KafkaError(Error.RESOURCE_NOT_FOUND, why)
    if change.iterations < MIN_ITERATIONS:
        return KafkaError(Error.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > MAX_ITERATIONS:
        return KafkaError(Error.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return None


def _result(user: str, outcome: KafkaError | None) -> AlterUserScramCredentialsResponse.Result:
    result = AlterUserScramCredentialsResponse.Result(
        user=user, error_code=Error.NONE, error_message=None
    )
    if outcome is not None:
        result.error_code, result.error_message = outcome.code, outcome.message
    return result


@overload
def record_of(change: Upsertion) -> UserScramCredentialRecord: ...
@overload
def record_of(
    change: Deletion | Upsertion,
) -> RemoveUserScramCredentialRecord | UserScramCredentialRecord: ...


def record_of(
    change: Deletion | Upsertion,
) -> RemoveUserScramCredentialRecord | UserScramCredentialRecord:
    """What proves a password without holding it, or that there is none any more."""
    match change:
        case Deletion():
            return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    stored_key, server_key = BY_NUMBER[change.mechanism].keys(bytes(change.salted_password))
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=bytes(change.salt),
        stored_key=stored_key,
        server_key=server_key,
        iterations=change.iterations,
    )
