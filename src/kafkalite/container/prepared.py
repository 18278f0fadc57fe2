"""What an environment makes of a broker: settings, topics, the cluster's id, and what is to be
said of them. Reads nothing itself; what it is given stays as it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kafkalite.container.directories import data_directory, warning
from kafkalite.container.listeners import ANY_ADDRESS, PORT, complete_listeners
from kafkalite.container.promises import refuse_protections
from kafkalite.container.topics import topics
from kafkalite.container.variables import settings, unknown

# Above the broker's own settings, in the order in which they count.
CLUSTER_IDS = ("CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID")
LISTENERS = f"PLAINTEXT://{ANY_ADDRESS}:{PORT}"


@dataclass(slots=True)
class Prepared:
    """A broker that is to be."""

    settings: dict[str, str]
    topics: list[str]
    notes: list[str] = field(default_factory=list)


def prepare(
    environment: Mapping[str, str],
    file: Mapping[str, str],
    mounts: Iterable[str],
    said: Collection[str] = frozenset(),
) -> Prepared:
    """Settings of the file, above them those of the environment, and defaults for what neither
    they nor the arguments, which have `said` some settings, name. Raises InvalidSetting."""
    refuse_protections(environment)
    found = {**file, **settings(environment)}
    notes = _drop_unknown(found)
    notes += complete_listeners(found, environment)
    if "listeners" not in said:
        found.setdefault("listeners", LISTENERS)
    if "log.dirs" not in said and "log.dir" not in found:
        found.setdefault("log.dirs", data_directory(mounts))
        lost = warning(found, mounts)
        notes += [lost] if lost else []
    wanted = list(topics(environment))
    notes += [few for _, few in wanted if few]
    return Prepared(found, [topic for topic, _ in wanted], notes)


def _drop_unknown(found: dict[str, str]) -> list[str]:
    passed_over = dict(unknown(found))
    for name in passed_over:
        del found[name]
    if not passed_over:
        return []
    said = (name if near is None else f"{name} (the nearest is {near})"
            for name, near in passed_over.items())  # fmt: skip
    return [f"not of a broker's settings, and ignored: {', '.join(said)}"]


def cluster_id(environment: Mapping[str, str]) -> str | None:
    """The id that a new cluster is to have; one that has data keeps its own."""
    ids = (environment.get(variable, "").strip() for variable in CLUSTER_IDS)
    return next(filter(None, ids), None)
