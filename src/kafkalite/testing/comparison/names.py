"""Translates between what one broker chose (ids) and the canonical name of the same thing.

Two brokers give the same topic different ids. Whatever is compared or sent is written canonically:
an id that both brokers answered in the same place gets one canonical value, of the same type, and
each side's Names knows what stands for it there. An unknown value translates to itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from kafkalite.log.names import uuid_text
from kafkalite.protocol import spec
from kafkalite.protocol.traversal import to_message
from kafkalite.testing.comparison.batches import PRODUCER_ID as PRODUCER_ID
from kafkalite.testing.comparison.batches import renamed

TOPIC_ID, MEMBER_ID, SESSION_ID, OTHER_ID, NODE_ID = (
    "topic id", "member id", "fetch session", "id", "node id",
)
CLUSTER_ID, DIRECTORY, HOST, PORT = "cluster id", "directory", "host", "port"
_MEMBER_FIELDS = frozenset(("member_id", "leader", "skip_member_id"))
_NODE_FIELDS = frozenset(
    "node_id broker_id broker_ids controller_id leader leader_id voter_id replica_nodes isr_nodes"
    " offline_replicas replicas isr preferred_read_replica eligible_leader_replicas"
    " last_known_elr".split()
)
_OF_THE_MACHINE = {
    "cluster_id": CLUSTER_ID, "log_dir": DIRECTORY, "host": HOST, "port": PORT,
}  # fmt: skip
# There the host is one that a rule is about.
_WITH_HOSTS_IN_RULES = frozenset(("DescribeAcls", "CreateAcls", "DeleteAcls"))
# No text tells these, or none but by chance.
_NEVER_IN_TEXTS = frozenset((SESSION_ID, HOST, PORT))


def kind_of(field: spec.Field, api: str) -> str | None:
    """Which kind of id a field holds, if a broker chooses it."""
    if field.type == "uuid":
        return TOPIC_ID if field.name == "topic_id" else OTHER_ID
    if field.type == "string" and field.name in _MEMBER_FIELDS:
        return MEMBER_ID
    if field.type == "int64" and field.name.endswith("producer_id"):
        return PRODUCER_ID
    if field.type == "int32" and field.name == "session_id" and api == "Fetch":
        return SESSION_ID
    if field.name in _OF_THE_MACHINE and api not in _WITH_HOSTS_IN_RULES:
        return _OF_THE_MACHINE[field.name]
    return None


def is_node(field: spec.Field) -> bool:
    """Whether it holds ids of brokers, which are their administrator's choice."""
    return field.type == "int32" and field.name in _NODE_FIELDS


def is_nothing(kind: str, value: Any) -> bool:
    """Whether it stands for no id at all, which is the same everywhere."""
    if isinstance(value, bytes):
        return not any(value)
    if isinstance(value, str):
        return value == ""
    return bool(value <= 0 if kind in (SESSION_ID, PORT) else value < 0)


def canonical_id(kind: str, number: int) -> Any:
    """The canonical value of the id that was seen as the so-manieth of its kind."""
    if kind == MEMBER_ID:
        return f"member-{number}"
    if kind in (CLUSTER_ID, DIRECTORY, HOST):
        return f"{kind} {number}"
    if kind in (PRODUCER_ID, SESSION_ID, PORT):
        return 1_000_000_000 + number
    return f"{kind} {number}".ljust(16, "\0").encode()


class Names:
    """One side's dictionary. `run` stands for the word RUN in every text that is sent."""

    def __init__(self, run: str = "") -> None:
        self.run = run
        self._canonical: dict[tuple[str, Any], Any] = {}
        self._actual: dict[tuple[str, Any], Any] = {}

    def bind(self, kind: str, actual: Any, canonical: Any) -> None:
        self._canonical[kind, actual] = canonical
        self._actual[kind, canonical] = actual

    def knows(self, kind: str, actual: Any) -> bool:
        return (kind, actual) in self._canonical

    def has_actual(self, kind: str, canonical: Any) -> bool:
        return (kind, canonical) in self._actual

    def canonical(self, kind: str, actual: Any) -> Any:
        return self._canonical.get((kind, actual), actual)

    def actual(self, kind: str, canonical: Any) -> Any:
        return self._actual.get((kind, canonical), canonical)

    def text_out(self, text: str) -> str:
        return text.replace("RUN", self.run) if self.run else text

    def text_in(self, text: str) -> str:
        """Canonical text: also of ids that an error's message tells. What is nothing but a number
        is no message: a setting that happens to be what a producer's id is stays what it is."""
        if self.run:
            text = text.replace(self.run, "RUN")
        if text.isdecimal():
            return text
        for shown, canonical in self._shown():
            if shown in text:
                text = re.sub(rf"(?<![\w-]){re.escape(shown)}(?![\w-])", canonical, text)
        return text

    def _shown(self) -> Iterable[tuple[str, str]]:
        for (kind, actual), canonical in self._canonical.items():
            if isinstance(actual, bytes):
                yield uuid_text(actual), uuid_text(canonical)
            elif kind not in _NEVER_IN_TEXTS and len(str(actual)) > 2:
                yield str(actual), str(canonical)


def translate(message: Any, version: int, names: Names) -> Any:
    """The message as it is sent to the side of these names: a copy."""
    cls = type(message)
    api = cls.SPEC.api.name

    def leaf(value: Any, field: spec.Field) -> Any:
        if is_node(field):
            return names.actual(NODE_ID, value)
        kind = kind_of(field, api)
        if kind is not None and names.has_actual(kind, value):
            return names.actual(kind, value)
        if field.type == "string":
            return names.text_out(value)
        if field.type == "records":
            return value.build(names) if hasattr(value, "build") else renamed(value, names)
        return value

    return to_message(cls, version, message, leaf)
