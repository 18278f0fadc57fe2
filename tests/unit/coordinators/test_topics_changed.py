"""Topics that come, go or grow, and the groups that are told to look again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkalite.coordinators.groups.consumer_group import ConsumerGroup, ConsumerMember
from kafkalite.coordinators.groups.events import TopicsChanged
from kafkalite.coordinators.groups.requests import on_topics_changed
from kafkalite.coordinators.groups.share_group import ShareGroup, ShareMember
from kafkalite.coordinators.groups.turn import Turn

MEMBERS = 5_000
LEAST_STEPS = 15


def consumers(*topics: str) -> ConsumerGroup:
    names = [f"member-{number}" for number in range(MEMBERS)]
    return ConsumerGroup(
        "group",
        members={name: ConsumerMember(name, subscribed_topics=topics) for name in names},
        must_refresh=False,
        must_match=False,
    )


def shares(*topics: str) -> ShareGroup:
    names = [f"member-{number}" for number in range(MEMBERS)]
    members = {name: ShareMember(name, subscribed_topics=topics) for name in names}
    return ShareGroup("group", members=members, must_refresh=False)


def changed(group: Any, names: list[str]) -> int:
    """Tells the group of them; in how many steps."""
    state: Any = SimpleNamespace(
        groups={"group": group}, topics=SimpleNamespace(id_of=lambda name: b"id")
    )
    return sum(1 for _ in on_topics_changed(state, Turn(0), TopicsChanged(names)))


@pytest.mark.parametrize("make", [consumers, shares])
def test_many_members_and_many_topics_are_looked_at_in_steps(make: Any) -> None:
    group = make("orders")
    assert changed(group, [f"topic-{number}" for number in range(100)]) > LEAST_STEPS
    assert not group.must_refresh


@pytest.mark.parametrize("make", [consumers, shares])
def test_who_reads_one_of_them_looks_again(make: Any) -> None:
    group = make("letters", "orders")
    changed(group, ["topic", "orders"])
    assert group.must_refresh
