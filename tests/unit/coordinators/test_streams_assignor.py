"""The sticky assignor of streams groups: every task once, about as many for each, what can stay
stays, and copies where nothing else of the task is."""

from __future__ import annotations

from random import Random

import pytest

from kafkalite.coordinators.groups.streams_assignor import StreamsCandidate, assign_sticky
from kafkalite.coordinators.groups.streams_group import NO_TASKS, Places, Tasks
from kafkalite.coordinators.groups.streams_topology import ConfiguredSubtopology, InternalTopic
from kafkalite.env.slicing import finish

Task = tuple[str, int]
Targets = dict[str, Tasks]


def topology(*counts: int, stateful: bool = True) -> dict[str, ConfiguredSubtopology]:
    kept = (InternalTopic("kept", 1, 0, {}),) if stateful else ()
    return {
        str(number): ConfiguredSubtopology(count, ("t",), (), (), kept)
        for number, count in enumerate(counts)
    }


def assigned(
    processes: dict[str, str], former: Targets, what: dict[str, ConfiguredSubtopology],
    replicas: int = 0,
) -> Targets:  # fmt: skip
    candidates = [
        StreamsCandidate(name, process, former.get(name, NO_TASKS))
        for name, process in processes.items()
    ]
    return finish(assign_sticky(candidates, what, replicas))


def each(places: Places) -> set[Task]:
    return {(name, index) for name, indexes in places.items() for index in indexes}


def check(
    targets: Targets, processes: dict[str, str], what: dict[str, ConfiguredSubtopology],
    replicas: int,
) -> None:  # fmt: skip
    every = {(name, index) for name, one in what.items() for index in range(one.tasks)}
    active = [task for tasks in targets.values() for task in each(tasks.active)]
    assert sorted(active) == sorted(every)
    counts = [len(each(tasks.active)) for tasks in targets.values()]
    assert max(counts) <= -(-len(every) // len(targets)) + 1
    held: dict[str, list[Task]] = {process: [] for process in processes.values()}
    for name, tasks in targets.items():
        held[processes[name]] += [*each(tasks.active), *each(tasks.standby)]
    for tasks_of_process in held.values():
        assert len(set(tasks_of_process)) == len(tasks_of_process)
    copies = sum(len(each(tasks.standby)) for tasks in targets.values())
    assert copies == len(every) * min(replicas, len(held) - 1)


@pytest.mark.parametrize("seed", range(30))
def test_members_come_and_go(seed: int) -> None:
    dice = Random(seed)
    what = topology(*(dice.randint(1, 9) for _ in range(dice.randint(1, 4))))
    replicas, processes, targets = dice.randint(0, 2), dict[str, str](), Targets()
    for number in range(12):
        if processes and dice.random() < 0.4 and len(processes) > 1:
            del processes[dice.choice(list(processes))]
        else:
            processes[f"m{number}"] = f"p{dice.randint(0, 3)}"
        former = {name: targets[name] for name in processes if name in targets}
        targets = assigned(processes, former, what, replicas)
        check(targets, processes, what, replicas)
        assert assigned(processes, targets, what, replicas).keys() == processes.keys()


def test_what_a_member_has_it_keeps() -> None:
    what, processes = topology(6), {"a": "1", "b": "2", "c": "3"}
    before = assigned(processes, {}, what)
    assert assigned(processes, before, what) == before
    less = assigned({"a": "1", "b": "2"}, before, what)
    for name in ("a", "b"):
        assert each(before[name].active) <= each(less[name].active)


def test_who_had_a_copy_takes_over() -> None:
    what, processes = topology(4), {"a": "1", "b": "2"}
    before = assigned(processes, {}, what, 1)
    after = assigned({"b": "2"}, before, what, 1)
    assert each(before["b"].standby) <= each(after["b"].active)
    assert after["b"].standby == {}


def test_what_keeps_no_state_has_no_copies() -> None:
    targets = assigned({"a": "1", "b": "2"}, {}, topology(4, stateful=False), 1)
    assert [tasks.standby for tasks in targets.values()] == [{}, {}]
