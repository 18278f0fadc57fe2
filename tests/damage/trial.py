"""One trial: derived files of a stopped broker are damaged, it starts again, all is as it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from random import Random

from kafkalite.env import manual_env
from kafkalite.env.memory import MemoryDisk
from kafkalite.log.config import LogConfig
from kafkalite.log.names import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    LOG,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
)
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.seals import SEALS
from tests.damage.shapes import QUIET, SHAPES, made
from tests.damage.watching import Seen, watch
from tests.unit.log.making import ROOT, START_MS, TOPIC_ID, abandon, committed, keyed, open_logs

OWN = f"{ROOT}/t-0"
NEIGHBOUR = f"{ROOT}/u-0"
_HOUR_MS = 3_600_000
_NOT_DERIVED = (META_PROPERTIES, ".lock")
DELETE, EMPTY, CUT, FLIP, SWAP = "delete", "empty", "cut", "flip", "swap"

Files = dict[str, bytes]


@dataclass(frozen=True)
class Damage:
    """What befalls one file; `at` is a byte for a cut and a bit for a flip."""

    path: str
    kind: str
    at: int = 0
    other: str = ""

    def apply(self, files: Files) -> None:
        data = files[self.path]
        if self.kind == DELETE:
            del files[self.path]
        elif self.kind == SWAP:
            files[self.path], files[self.other] = files[self.other], data
        elif self.kind == FLIP:
            flipped = bytearray(data)
            flipped[self.at // 8] ^= 1 << self.at % 8
            files[self.path] = bytes(flipped)
        else:
            files[self.path] = data[: self.at]

    def __str__(self) -> str:
        return f"{self.kind} {self.path} {self.at or ''} {self.other}".rstrip()


@dataclass
class Stopped:
    """A shape on a disk without a broker, and what was to be seen of it."""

    name: str
    files: Files
    config: LogConfig
    now_ms: int
    is_clean: bool
    own: Seen
    neighbour: Seen

    @property
    def derived(self) -> list[str]:
        """The files that can be made from the records."""
        return [
            path
            for path in sorted(self.files)
            if path.rpartition("/")[0] in (ROOT, OWN) and not path.endswith((LOG, *_NOT_DERIVED))
        ]


def stopped(name: str, seed: int, *, is_clean: bool) -> Stopped:
    world = made(name, seed)
    seen = watch(world.log("t")), watch(world.log("u"))
    if is_clean:
        world.manager.close()
    else:
        world.clock.advance(60_000)  # every checkpoint is written
        abandon(world.manager)
    disk = world.disk
    assert isinstance(disk, MemoryDisk)
    files = {path: bytes(contents.data) for path, contents in disk._files.items()}
    return Stopped(name, files, SHAPES[name][1], world.clock.now_ms(), is_clean, *seen)


def restored(files: Files) -> MemoryDisk:
    disk = MemoryDisk(now_ms=lambda: START_MS + _HOUR_MS)
    for path, data in files.items():
        disk.make_directory(path.rpartition("/")[0])
        disk.create(path).write_at(0, data)
    return disk


def attempt(one: Stopped, damages: list[Damage]) -> bool:
    """Starts a broker on the damaged files; raises when anything is not as it was. Whether there
    was anything that could be told."""
    files = dict(one.files)
    for damage in damages:
        damage.apply(files)
    env = manual_env(disk=restored(files))
    manager = open_logs(env, one.config, QUIET)
    assert not list(manager.offline), [each.reason for each in manager.offline]
    promised = Promise.after(one, damages)
    if not promised.is_gap_known:
        return False
    for topic, seen in (("t", one.own), ("u", one.neighbour)):
        log = manager.get(topic, 0)
        assert log is not None
        if not promised.is_topic_known and log.topic_id != TOPIC_ID:
            assert log.log_end_offset == seen.offsets[2]
            continue  # it is set aside under a name of its own
        assert manager.create(topic, 0, TOPIC_ID, one.config) is log
        compare(committed(log), seen, promised)
        goes_on(log, seen)
    abandon(manager)
    return True


@dataclass
class Promise:
    """What can be told without what nothing else tells."""

    is_topic_known: bool = True
    is_start_known: bool = True
    is_all: bool = True  # as the seals alone make it; without them as Apache Kafka has it
    is_gap_known: bool = True  # whether anything tells what compaction left out from what was lost

    @classmethod
    def after(cls, one: Stopped, damages: list[Damage]) -> Promise:
        hit = {path for damage in damages for path in (damage.path, damage.other) if path}
        gone = {damage.path for damage in damages if damage.kind == DELETE}
        seals = f"{OWN}/{SEALS}"
        is_sealed = seals in one.files and not hit & {seals, f"{NEIGHBOUR}/{SEALS}"}
        is_clean = one.is_clean and CLEAN_MARKER not in hit
        kept = {f"{ROOT}/{name}" for name in (RECOVERY_POINTS, CLEANER_OFFSETS)} - hit
        return cls(
            is_sealed or not hit & {f"{OWN}/{PARTITION_METADATA}"},
            (is_sealed and is_clean) or f"{ROOT}/{LOG_STARTS}" not in hit,
            (seals in one.files and seals not in gone) or len(damages) == 0,
            is_sealed or is_clean or bool(kept) or not one.config.is_compacted,
        )


def compare(log: PartitionLog, before: Seen, promised: Promise) -> None:
    after = watch(log)
    starts = (after.offsets[0], before.offsets[0])
    if promised.is_all and (promised.is_start_known or starts[0] == starts[1]):
        for each in fields(Seen):
            was, now = getattr(before, each.name), getattr(after, each.name)
            assert now == was, f"{each.name} was {was}, is {now}"
        return
    assert after.offsets[2] == before.offsets[2]
    assert starts[0] <= starts[1] or not promised.is_start_known
    both = {offset: data for offset, data in before.uncommitted.items() if offset >= max(starts)}
    assert {offset: after.uncommitted[offset] for offset in both} == both


def goes_on(log: PartitionLog, before: Seen) -> None:
    """The next record gets the next offset, and is there."""
    end = before.offsets[2]
    appended = log.append_as_leader(keyed([(b"k", b"next")], timestamp=START_MS), 9)
    assert (appended.base_offset, log.log_end_offset) == (end, end + 1)
    found = committed(log).read(end, 1 << 20).range
    assert found is not None
    assert b"next" in found.read()


def every_single(one: Stopped) -> Iterator[Damage]:
    """Each kind of damage to each derived file, at each byte and each bit."""
    for path in one.derived:
        size = len(one.files[path])
        yield Damage(path, DELETE)
        if size:
            yield Damage(path, EMPTY)
        for at in range(1, size):
            yield Damage(path, CUT, at)
        for at in range(8 * size):
            yield Damage(path, FLIP, at)
        yield from (Damage(path, SWAP, other=other) for other in _alike(one, path))


def _alike(one: Stopped, path: str) -> list[str]:
    """Files of the same kind, of this log and of its neighbour's."""
    name = path.rpartition("/")[2]
    suffix = name[name.find(".") :] if name[0].isdigit() else name
    return [
        other
        for other in sorted(one.files)
        if other.endswith(suffix) and other != path and one.files[other] != one.files[path]
    ]


def some(one: Stopped, random: Random) -> list[Damage]:
    """Damage to a few or to many files at once."""
    paths = one.derived
    chosen = random.sample(paths, random.choice((1, 2, 3, len(paths) // 2, len(paths))))
    kinds = random.choice(((DELETE,), (FLIP,), (CUT,), (DELETE, EMPTY, CUT, FLIP, SWAP)))
    damages: list[Damage] = []
    swapped: set[str] = set()
    for path in chosen:
        kind, size = random.choice(kinds), len(one.files[path])
        others = [other for other in _alike(one, path) if other not in (swapped | set(chosen))]
        is_too_short = kind in (CUT, FLIP, EMPTY) and size < 2
        if path in swapped or is_too_short or (kind == SWAP and not others):
            kind = DELETE
        if kind == SWAP:
            other = random.choice(others)
            swapped.add(other)
            damages.append(Damage(path, SWAP, other=other))
        else:
            at = {CUT: size, FLIP: 8 * size}.get(kind, 0)
            damages.append(Damage(path, kind, random.randrange(1, at) if at else 0))
    return damages


CLEAN_MARKER = f"{ROOT}/{CLEAN_SHUTDOWN}"
