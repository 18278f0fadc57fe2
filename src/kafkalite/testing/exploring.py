"""A broker that makes, by a seed, the choices that a real one may make at any time.

    with kafka.explore(seed=7) as explorer:
        application()
    print(explorer.schedule)

Owns which request meets what, by its position among those that are like it and never by time: so a
program that asks the same meets the same. What is legal where is legal.py's. Invariant: one place
meets two acts in a row at most, so that whoever tries again comes through.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kafkalite.env.randomness import seeded_random
from kafkalite.testing import legal
from kafkalite.testing.chosen import Deed, Explored, World
from kafkalite.testing.faults import api_name
from kafkalite.testing.fetched import first_offset
from kafkalite.testing.legal import KINDS, Point, Told
from kafkalite.testing.schedule import Place, Schedule, Step, client_name
from kafkalite.testing.where import GROUP, TRANSACTIONAL, names_in

if TYPE_CHECKING:
    from random import Random

    from kafkalite.server.terms import Outcome
    from kafkalite.testing.understanding import Request

_LOG = logging.getLogger(__name__)
RATE = 0.1
MOST_IN_A_ROW = 2
_BY_PARTITIONS = (legal.PRODUCE, legal.LIST_OFFSETS)


class Explorer:
    """From `kafka.explore()` to `stop()`, or to the end of a `with`."""

    def __init__(
        self,
        explored: Explored,
        seed: int | str | None = None,
        *,
        kinds: Iterable[str] | None = None,
        rate: float = RATE,
        schedule: Iterable[Step | Mapping[str, Any]] | None = None,
    ) -> None:
        """Chooses by a seed, or does what a schedule says."""
        if (seed is None) == (schedule is None):
            raise ValueError("explore by a seed=, or do what a schedule= says: one of the two")
        if not 0 <= rate <= 1:
            raise ValueError(f"rate={rate!r}: expected 0 to 1, the share of requests")
        self.seed, self.rate = seed, rate
        self.kinds = kinds_named(kinds)
        self._plan = None if schedule is None else _plan(schedule)
        self._explored = explored
        self._told = Told()
        self._asked: Counter[Place] = Counter()
        self._legal: Counter[tuple[str, Place]] = Counter()
        self._met: Counter[Step] = Counter()  # of the plan: at how many it might have been
        self._in_a_row: Counter[Place] = Counter()
        self._done: list[Step] = []

    def __repr__(self) -> str:
        what = "a schedule" if self._plan is not None else f"seed {self.seed!r}"
        return f"<Explorer by {what}: {len(self._done)} acts so far>"

    def __enter__(self) -> Explorer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def schedule(self) -> Schedule:
        """What was done so far; `kafka.explore(schedule=…)` does it again."""
        return Schedule(list(self._done))

    def stop(self) -> None:
        """Nothing more is chosen."""
        if self._explored.chooser is self:
            self._explored.chooser = None

    # --- on the loop ------------------------------------------------------------------------------

    def concerns(self, api: str) -> bool:
        return api in legal.CONCERNED

    def told(self, asked: Request, outcome: Outcome) -> None:
        self._told.note(asked, outcome)

    def choose(self, asked: Request, world: World) -> Deed | None:
        """What becomes of a request; nothing out of the common when it is not known what it is."""
        point = legal.point_of(asked, world, self._told)
        kinds = legal.kinds_at(point, self.kinds)
        if not kinds:
            return None
        place = _place_of(point)
        kind = self._drawn(place, kinds) if self._plan is None else self._planned(place, kinds)
        for each in kinds:
            self._legal[each, place] += 1
        if kind is None:
            return None
        number = self._legal[kind, place]
        step = Step(kind=kind, number=number, api=place.api, of=place.of, by=place.by)
        self._done.append(step)
        _LOG.debug("explored: %s", step)
        return KINDS[kind].deed(point)

    def _drawn(self, place: Place, kinds: list[str]) -> str | None:
        self._asked[place] += 1
        number = self._asked[place]
        random = seeded_random(f"{self.seed} {place.api} {place.of} {place.by} {number}")
        is_due = random.random() < self.rate and self._in_a_row[place] < MOST_IN_A_ROW
        self._in_a_row[place] = self._in_a_row[place] + 1 if is_due else 0
        return self._first_of(kinds, place.api, random) if is_due else None

    def _first_of(self, kinds: list[str], api: str, random: Random) -> str:
        """In an order of all that there are for it: what is legal depends on what else there is by
        then, which should change no other choice."""
        names = [name for name in self.kinds if api in KINDS[name].apis]
        return next(name for name in random.sample(names, len(names)) if name in kinds)

    def _planned(self, place: Place, kinds: list[str]) -> str | None:
        """Each step counts all requests that it might be about, whatever becomes of them."""
        assert self._plan is not None
        found = None
        for step in self._plan:
            if any(step.is_at(kind, place) for kind in kinds):
                self._met[step] += 1
                if self._met[step] == step.number:
                    found = found or step.kind
        return found


def kinds_named(wanted: Iterable[str] | None) -> tuple[str, ...]:
    """Those that are wanted, in the order of the table."""
    if wanted is None:
        return tuple(KINDS)
    given = [wanted] if isinstance(wanted, str) else list(wanted)
    if not given:
        raise ValueError("kinds is empty, so nothing could be chosen: leave it out for all")
    for name in given:
        if name not in KINDS:
            raise ValueError(f"{name!r} is no kind: expected some of {', '.join(KINDS)}")
    return tuple(name for name in KINDS if name in given)


def _plan(schedule: Iterable[Step | Mapping[str, Any]]) -> tuple[Step, ...]:
    """Each once: a step that stands there twice is about the same request."""
    steps = dict.fromkeys(Schedule(schedule))
    for step in steps:
        kinds_named([step.kind])
        if isinstance(step.number, bool) or not isinstance(step.number, int) or step.number < 1:
            raise ValueError(f"number={step.number!r} of a step: expected 1 or more")
        if step.api is not None and step.api != api_name(step.api):
            raise ValueError(f"{step.api!r} of a step: expected {api_name(step.api)!r}")
    return tuple(steps)


def _place_of(point: Point) -> Place:
    asked = point.asked
    return Place(asked.api, _subject(point), client_name(asked.client_id))


def _subject(point: Point) -> str:
    """What tells requests of one client apart, whenever they come."""
    asked = point.asked
    if asked.api == legal.FETCH:
        topic, partition = point.served[0]
        return f"{topic}-{partition.partition_index}@{first_offset(partition)}"
    if asked.api not in _BY_PARTITIONS:
        named = dict(names_in(asked.message, asked.version, point.world.known))
        for kind in (TRANSACTIONAL, GROUP):
            if named.get(kind):
                return str(named[kind])
    return ",".join(f"{topic}-{index}" for topic, index in point.partitions())
