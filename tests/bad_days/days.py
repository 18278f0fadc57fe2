"""The bad days, and what may come of each: exit codes by run, and a count after every one.

Owns the plays. A play runs a command, does something bad to it at a point, and runs it again until
it is done, or until it has refused by name what cannot be done.
"""

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bad_days.commands import ALL, COMMANDS, DECODING, TO_TOPICS, Case
from tests.bad_days.scene import EACH, MIDDLE, PARTITIONS, Done
from tests.compat.schema_registry import SchemaRegistry, schema_registry
from tests.mounts import Filler, mount, unmount

DONE, FAILED, DIFFERENT, HELD = 0, 1, 3, 4
# Of a driver that is killed again and again, how often at most.
MOST_KILLS = 40
COMPACTED_S = 40.0
DISK = "16m"
NEW = 40
TEXT = {"type": "record", "name": "Text", "fields": [{"name": "text", "type": "string"}]}
TO_TABLES = ("to-lake", "to-lake-parquet", "snapshot", "lag")
KEEPING = tuple(name for name in COMMANDS if name != "audit")

Act = Callable[[], None]


@dataclass(slots=True)
class Outcome:
    """How the runs ended (None: killed), what was wrong, and where a driver was killed."""

    exits: list[int | None] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    killed_at: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Play:
    """One case, and what came of it so far."""

    case: Case
    is_quick: bool
    outcome: Outcome = field(default_factory=Outcome)

    def run(
        self, may: set[int], act: Act | None = None, *more: str, is_last: bool = True
    ) -> Done:
        """Runs to the end; `act` is done once, where the source is planned and not read. What
        comes while it runs is the next one's, so a run that is not the last need not have all."""
        waiting = [act] if act is not None else []

        def at(point: str) -> bool:
            if point == self.case.command.when and waiting:
                waiting.pop()()
            return True

        done = self.case.scene.driver.run(self.case.words(*more), at if act is not None else None)
        if waiting:
            self.outcome.faults.append(f"never came to {self.case.command.when}")
        self.judge(done, may, is_last=is_last)
        return done

    def judge(self, done: Done, may: set[int], *, is_last: bool = True) -> None:
        self.case.scene.settle()
        self.outcome.exits.append(done.exit_code)
        if done.exit_code is not None and done.exit_code not in may:
            allowed = " or ".join(map(str, sorted(may)))
            said = f"exit code {done.exit_code}, not {allowed}: {done.last_word}"
            self.outcome.faults.append(said)
        self.outcome.faults += self.case.verdict(done.exit_code if is_last else None).faults

    def kill_at(self, is_here: Callable[[str], bool], also: Act = lambda: None) -> Done:
        """Runs until the driver is killed at a point, or to the end where there is none."""
        scene = self.case.scene
        driver = scene.driver
        scene.start_ahead()

        def at(point: str) -> bool:
            if not is_here(point):
                return True
            also()
            scene.kill_driver()
            self.outcome.killed_at.append(re.sub(r"\d+", "n", point))
            return False

        return driver.run(self.case.words(), at)


@dataclass(frozen=True, slots=True)
class Day:
    """A bad day: what it is, and to which commands it can happen."""

    name: str
    play: Callable[[Play], None]
    of: tuple[str, ...] = KEEPING
    is_framed: bool = False


def _driver_killed(play: Play) -> None:
    """At each point that a run comes to, one after another."""
    seen: set[str] = set()

    def is_new(point: str) -> bool:
        what = re.sub(r"\d+", "n", point)
        if what in seen or (play.is_quick and " note " in point):
            return False
        seen.add(what)
        return True

    for _ in range(MOST_KILLS):
        done = play.kill_at(is_new)
        play.judge(done, {DONE})
        if done.exit_code is not None:
            return
    play.outcome.faults.append("it was killed at ever new points")


