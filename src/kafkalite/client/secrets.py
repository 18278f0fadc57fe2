"""What messages hold that would let somebody in: passwords, what stands for them, proofs.

Owns which fields of which these are, for whatever writes messages down: traces and dumps. What is
left of one is a message still, and says that something was there, never what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from kafkalite.config import tables
from kafkalite.config.check import HIDDEN

LOGGER = 8  # the kind of resource whose settings are levels
METADATA_TOPIC, METADATA_TOPIC_ID = "__cluster_metadata", bytes(15) + b"\x01"

Holders = Callable[[Any], Iterable[Any]]


def is_shown(name: str) -> bool:
    """Whether a setting's value is no secret; as with Apache Kafka an unknown one may be."""
    known = (
        tables.broker_settings().get(tables.base_name(name)),
        tables.topic_settings().get(name), tables.group_settings().get(name),
        tables.client_metrics_settings().get(name),
    )  # fmt: skip
    return any(known) and not any(setting is not None and setting.sensitive for setting in known)


def without_secrets(message: Any) -> bool:
    """Takes them out; whether there were any."""
    has_had = False
    holders, fields = _SECRETS.get(message.SPEC.name, (_itself, ()))
    for holder in holders(message):
        for name in fields:
            value = getattr(holder, name)
            if value:
                has_had = True
                setattr(holder, name, HIDDEN if isinstance(value, str) else b"")
    return has_had


def may_hold_secrets(api: str | None) -> bool:
    """Whether what is said of an API may hold some: what of it cannot be read is not shown.
    Of all that Fetch says next to nothing is secret."""
    names = {f"{api}Request", f"{api}Response"}
    return api != "Fetch" and not names.isdisjoint(_SECRETS)


def hides_settings(message: Any) -> bool:
    """Whether a request would set what was hidden of it."""
    return message.SPEC.name in _OF_SETTINGS and any(
        each.value == HIDDEN for each in _secret_settings(message)
    )


# --- where they are -------------------------------------------------------------------------------


def _itself(message: Any) -> Iterator[Any]:
    yield message


def _secret_settings(message: Any) -> Iterator[Any]:
    for each in message.resources:
        if each.resource_type != LOGGER:
            yield from (config for config in each.configs if not is_shown(config.name))


def _secret_record(message: Any) -> Iterator[Any]:
    if message.resource_type != LOGGER and not is_shown(message.name):
        yield message


def _of_metadata(message: Any) -> Iterator[Any]:
    """Where records of the metadata log are told, of settings and users among them."""
    for topic in message.responses:
        if topic.topic == METADATA_TOPIC or topic.topic_id == METADATA_TOPIC_ID:
            yield from topic.partitions


def _of_snapshots(message: Any) -> Iterator[Any]:
    for topic in message.topics:
        yield from topic.partitions


_OF_SETTINGS: Final = ("AlterConfigsRequest", "IncrementalAlterConfigsRequest")
_SECRETS: Final[dict[str, tuple[Holders, tuple[str, ...]]]] = {
    "SaslAuthenticateRequest": (_itself, ("auth_bytes",)),
    "SaslAuthenticateResponse": (_itself, ("auth_bytes",)),
    "AlterUserScramCredentialsRequest": (
        lambda message: message.upsertions, ("salt", "salted_password"),
    ),
    "CreateDelegationTokenResponse": (_itself, ("hmac",)),
    "RenewDelegationTokenRequest": (_itself, ("hmac",)),
    "ExpireDelegationTokenRequest": (_itself, ("hmac",)),
    "DescribeDelegationTokenResponse": (lambda message: message.tokens, ("hmac",)),
    **dict.fromkeys(_OF_SETTINGS, (_secret_settings, ("value",))),
    "EnvelopeRequest": (_itself, ("request_data",)),
    "EnvelopeResponse": (_itself, ("response_data",)),
    "FetchResponse": (_of_metadata, ("records",)),
    "FetchSnapshotResponse": (_of_snapshots, ("unaligned_records",)),
    "ConfigRecord": (_secret_record, ("value",)),
    "UserScramCredentialRecord": (_itself, ("salt", "stored_key", "server_key")),
}  # fmt: skip
