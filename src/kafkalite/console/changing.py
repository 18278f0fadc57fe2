"""What the page changes: topics, settings, groups, and records that it writes."""

from __future__ import annotations

from typing import Any

from kafkalite.client import settings, topics
from kafkalite.client.admin import Admin
from kafkalite.client.changes import Changes
from kafkalite.client.cluster import ClientFailed, Cluster
from kafkalite.client.producing import Producer, Refusal
from kafkalite.console.given import MOST_TEXT, Given, Mistake
from kafkalite.console.overview import subject
from kafkalite.protocol.errors import Error

PATIENCE_SECONDS = 10.0
MOST_HEADERS = 50
ENCODINGS = ("text", "hex")


def create_topic(cluster: Cluster, given: Given) -> dict[str, Any]:
    """replicas: the cluster's default where none are named."""
    name, partitions = given.name("name"), given.number("partitions", 1, 1, 100_000)
    configs = given.pairs("settings")
    if given.has("replicas"):
        replicas = given.number("replicas", low=1, high=1_000)
        _changes(cluster).create_topic(name, partitions, replicas, configs)
    else:
        topics.create_topic(cluster, name, partitions, configs, PATIENCE_SECONDS)
    return {"name": name}


def delete_topic(cluster: Cluster, given: Given) -> dict[str, Any]:
    name = given.name("name")
    _changes(cluster).delete_topic(name)
    return {"name": name}


def add_partitions(cluster: Cluster, given: Given) -> dict[str, Any]:
    name = given.name("name")
    _changes(cluster).add_partitions(name, given.number("partitions", low=1, high=100_000))
    return {"name": name}


def delete_group(cluster: Cluster, given: Given) -> dict[str, Any]:
    name = given.name("name")
    _changes(cluster).delete_group(name)
    return {"name": name}


def alter_settings(cluster: Cluster, given: Given) -> dict[str, Any]:
    kind, name = subject(given)
    changed, unset, is_tried = given.pairs("set"), given.names("unset"), given.flag("preview")
    if not changed and not unset:
        raise Mistake("set: nothing is to be changed")
    admin = Admin(cluster, timeout_s=PATIENCE_SECONDS)
    settings.alter(admin, kind, name, changed, unset, is_tried=is_tried)
    return {"preview": is_tried}


def produce(cluster: Cluster, given: Given) -> dict[str, Any]:
    """One record; null where a key, a value or a header's value is not given."""
    headers = given.fields.get("headers", [])
    if not isinstance(headers, list) or len(headers) > MOST_HEADERS:
        raise Mistake(f"headers: expected a list of at most {MOST_HEADERS}")
    partition = given.number("partition", high=(1 << 31) - 1) if given.has("partition") else None
    key, value = _bytes(given, "key"), _bytes(given, "value")
    topic, refusals = given.name("topic"), list[Refusal]()
    producer = Producer(
        cluster, topic, partition=partition, headers=(), codec=0, timeout_s=PATIENCE_SECONDS,
        refuse=refusals.append,
    )  # fmt: skip
    producer.add(key, value, tuple(_header(each) for each in headers))
    producer.flush()
    for each in refusals:
        code = each.code or Error.INVALID_RECORD
        why = each.message or code.message
        raise ClientFailed(f"{topic} does not take the record: {code.name}: {why}", code)
    return {"written": producer.written}


def _header(pair: object) -> tuple[str, bytes | None]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise Mistake("headers: expected pairs of a name and a value")
    given = Given({"name": pair[0], "header": pair[1]})
    return given.name("name"), _bytes(given, "header")


def _bytes(given: Given, name: str) -> bytes | None:
    if not given.has(name):
        return None
    text = given.text(name, most=MOST_TEXT)
    if given.choice(f"{name}_encoding", ENCODINGS, "text") == "text":
        return text.encode()
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise Mistake(f"{name}: these are no hexadecimal digits") from None


def _changes(cluster: Cluster) -> Changes:
    return Changes(Admin(cluster, timeout_s=PATIENCE_SECONDS))
