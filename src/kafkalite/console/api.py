"""What the page may ask, by path: the table of it, and how a refusal is told.

Owns the routes. Each is a function of a client of the cluster and of what was given; whether it
changes something stands in the table, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkalite.client.cluster import ClientFailed, Cluster, NotLetIn, TryAgain, Unreachable
from kafkalite.console import changing, groups, overview, reading, topics, transactions
from kafkalite.console.clients import Busy
from kafkalite.console.given import Given, Mistake
from kafkalite.console.schemas import Schemas
from kafkalite.protocol.errors import Error
from kafkalite.records.errors import CorruptRecords

Ask = Callable[[Cluster, Given], dict[str, Any]]


@dataclass(slots=True, frozen=True)
class Route:
    ask: Ask
    changes: bool = False


def routes(schemas: Schemas | None) -> dict[str, Route]:
    """By path; each takes its fields as JSON."""
    return {
        "about": Route(overview.about),
        "topics": Route(topics.listed),
        "topics/numbers": Route(topics.numbers),
        "topic": Route(topics.one),
        "topic/groups": Route(topics.groups),
        "records": Route(lambda cluster, given: reading.records(cluster, given, schemas)),
        "record": Route(lambda cluster, given: reading.record(cluster, given, schemas)),
        "groups": Route(groups.listed),
        "group": Route(groups.one),
        "group/preview": Route(_preview),
        "transactions": Route(transactions.listed),
        "transactions/open": Route(transactions.open_in),
        "brokers": Route(overview.brokers),
        "settings": Route(overview.values),
        "quotas": Route(overview.quotas),
        "access": Route(overview.access),
        "topic/create": Route(changing.create_topic, changes=True),
        "topic/delete": Route(changing.delete_topic, changes=True),
        "topic/partitions": Route(changing.add_partitions, changes=True),
        "produce": Route(changing.produce, changes=True),
        "settings/alter": Route(changing.alter_settings, changes=True),
        "group/reset": Route(groups.reset, changes=True),
        "group/delete": Route(changing.delete_group, changes=True),
        "transactions/abort": Route(transactions.abort, changes=True),
    }


def _preview(cluster: Cluster, given: Given) -> dict[str, Any]:
    """Where a reset would have a group go on."""
    return groups.reset(cluster, Given({**given.fields, "preview": True}))


_ABSENT = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.GROUP_ID_NOT_FOUND, Error.OFFSET_OUT_OF_RANGE)
_FORBIDDEN = (
    Error.TOPIC_AUTHORIZATION_FAILED, Error.GROUP_AUTHORIZATION_FAILED,
    Error.CLUSTER_AUTHORIZATION_FAILED, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)  # fmt: skip


def refusal(failure: Exception) -> tuple[int, dict[str, Any]] | None:
    """The status and what the page is told; None for what is a mistake of our own."""
    if isinstance(failure, Mistake):
        return 400, _told("mistake", str(failure))
    if isinstance(failure, Busy):
        return 503, _told("busy", str(failure))
    if isinstance(failure, NotLetIn):
        return 401, _told("login", str(failure))
    if isinstance(failure, CorruptRecords):
        return 502, _told("corrupt", f"{failure}: begin behind them, at a higher offset")
    if not isinstance(failure, ClientFailed):
        return None
    if failure.code in _ABSENT:
        return 404, _told("absent", str(failure), failure.code)
    if failure.code in _FORBIDDEN:
        return 403, _told("forbidden", str(failure), failure.code)
    if isinstance(failure, Unreachable | TryAgain):
        return 503, _told("unreachable", str(failure), failure.code)
    return 409, _told("refused", str(failure), failure.code)


def _told(kind: str, text: str, code: Error = Error.NONE) -> dict[str, Any]:
    return {"error": text, "kind": kind, "code": None if code is Error.NONE else code.name}