def _broker_killed(play: Play) -> None:
    """It is back after two seconds; the driver goes on meanwhile, or fails."""
    play.run({DONE, FAILED}, play.case.scene.restart_broker)
    play.run({DONE})


def _both_killed(play: Play) -> None:
    scene, points = play.case.scene, {MIDDLE, "before send", "before report", "written 1"}
    done = play.kill_at(lambda point: point in points, scene.kill_broker)
    if done.exit_code is not None:
        play.outcome.faults.append("never came to the middle of a batch")
    else:
        scene.start_broker()
    play.judge(done, {DONE})
    play.run({DONE})


def _disk_full(place: str) -> Callable[[Play], None]:
    def run(play: Play) -> None:
        with small_disk(play.case.folder / place) as filled:
            done = play.run({FAILED}, filled.fill)
            if done.exit_code == FAILED and "No space left" not in done.err:
                play.outcome.faults.append(f"does not say why: {done.last_word}")
            filled.free()
            play.run({DONE})

    return run


@contextmanager
def small_disk(place: Path) -> Iterator[Filler]:
    """Needs a namespace of its own for mounts."""
    place.mkdir()
    mount(place, DISK)
    try:
        yield Filler(place)
    finally:
        unmount(place)


def _deleted(play: Play) -> None:
    case = play.case
    play.run({DIFFERENT} if case.command.is_stream else {DONE, FAILED}, _delete(case))
    play.run({DIFFERENT} if case.command.is_stream else {FAILED})


def _recreated(play: Play) -> None:
    """With more records than it had; none of them may come for one of the old ones untold."""
    case = play.case

    def recreate() -> None:
        _delete(case)()
        case.scene.create(case.topic, PARTITIONS)
        for partition in range(PARTITIONS):
            numbers = range(50_000 + partition * 1_000, 50_000 + partition * 1_000 + 2 * EACH)
            case.scene.produce(case.topic, [case.value(each) for each in numbers], partition)
        case.others = case.scene.records(case.topic)

    play.run({DIFFERENT} if case.command.is_stream else {FAILED, DIFFERENT}, recreate)
    if case.command.is_stream:
        play.run({DIFFERENT})


def _delete(case: Case) -> Act:
    def delete() -> None:
        case.scene.delete(case.topic)
        deadline = time.monotonic() + COMPACTED_S
        while case.topic in case.scene.admin().list_topics(timeout=10).topics:
            assert time.monotonic() < deadline, "a deleted topic stays"
            time.sleep(0.1)

    return delete


def _grown(play: Play) -> None:
    case = play.case

    def grow() -> None:
        case.scene.grow(case.topic, PARTITIONS + 1)
        values = [case.value(ALL + number) for number in range(NEW)]
        case.scene.produce(case.topic, values, PARTITIONS)
        case.made = case.scene.records(case.topic)

    play.run({DONE}, grow, is_last=False)
    play.run({DONE})


def _compacted(play: Play) -> None:
    case = play.case

    def compact() -> None:
        short = {"segment.ms": "300", "min.cleanable.dirty.ratio": "0.001"}
        case.scene.change(case.topic, {"cleanup.policy": "compact", **short})
        time.sleep(0.5)
        # A new segment: the newest is never compacted.
        for partition in range(PARTITIONS):
            values = [case.value(60_000 + partition)]
            case.scene.produce(case.topic, values, partition)
        known = {each.value for each in case.made}
        now = case.scene.records(case.topic)
        case.made += [each for each in now if each.value not in known]
        deadline = time.monotonic() + COMPACTED_S
        while len(case.scene.records(case.topic)) > ALL // 2:
            assert time.monotonic() < deadline, "no compaction"
            time.sleep(0.2)

    play.run({DONE}, compact, is_last=False)
    play.run({DONE})


