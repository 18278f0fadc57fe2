"""Apache Kafka's own message definitions: the JSON that its jars carry beside their classes.

Owns how they are read and which of our fields one of theirs is. Runs no Java.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from kafkalite.jvm import jars

# Oldest last: a field that Apache Kafka has dropped is still in a generation before.
GENERATIONS: tuple[tuple[str, ...], ...] = (
    ("reference", "coordinators"),
    ("kafka-clients-3.9.2",),
    ("kafka-clients-2.8.2",),
)

Definition = dict[str, Any]
Way = tuple[str, ...]

_REMARK = re.compile(r"^\s*//.*$", re.MULTILINE)


def definitions(groups: tuple[str, ...]) -> dict[str, Definition]:
    """Every message of one generation by its name."""
    found = {}
    for path in jars.paths(*groups):
        with zipfile.ZipFile(path) as jar:
            for entry in jar.namelist():
                if re.search(r"(message|metadata)/\w+\.json$", entry):
                    definition = _read(jar.read(entry).decode())
                    found[definition["name"]] = definition
    return found


def _read(text: str) -> Definition:
    """One of them ends with a brace too many, which Java's reader passes over."""
    bare = _REMARK.sub("", text)
    definition, _ = json.JSONDecoder().raw_decode(bare, bare.index("{"))
    assert isinstance(definition, dict)
    return definition


def fields_of(definition: Definition) -> Iterator[tuple[Way, Definition]]:
    """Every field with its way from the root, in our spelling."""
    common = {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}
    yield from _fields(definition.get("fields", []), (), common)


def _fields(
    fields: list[Definition], above: Way, common: dict[str, list[Definition]]
) -> Iterator[tuple[Way, Definition]]:
    for field in fields:
        here = (*above, snake(field["name"]))
        yield here, field
        below = field.get("fields") or common.get(field["type"].removeprefix("[]"), [])
        yield from _fields(below, here, common)


def snake(name: str) -> str:
    """`errorCode` as `error_code`, `ISRUpdates` as `isr_updates`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
