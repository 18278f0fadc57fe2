"""A runner that knows of restarts: what Apache Kafka does otherwise after one, by its own ways.

Each way is a row with its reason, as in the table of allowed differences, which is not about
restarts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kafkalite.records.batch import CONTROL_BIT
from kafkalite.testing.comparison import differences
from kafkalite.testing.comparison.comparing import ABSENT, Difference
from tests.differential.generating import Step
from tests.differential.memory import Memory
from tests.differential.running import LEFT_PREPARED, Outcome, Runner

MARKER = "responses[].partitions[].records[].records[].value"
ACTIVE_PRODUCER = "topics[].partitions[].active_producers[].coordinator_epoch"
TOPIC_CONFIG = 1  # a source of settings
COMPACTED_ONCE = "apples-RUN"  # as it was made when the conversation began
# What a request must not name after a restart: one of the two may not have come to it.
EPOCHS = frozenset(
    "current_leader_epoch leader_epoch last_fetched_epoch committed_leader_epoch".split()
)


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    reason: str
    holds: Callable[[Difference], bool]
    parts_states: bool = True

    def covers(self, difference: Difference) -> bool:
        try:
            return self.holds(difference)
        except (TypeError, KeyError, AttributeError, IndexError):
            return False  # values that a condition makes no sense for do not fulfil it


class Restarting(Runner):
    """`has_restarted` speaks of the conversation, `is_old` of the brokers."""

    has_restarted = is_old = has_parted = False

    def begin(self) -> None:
        self.has_restarted = self.has_parted = False
        self.apart: Counter[str] = Counter()
        super().begin()

    def _step(self, step: Step, outcome: Outcome, memory: Memory | None) -> None:
        super()._step(step, outcome, memory)
        self.apart.update(each.name for each in self._rows)
        self.apart[LEFT_PREPARED] += self.is_left_prepared
        self.has_parted = (
            self.has_parted
            or self.is_left_prepared
            or any(each.parts_states for each in self._rows)
        )

    def _compare(self, step: Step, ours: Any, theirs: Any) -> list[Difference]:
        rows = ROWS if self.has_restarted else ROWS_OF_THE_OLD if self.is_old else ()
        self._rows: list[Row] = []  # of the last comparison
        rest = []
        for each in super()._compare(step, ours, theirs):
            row = next((row for row in rows if row.covers(each)), None)
            if row is None:
                rest.append(each)
            else:
                self._rows.append(row)
        return rest


def _is_epoch(difference: Difference) -> bool:
    is_one = difference.path.endswith((".leader_epoch", "committed_leader_epoch"))
    return is_one and 0 <= difference.ours < difference.theirs


def _is_epoch_of_a_coordinator(difference: Difference) -> bool:
    if difference.path == ACTIVE_PRODUCER:
        return 0 <= difference.ours < difference.theirs
    if difference.path != MARKER or not difference.around[-2][0]["attributes"] & CONTROL_BIT:
        return False
    pair = [int.from_bytes(each[2:]) for each in (difference.ours, difference.theirs)]
    return 0 <= pair[0] < pair[1]


def _is_group_of_nobody(difference: Difference) -> bool:
    theirs = difference.theirs
    return (
        difference.signature == ("ListGroups", "groups[]")
        and difference.ours is ABSENT
        and (theirs["protocol_type"], theirs.get("group_state", "Empty")) == ("", "Empty")
    )


def _is_setting_that_came_back(difference: Difference) -> bool:
    if not difference.path.startswith("results[].configs[]."):
        return False
    ours, theirs = difference.beside("config_source")
    return theirs == TOPIC_CONFIG != ours


def _is_refused_by_a_policy_that_came_back(difference: Difference) -> bool:
    """A record without a key; the first topic of that name was compacted."""
    if difference.api != "Produce" or difference.around[-2][0]["name"] != COMPACTED_ONCE:
        return False
    return difference.beside("error_code") == ("NONE", "INVALID_RECORD")


def _is_lost_credential(difference: Difference) -> bool:
    is_one = difference.signature[0] == "DescribeUserScramCredentials"
    if is_one and difference.path in ("results[].credential_infos[]", "results[]"):
        return difference.theirs is ABSENT  # one of two mechanisms, or a user where all were asked
    told = difference.beside("error_code") if is_one and difference.around else ()
    return told == ("NONE", "RESOURCE_NOT_FOUND")


def _is_allowed_but_for_an_epoch(difference: Difference) -> bool:
    """By a row of the table that asks for two batches which are alike in all else."""
    if difference.api != "Fetch" or differences.explain(difference) is not None:
        return False
    around = tuple((ours, _of_epochs(theirs, ours)) for ours, theirs in difference.around)
    return differences.explain(replace(difference, around=around)) is not None


def _of_epochs(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    """With the epochs of the other side in batches that are not of an earlier leader there."""
    if "records" not in theirs:
        return theirs
    if "leader_epoch" not in theirs:  # a partition
        batches = zip(theirs["records"], ours["records"], strict=False)
        return {**theirs, "records": [_of_epochs(*each) for each in batches]}
    is_later = 0 <= ours["leader_epoch"] < theirs["leader_epoch"]
    return {**theirs, "leader_epoch": ours["leader_epoch"]} if is_later else theirs


ROWS_OF_THE_OLD = (
    Row(
        "after a restart: epoch of a coordinator",
        "In the markers that it wrote, and what a log tells of them: the epoch of the leader of its"
        " own log, see below.",
        _is_epoch_of_a_coordinator,
        parts_states=False,
    ),
)
ROWS = (
    *ROWS_OF_THE_OLD,
    Row(
        "after a restart: epoch of a leader",
        "Each start is a new epoch of leaders, and brokers count up to it in steps of their own:"
        " Apache Kafka by two; kafkalite by one after a kill, and by none where a clean stop has"
        " left nothing that a leader could have missed.",
        _is_epoch,
        parts_states=False,
    ),
    Row(
        "after a restart: batch of another epoch",
        "What the table allows of two batches that are alike otherwise, of which each has the epoch"
        " of its leader.",
        _is_allowed_but_for_an_epoch,
        parts_states=False,
    ),
    Row(
        "after a restart: group of nobody",
        "A group of which only a member's id was told: Apache Kafka records it, kafkalite does"
        " not.",
        _is_group_of_nobody,
    ),
    Row(
        "after a restart: setting that came back",
        "Of a topic that was deleted and made again: Apache Kafka's new start forgets the"
        " deletion.",
        _is_setting_that_came_back,
    ),
    Row(
        "after a restart: policy that came back",
        "The same, where it is compaction: records without a key are refused.",
        _is_refused_by_a_policy_that_came_back,
    ),
    Row(
        "after a restart: credential that went",
        "Of a user; Apache Kafka's new start may lose some when those of another were deleted.",
        _is_lost_credential,
    ),
)


def without_epochs_of_coordinators(request: Any) -> None:
    """A marker that both take or both refuse, whatever those before it tell."""
    for marker in request.markers:
        marker.coordinator_epoch = -1


def without_epochs(value: Any) -> None:
    """Nothing in a request names an epoch that one of the two may not have come to."""
    for each in value if isinstance(value, list) else [value]:
        if hasattr(each, "__slots__") and not hasattr(each, "build"):
            for name in each.__slots__:
                if name in EPOCHS:
                    setattr(each, name, -1)
                else:
                    without_epochs(getattr(each, name))
