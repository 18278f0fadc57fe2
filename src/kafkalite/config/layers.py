"""Where a broker setting's value comes from: layers, the first that has it wins.

Owns Kafka's order: set for this broker, set for the cluster, given at start, default; and the
groups of settings that stand for one thing (`log.retention.ms`, `.minutes`, `.hours`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum


class Source(IntEnum):
    """The layer of a value; the numbers are those of DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(slots=True, frozen=True)
class Given:
    """One value of one setting in one layer."""

    name: str
    text: str | None
    source: Source


MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS

# Settings that stand for one thing, the finest unit first, each with its milliseconds per unit.
ROLL = {"log.roll.ms": 1, "log.roll.hours": HOUR_MS}
ROLL_JITTER = {"log.roll.jitter.ms": 1, "log.roll.jitter.hours": HOUR_MS}
RETENTION = {
    "log.retention.ms": 1,
    "log.retention.minutes": MINUTE_MS,
    "log.retention.hours": HOUR_MS,
}
FLUSH = {"log.flush.interval.ms": 1, "log.flush.scheduler.interval.ms": 1}

SAME_THING: dict[str, dict[str, int]] = {
    **dict.fromkeys(ROLL, ROLL),
    **dict.fromkeys(ROLL_JITTER, ROLL_JITTER),
    **dict.fromkeys(RETENTION, RETENTION),
    # The scheduler's interval is a default for the other, not the other way round.
    "log.flush.interval.ms": FLUSH,
}


# A setting of one listener; what its mechanisms have of their own has the mechanism before it.
OF_LISTENER = re.compile(r"listener\.name\.[^.]*\.(.*)", re.DOTALL)
OF_MECHANISM = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)


def synonyms_of(name: str) -> list[str]:
    """The broker settings that say the same as this one, itself among them, first wins."""
    match = OF_LISTENER.fullmatch(name)
    if match is not None:
        base = next((each for each in OF_MECHANISM if match[1].endswith(each)), match[1])
        return [name, base]
    return list(SAME_THING.get(name, (name,)))
