"""Topics that are to be there when the broker serves, as other images take them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

VARIABLES = ("KAFKA_CREATE_TOPICS", "CREATE_TOPICS")
SEPARATOR = "KAFKA_CREATE_TOPICS_SEPARATOR"


def topics(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each as `kafkalite serve` takes it, with what is to be said of it, out of
    NAME:PARTITIONS:REPLICAS[:CLEANUP] in as many lines as somebody likes."""
    separator = environment.get(SEPARATOR) or ","
    for item in _items(environment, separator):
        name, count, replicas, cleanup = (
            part.strip().strip('"') for part in f"{item}:::".split(":", 4)[:4]
        )
        configs = f":cleanup.policy={cleanup}" if cleanup else ""
        few = "" if replicas in ("", "1", "-1") else f"{name} has one replica, not {replicas}"
        if name:
            yield f"{name}:{count}{configs}".rstrip(":"), few


def _items(environment: Mapping[str, str], separator: str) -> Iterator[str]:
    for variable in VARIABLES:
        yield from re.split(rf"{re.escape(separator)}|\n", environment.get(variable, ""))
