"""What a share group is allowed, as handlers and shared partitions ask for it.

Owns the names of the settings; their values are the group's, or the broker's for all groups, at the
moment of the question.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kafkalite.config.setting import Value
from kafkalite.env.dataclasses import dataclass

_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]+)D)?"
    r"(?:T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)
BY_DURATION = "by_duration:"


@dataclass(slots=True, frozen=True)
class ShareSettings:
    # A setting of a group, by the group's id and the setting's name.
    value: Callable[[str, str], Value]

    def lock_ms(self, group_id: str) -> int:
        return self._number(group_id, "share.record.lock.duration.ms")

    def most_deliveries(self, group_id: str) -> int:
        return self._number(group_id, "share.delivery.count.limit")

    def most_in_flight(self, group_id: str) -> int:
        return self._number(group_id, "share.partition.max.record.locks")

    def may_renew(self, group_id: str) -> bool:
        return self.value(group_id, "share.renew.acknowledge.enable") is True

    def is_committed_only(self, group_id: str) -> bool:
        return self.value(group_id, "share.isolation.level") == "read_committed"

    def begins_at(self, group_id: str) -> str:
        """`latest`, `earliest`, or `by_duration:` and how long ago."""
        return str(self.value(group_id, "share.auto.offset.reset"))

    def _number(self, group_id: str, name: str) -> int:
        value = self.value(group_id, name)
        assert isinstance(value, int), f"{name} is not a number: {value!r}"
        return value


def duration_ms(text: str) -> int:
    """Of a duration as Java writes it."""
    match = _DURATION.fullmatch(text)
    assert match is not None, f"{text!r} is not a duration"
    days, hours, minutes, seconds = (int(each or 0) for each in match.groups()[1:5])
    parts = int((match[6] or "").ljust(3, "0")[:3])
    total = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000
    total += -parts if (match[5] or "").startswith("-") else parts
    return -total if match[1] == "-" else total
