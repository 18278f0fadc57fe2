"""Where a container keeps its data: in the first place that somebody has mounted, of those where
the users of each image mount theirs.

A volume without a name is the engine's own, for a VOLUME of the image; it goes with the container.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

MOUNTS = "/proc/self/mountinfo"
DEFAULT = "/var/lib/kafka/data"
# Where a volume is mounted, and the directory in it. The last ones are Apache Kafka's own defaults.
PLACES = {
    "/var/lib/kafka/data": "/var/lib/kafka/data",
    "/bitnami/kafka": "/bitnami/kafka/data",
    "/bitnami": "/bitnami/kafka/data",
    "/var/lib/kafka": "/var/lib/kafka/logs",
    "/kafka": "/kafka/logs",
    "/kafka/data": "/kafka/data",
    "/var/lib/kafkalite": "/var/lib/kafkalite",
    "/tmp/kraft-combined-logs": "/tmp/kraft-combined-logs",
    "/tmp/kafka-logs": "/tmp/kafka-logs",
}
_NAMELESS = re.compile(r".*/volumes/[0-9a-f]{64}(/_data)?")


def mounted(mountinfo: str) -> set[str]:
    """Where something is mounted that outlives the container, by the system's own table."""
    found: dict[str, str] = {}
    for line in mountinfo.splitlines():
        _, _, _, source, place, *_ = line.split(" ")
        found[place] = source  # what is mounted last is what is seen
    return {place for place, source in found.items() if not _NAMELESS.fullmatch(source)} - {"/"}


def data_directory(mounts: Iterable[str]) -> str:
    """The directory for the data, when nobody names one."""
    there = set(mounts)
    return next((inside for place, inside in PLACES.items() if place in there), DEFAULT)


def outlives(directory: str, mounts: Iterable[str]) -> bool:
    """Whether what lies there is still there when the container has gone."""
    return any(f"{directory}/".startswith(f"{place}/") for place in mounts)


def warning(found: Mapping[str, str], mounts: Iterable[str]) -> str | None:
    """What is to be said of directories that go with the container."""
    there = set(mounts)
    named = [each.strip() for each in found.get("log.dirs", "").split(",")]
    lost = [each for each in named if each and not outlives(each, there)]
    if not lost:
        return None
    return (
        f"data lies in {', '.join(lost)} and goes with this container: no volume is mounted there"
    )