def _trimmed(play: Play) -> None:
    """Under what was planned: a part of it is lost, and told; another run goes on on request."""
    case = play.case
    is_stream = case.command.is_stream

    def trim() -> None:
        case.scene.delete_before(case.topic, EACH * 3 // 4)

    play.run({DIFFERENT} if is_stream else {DONE, FAILED, DIFFERENT}, trim)
    if is_stream:
        play.run({DONE}, None, "--on-data-loss", "record")
    else:
        play.run({DONE})


def _large_refused(play: Play) -> None:
    case = play.case
    partitions = PARTITIONS if case.command.name == "mirror" else 1
    case.scene.create(case.target, partitions, **{"max.message.bytes": "2000"})
    # One that the rule of `dlq` finds bad.
    case.scene.produce(case.topic, [b"70001" + b"x" * 5_000], 0)
    case.made = case.scene.records(case.topic)
    # A mirror gives its copies what their sources allow.
    play.run({DONE} if case.command.name == "mirror" else {FAILED})
    case.scene.change(case.target, {"max.message.bytes": "100000"})
    play.run({DONE})


def _registry_gone(play: Play) -> None:
    """Between the first batch and the second, which needs another schema, for a minute."""
    case = play.case
    gone_s = 5.0 if play.is_quick else 60.0
    port = int(case.registry.rpartition(":")[2])
    with ExitStack() as now:
        now.enter_context(registry_at(port))
        went = time.monotonic()
        play.run({FAILED}, now.close)
        play.run({FAILED})
        time.sleep(max(0.0, gone_s - (time.monotonic() - went)))
        now.enter_context(registry_at(port))
        play.run({DONE})


def registry_at(port: int) -> AbstractContextManager[SchemaRegistry]:
    @contextmanager
    def has_both() -> Iterator[SchemaRegistry]:
        with schema_registry(port) as registry:
            registry.has(1, TEXT)
            registry.has(2, {**TEXT, "doc": "again"})
            yield registry

    return has_both()


def _two_copies(play: Play) -> None:
    scene, words = play.case.scene, play.case.words()
    other = scene.start_driver()
    try:
        drivers = (scene.driver, other)
        for each in drivers:
            each.ready()
        with ThreadPoolExecutor(2) as pool:
            both = list(pool.map(lambda driver: driver.run(words), drivers))
    finally:
        other.kill()
    for done in both:
        play.judge(done, {DONE, HELD})
    if DONE not in play.outcome.exits:
        play.outcome.faults.append("neither did it")
    play.run({DONE})


DAYS = {
    each.name: each
    for each in (
        Day("driver killed at each step", _driver_killed, tuple(COMMANDS)),
        Day("broker killed under it", _broker_killed, tuple(COMMANDS)),
        Day("driver and broker killed", _both_killed, tuple(COMMANDS)),
        Day("disk of the checkpoint full", _disk_full("checkpoint")),
        Day("disk of the table full", _disk_full("table"), TO_TABLES),
        Day("topic deleted under it", _deleted),
        Day("topic recreated under it", _recreated),
        Day("partition added under it", _grown, tuple(COMMANDS)),
        Day("topic compacted under it", _compacted),
        Day("topic trimmed under it", _trimmed),
        Day("target refuses a large record", _large_refused, TO_TOPICS),
        Day("registry gone for a minute", _registry_gone, DECODING, is_framed=True),
        Day("two started in one second", _two_copies, tuple(COMMANDS)),
    )
}


def run_cell(case: Case, day: Day, *, is_quick: bool) -> Outcome:
    """One command on one day, from an empty folder to the last count."""
    case.fill()
    if case.command.name == "audit":
        loaded = case.scene.driver.run(_loading(case))
        assert loaded.exit_code == DONE, loaded.last_word
    play = Play(case, is_quick)
    if case.command.suffix and case.command.name != "mirror" and day.play is not _large_refused:
        case.scene.create(case.target)
    day.play(play)
    return play.outcome


def _loading(case: Case) -> list[str]:
    table = ["--path", str(case.table), "--checkpoint", str(case.checkpoint)]
    return ["to-lake", case.topic, "-b", case.scene.broker.bootstrap, *table]
