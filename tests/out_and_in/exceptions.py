"""What a start may tell in another way because Apache Kafka does so itself, with its own directory.

Owns one named condition for each, as narrow as its reason. Whatever else differs is a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass

from tests.compat.brokers import APACHE_KAFKA
from tests.out_and_in.observing import EARLIEST, LATEST, Answers

OFFSETS = "offsets of partitions"


@dataclass(frozen=True, slots=True)
class Telling:
    """One answer before and after a switch, and what it is judged by."""

    area: str
    label: str
    before: Answers  # of the area
    after: Answers
    teller: str  # before the switch
    moved: Set[str]  # the partitions whose logs it had moved since its start


def moved_without_a_record(one: Telling) -> bool:
    """Apache Kafka gives a copy the leader epochs of the batches that it copies. The copy of a log
    that has none takes the log's place without any, so the earliest offset has no epoch until the
    next start: that begins an epoch at the log's end, which is its start."""
    partition, _, rest = one.label.partition(" ")
    what, _, isolation = rest.partition(" ")
    if one.area != OFFSETS or what != str(EARLIEST):
        return False
    if one.teller != APACHE_KAFKA or partition not in one.moved:
        return False
    was, is_now = dict(one.before[one.label]), dict(one.after.get(one.label, ()))
    end = dict(one.before[f"{partition} {LATEST} {isolation}"])["offset"]
    is_empty, is_begun = was["offset"] == end, is_now.get("leader_epoch") == 0
    return is_empty and is_begun and was == {**is_now, "leader_epoch": -1}


EXCEPTIONS: dict[str, Callable[[Telling], bool]] = {
    "no epoch of a log that Apache Kafka moved without a record": moved_without_a_record,
}


def exception_for(one: Telling) -> str | None:
    """The name of the first that holds."""
    return next((name for name, holds in EXCEPTIONS.items() if holds(one)), None)
