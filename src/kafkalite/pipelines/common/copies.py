"""The copies that a mirror makes: names, partitions and settings, kept as the source has them.

Owns which settings go over. A copy that somebody else made is left alone, unless it is adopted:
what this mirror knows to be its own stands in its notes.
"""

import json
import time
from collections.abc import Mapping

from kafkalite.pipelines.common.admin import ClusterError, KafkaAdmin
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.offsets import Offsets
from kafkalite.pipelines.common.outcomes import Different, HeldElsewhere, PipelineError

COPIES_FILE = "copies.json"
ATTEMPTS, PAUSE_S = 100, 0.2

# Of the source's own cluster, or of its own time: they mean nothing, or harm, on the other side.
_LEFT = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "min.insync.replicas",
    "message.timestamp.type",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
    "message.timestamp.difference.max.ms",
    "unclean.leader.election.enable",
    "remote.storage.enable",
    "confluent.placement.constraints",
)
# A copy keeps the timestamps of its records, whatever their age.
_ALWAYS = {"message.timestamp.type": "CreateTime"}


def settings_of_copy(source: Mapping[str, str]) -> dict[str, str]:
    """The step: what a copy is set to."""
    return {k: v for k, v in source.items() if k not in _LEFT} | _ALWAYS


def to_change(source: Mapping[str, str], copy: Mapping[str, str]) -> dict[str, str]:
    """The step: what has to be set so that a copy is as its source."""
    wanted = settings_of_copy(source)
    return {name: value for name, value in wanted.items() if copy.get(name) != value}


class Copies:
    """The copies of one mirror, by the names that `rename` makes."""

    def __init__(
        self, notes: Folder, rename: str, is_syncing: bool, adopt: bool, mirrored: set[str]
    ) -> None:
        self._notes = notes
        self._rename = rename
        self._is_syncing = is_syncing
        self._adopt = adopt
        # Topics of which this checkpoint has copied something, also before it knew of ids.
        self._mirrored = {self.name(topic) for topic in mirrored}
        # The ids of the copies, by name.
        self._ours: dict[str, str] = json.loads(notes.read(COPIES_FILE) or "{}")

    def name(self, topic: str) -> str:
        return self._rename.replace("{topic}", topic)

    def ensure(self, topics: set[str], here: KafkaAdmin, there: KafkaAdmin) -> None:
        """Makes what is missing of the copies of these topics, and sets them as their sources."""
        sources = here.topics(topics)
        settings = here.settings(sources)
        copies = there.topics(self.name(topic) for topic in sources)
        for topic, source in sorted(sources.items()):
            name = self.name(topic)
            if name not in copies:
                self._make(name, source.partitions, settings_of_copy(settings[topic]), there)
                continue
            self._own(name, copies[name].topic_id, there)
            if copies[name].partitions < source.partitions:
                there.add_partitions(name, source.partitions)
                _await(name, source.partitions, there)
            self._sync(settings[topic], name, there)
        self._notes.write(COPIES_FILE, json.dumps(self._ours, sort_keys=True))

    def _make(
        self, name: str, partitions: int, settings: dict[str, str], there: KafkaAdmin
    ) -> None:
        try:
            there.create_topic(name, partitions, settings)
        except ClusterError as refused:
            if "TopicExists" not in str(refused):
                raise
            raise HeldElsewhere(f"somebody else made {name} at the same moment") from None
        self._ours[name] = _await(name, partitions, there)

    def _own(self, name: str, topic_id: str, there: KafkaAdmin) -> None:
        if self._ours.get(name) == topic_id:
            return
        if name in self._ours:
            raise Different(f"{name} was deleted and made anew since it was mirrored to")
        ends = there.ends(there.all_partitions([name]))
        is_ours = self._adopt or name in self._mirrored
        if any(ends.values()) and not is_ours:
            raise HeldElsewhere(
                f"{name} holds {sum(ends.values()):,} records that this checkpoint did not write: "
                "give the checkpoint of the mirror that did, or --adopt to write behind them"
            )
        self._ours[name] = topic_id

    def _sync(self, source: Mapping[str, str], name: str, there: KafkaAdmin) -> None:
        if self._is_syncing:
            change = to_change(source, there.settings([name])[name])
            if change:
                there.alter_settings(name, change)


def _await(name: str, partitions: int, there: KafkaAdmin) -> str:
    """Until the brokers tell of what was just made; gives the topic's id."""
    for _ in range(ATTEMPTS):
        copy = there.topics([name]).get(name)
        if copy is not None and copy.partitions >= partitions:
            return copy.topic_id
        time.sleep(PAUSE_S)
    raise PipelineError(f"{name} was made, but no broker tells of its {partitions} partitions")


def strangers(expected: Offsets, ends: Offsets) -> list[str]:
    """Partitions of copies that do not end where this mirror left them."""
    return [
        f"{topic}-{partition} ends at {ends[topic, partition]:,}, this mirror left it at {end:,}"
        for (topic, partition), end in sorted(expected.items())
        if ends.get((topic, partition), end) != end
    ]
