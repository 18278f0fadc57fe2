"""The assignor of streams groups, `sticky`: which member runs which task (KIP-1071).

Owns Apache Kafka's rule: a task stays where it was, then goes to who kept a copy of it, then to the
process with the least to do for each of its members; copies go where no other one is. Among equals
the first by id is taken, where Apache Kafka's order is that of a hash table. Pure.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kafkalite.coordinators.groups.assignors import Rest
from kafkalite.coordinators.groups.streams_group import Places, Tasks
from kafkalite.coordinators.groups.streams_topology import ConfiguredSubtopology
from kafkalite.env.slicing import Steps

Task = tuple[str, int]
# To place a task takes as long as so many looks.
LOOKS = 4


@dataclass(slots=True)
class StreamsCandidate:
    """A member as the assignor sees it."""

    member_id: str
    process_id: str
    former: Tasks


def assign_sticky(
    candidates: Iterable[StreamsCandidate],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    standby_replicas: int,
) -> Steps[dict[str, Tasks]]:
    ordered = sorted(candidates, key=lambda one: one.member_id)
    board = _Board(ordered, subtopologies, standby_replicas)
    if ordered:
        yield from board.look_back(ordered)
        yield from board.place_active()
        if standby_replicas > 0:
            yield from board.place_standby()
    return (yield from board.tasks())


@dataclass(slots=True)
class _Process:
    """The members of one process, of which each task may be with one only."""

    process_id: str
    counts: dict[str, int] = field(default_factory=dict)  # of tasks, by member
    held: set[Task] = field(default_factory=set)
    by_load: list[tuple[int, int, str]] | None = None  # a heap, while it holds

    @property
    def load(self) -> float:
        return len(self.held) / len(self.counts)

    def add(self, member_id: str, task: Task) -> int:
        self.by_load = None
        return self._add(member_id, task)

    def add_to_least_loaded(self, task: Task) -> tuple[str, int]:
        """The member that got it, and how many it has then."""
        if self.by_load is None:
            members = enumerate(self.counts.items())
            self.by_load = [(count, place, name) for place, (name, count) in members]
            heapq.heapify(self.by_load)
        _, place, name = self.by_load[0]
        count = self._add(name, task)
        heapq.heapreplace(self.by_load, (count, place, name))
        return name, count

    def _add(self, member_id: str, task: Task) -> int:
        self.held.add(task)
        self.counts[member_id] += 1
        return self.counts[member_id]


@dataclass(slots=True)
class _Quota:
    """How many tasks a member may have, so that all get about as many."""

    tasks: int
    members: int

    @property
    def each(self) -> int:
        return -(-self.tasks // self.members) if self.members else 0

    def took(self, count: int) -> None:
        """A member that is full counts no more."""
        if count == self.each:
            self.members -= 1
            self.tasks -= count


class _Board:
    """Tasks while they are given out."""

    def __init__(
        self,
        candidates: list[StreamsCandidate],
        subtopologies: Mapping[str, ConfiguredSubtopology],
        standby_replicas: int,
    ) -> None:
        self.replicas = standby_replicas
        self.all = [(name, index) for name, one in subtopologies.items()
                    for index in range(one.tasks)]  # fmt: skip
        self.stateful = [task for task in self.all if subtopologies[task[0]].is_stateful]
        copies = len(self.stateful) * standby_replicas
        self.active_quota = _Quota(len(self.all), len(candidates))
        self.total_quota = _Quota(len(self.all) + copies, len(candidates))
        self.processes: dict[str, _Process] = {}
        self.process_of: dict[str, _Process] = {}
        for one in sorted(candidates, key=lambda one: (one.process_id, one.member_id)):
            process = self.processes.setdefault(one.process_id, _Process(one.process_id))
            process.counts[one.member_id] = 0
            self.process_of[one.member_id] = process
        self.had_active: dict[Task, str] = {}
        self.had_standby: dict[Task, list[str]] = {}
        self.active: dict[str, list[Task]] = {one.member_id: [] for one in candidates}
        self.standby: dict[str, list[Task]] = {one.member_id: [] for one in candidates}
        self._rest = Rest()

    def look_back(self, candidates: list[StreamsCandidate]) -> Steps[None]:
        for one in candidates:
            for task in _each(one.former.active):
                self.had_active[task] = one.member_id
            for task in _each(one.former.standby):
                self.had_standby.setdefault(task, []).append(one.member_id)
            if self._rest.after(1 + _count(one.former.active) + _count(one.former.standby)):
                yield

    # -- active tasks ------------------------------------------------------------------------------

    def place_active(self) -> Steps[None]:
        tasks = sorted(self.all, key=lambda task: (task[1], task[0]))
        tasks = yield from self._keep(tasks)
        tasks = yield from self._promote(tasks)
        heap = self._by_load()
        for task in sorted(tasks):
            _, place, process = heap[0]
            name, count = process.add_to_least_loaded(task)
            self._took_active(name, task, count)
            heapq.heapreplace(heap, (process.load, place, process))
            if self._rest.after(LOOKS):
                yield

    def _keep(self, tasks: list[Task]) -> Steps[list[Task]]:
        """Where a task was active it is again; returns the others."""
        left = []
        for task in tasks:
            if not self._give_active(self.had_active.get(task), task):
                left.append(task)
            if self._rest.after(LOOKS):
                yield
        return left

    def _promote(self, tasks: list[Task]) -> Steps[list[Task]]:
        """Who kept a copy has the state already."""
        left = []
        for task in tasks:
            if not self._give_active(self._least_loaded(self.had_standby.get(task, [])), task):
                left.append(task)
            if self._rest.after(LOOKS):
                yield
        return left

    def _give_active(self, member_id: str | None, task: Task) -> bool:
        if member_id is None:
            return False
        process = self.process_of[member_id]
        if process.counts[member_id] >= self.active_quota.each:
            return False
        self._took_active(member_id, task, process.add(member_id, task))
        return True

    def _took_active(self, member_id: str, task: Task, count: int) -> None:
        self.active[member_id].append(task)
        self.active_quota.took(count)
        self.total_quota.took(count)

    # -- copies ------------------------------------------------------------------------------------

    def place_standby(self) -> Steps[None]:
        missing: list[tuple[Task, int]] = []
        for task in sorted(self.stateful, key=lambda task: (task[1], task[0]), reverse=True):
            for placed in range(self.replicas):
                if not self._keep_copy(task):
                    missing.append((task, self.replicas - placed))
                    break
            if self._rest.after(LOOKS * (1 + self.replicas)):
                yield
        heap = self._by_load()
        for task, count in sorted(missing, reverse=True):
            for _ in range(count):
                if not self._place_copy(heap, task):
                    break
            if self._rest.after(LOOKS * count):
                yield

    def _keep_copy(self, task: Task) -> bool:
        """With who was active before, else with who had a copy."""
        before = self.had_active.get(task)
        is_free = before is not None and task not in self.process_of[before].held
        if is_free and self._give_copy(before, task):
            return True
        return self._give_copy(self._least_loaded(self.had_standby.get(task, []), task), task)

    def _give_copy(self, member_id: str | None, task: Task) -> bool:
        if member_id is None:
            return False
        process = self.process_of[member_id]
        if process.counts[member_id] >= self.total_quota.each:
            return False
        self._took_copy(member_id, task, process.add(member_id, task))
        return True

    def _took_copy(self, member_id: str, task: Task, count: int) -> None:
        self.standby[member_id].append(task)
        self.total_quota.took(count)

    def _place_copy(self, heap: list[tuple[float, int, _Process]], task: Task) -> bool:
        """With the process that has least to do and has not got the task; false if all have."""
        passed = []
        is_placed = False
        while heap and not is_placed:
            entry = heapq.heappop(heap)
            _, place, process = entry
            if task not in process.held:
                name, count = process.add_to_least_loaded(task)
                self._took_copy(name, task, count)
                entry = (process.load, place, process)
                is_placed = True
            passed.append(entry)
        for entry in passed:
            heapq.heappush(heap, entry)
        return is_placed

    # -- both --------------------------------------------------------------------------------------

    def _by_load(self) -> list[tuple[float, int, _Process]]:
        """A heap of all processes."""
        heap = [(one.load, place, one) for place, one in enumerate(self.processes.values())]
        heapq.heapify(heap)
        return heap

    def _least_loaded(self, members: list[str], task: Task | None = None) -> str | None:
        """Of those that had a task, who has least to do; as with Apache Kafka nobody, if the
        process of the first has it."""
        if not members:
            return None
        best, first = members[0], self.process_of[members[0]]
        load, count = first.load, first.counts[best]
        for name in members[1:]:
            process = self.process_of[name]
            is_free = task is None or task not in process.held
            if is_free and process.load < load and process.counts[name] < count:
                best, load, count = name, process.load, process.counts[name]
        return None if task is not None and task in first.held else best

    def tasks(self) -> Steps[dict[str, Tasks]]:
        found: dict[str, Tasks] = {}
        for name in self.active:
            found[name] = Tasks(_places(self.active[name]), _places(self.standby[name]), {})
            if self._rest.after(1 + len(self.active[name]) + len(self.standby[name])):
                yield
        return found


def _each(places: Places) -> Iterable[Task]:
    return ((name, index) for name, indexes in places.items() for index in indexes)


def _count(places: Places) -> int:
    return sum(map(len, places.values()))


def _places(tasks: list[Task]) -> Places:
    places: dict[str, list[int]] = {}
    for name, index in sorted(tasks):
        places.setdefault(name, []).append(index)
    return {name: tuple(indexes) for name, indexes in places.items()}
