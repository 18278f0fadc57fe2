"""Assignors: every partition once, even, sticky, and beside a replica when that costs nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.coordinators.groups.assignors import (
    Candidate,
    Topics,
    assign_range,
    assign_uniform,
)
from kafkalite.coordinators.groups.consumer_group import Target
from kafkalite.coordinators.groups.topics import TopicView
from kafkalite.env.slicing import finish


def topics(*counts: int) -> Topics:
    ids = [bytes([number]) * 16 for number in range(1, len(counts) + 1)]
    return {
        topic_id: TopicView(f"t{number}", topic_id, count)
        for number, (topic_id, count) in enumerate(zip(ids, counts, strict=True))
    }


def members(count: int, of: Topics, former: dict[str, Target] | None = None) -> list[Candidate]:
    names = [f"m{number}" for number in range(count)]
    return [
        Candidate(name, None, None, frozenset(of), (former or {}).get(name, {})) for name in names
    ]


def places(target: Target) -> set[tuple[bytes, int]]:
    return {(topic_id, index) for topic_id, indexes in target.items() for index in indexes}


def check_whole(targets: dict[str, Target], of: Topics, among: list[Candidate]) -> None:
    """Every partition that somebody subscribes to has exactly one owner, a subscriber."""
    wanted = {
        (view.topic_id, index)
        for view in of.values()
        if any(view.topic_id in one.topic_ids for one in among)
        for index in range(view.partition_count)
    }
    assert set().union(*map(places, targets.values()), set()) == wanted
    assert sum(len(places(target)) for target in targets.values()) == len(wanted)
    for one in among:
        assert targets[one.member_id].keys() <= one.topic_ids


counts = st.lists(st.integers(0, 12), min_size=1, max_size=4)


@given(counts, st.integers(1, 9))
def test_uniform_is_even_and_whole(sizes: list[int], member_count: int) -> None:
    of = topics(*sizes)
    among = members(member_count, of)
    targets = finish(assign_uniform(among, of))
    check_whole(targets, of, among)
    loads = [len(places(target)) for target in targets.values()]
    assert max(loads) - min(loads) <= 1


@given(counts, st.integers(1, 9), st.integers(1, 9))
def test_uniform_moves_only_what_evenness_asks_for(
    sizes: list[int], before: int, after: int
) -> None:
    of = topics(*sizes)
    first = finish(assign_uniform(members(before, of), of))
    second = finish(assign_uniform(members(after, of, first), of))
    total = sum(sizes)
    staying = [f"m{number}" for number in range(min(before, after))]
    kept = sum(len(places(first[name]) & places(second[name])) for name in staying)
    fair = [len(places(second[name])) for name in staying]
    had = [len(places(first[name])) for name in staying]
    assert kept == sum(min(pair) for pair in zip(fair, had, strict=True))
    assert finish(assign_uniform(members(after, of, second), of)) == second
    assert total == sum(len(places(target)) for target in second.values())


@given(st.data())
def test_different_subscriptions_are_respected(data: st.DataObject) -> None:
    of = topics(*data.draw(counts))
    among = [
        Candidate(
            f"m{number}",
            None,
            None,
            frozenset(data.draw(st.sets(st.sampled_from(sorted(of)), max_size=3))),
        )
        for number in range(data.draw(st.integers(1, 6)))
    ]
    for assign in (assign_uniform, assign_range):
        check_whole(finish(assign(among, of)), of, among)


@given(counts, st.integers(1, 9))
def test_range_gives_contiguous_ranges(sizes: list[int], member_count: int) -> None:
    of = topics(*sizes)
    among = members(member_count, of)
    targets = finish(assign_range(among, of))
    check_whole(targets, of, among)
    for target in targets.values():
        for indexes in target.values():
            assert indexes == tuple(range(indexes[0], indexes[0] + len(indexes)))


def test_range_keeps_static_members_in_the_order_of_their_instances() -> None:
    of = topics(4)
    topic_id = next(iter(of))
    among = [
        Candidate("z", "b", None, frozenset(of)),
        Candidate("a", None, None, frozenset(of)),
        Candidate("y", "a", None, frozenset(of)),
    ]
    targets = finish(assign_range(among, of))
    found = {name: target.get(topic_id, ()) for name, target in targets.items()}
    assert found == {"y": (0, 1), "z": (2,), "a": (3,)}


@pytest.mark.parametrize("rack", ["east", "west"])
def test_uniform_prefers_a_member_beside_the_replica(rack: str) -> None:
    racks = tuple((name,) for name in ("east", "west", "east", "west"))
    topic_id = b"\1" * 16
    of = {topic_id: TopicView("t", topic_id, 4, racks)}
    among = [Candidate(name, None, name, frozenset(of)) for name in ("west", "east")]
    targets = finish(assign_uniform(among, of))
    near = [index for index in range(4) if rack in racks[index]]
    assert list(targets[rack][topic_id]) == near
