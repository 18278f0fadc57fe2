"""One round: a directory is formatted and goes from one broker to the other and back.

Owns the order of things and the comparison at each switch: what was told before it is told after
it, by the other broker, and neither log complains. A round that compared nothing has failed.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.compat.brokers import APACHE_KAFKA, KAFKALITE
from tests.compat.java_tools import JavaTools
from tests.out_and_in import administering, dumping
from tests.out_and_in.complaints import complaints
from tests.out_and_in.directory import OURS, Directory, Format
from tests.out_and_in.exceptions import Telling, exception_for
from tests.out_and_in.observing import Observation, Observer
from tests.out_and_in.workload import OPEN_TO, STEADY, Workload

NEWEST = {
    "metadata.version": 30, "eligible.leader.replicas.version": 1, "group.version": 1,
    "share.version": 1, "streams.version": 1, "transaction.version": 2,
}  # fmt: skip
STEPS = 7
EXAMPLES = 4
HOW = {signal.SIGTERM: "stop", signal.SIGKILL: "kill -9"}
Say = Callable[[str], None]


@dataclass(slots=True)
class Round:
    """What was done and what came of it."""

    seed: int
    how: Format
    switches: list[str] = field(default_factory=list)
    compared: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    excepted: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        return not self.findings and bool(self.switches) and all(
            self.compared[area] for area in ("read_committed", "read_uncommitted", "group offsets")
        )  # fmt: skip


def run(
    seed: int,
    folder: Path,
    tools: JavaTools,
    say: Say,
    how: Format | None = None,
    only: str | None = None,
) -> Round:
    """Whatever goes wrong is a finding of the round; the next one goes on.

    With `only` one broker has all legs: what is then found is its own, or of these tests.
    """
    dice = Random(seed)
    chosen = Format.chosen(dice)
    outcome = Round(seed, how or chosen)
    began = time.monotonic()
    directory = None
    try:
        directory = Directory(folder, outcome.how, tools)
        _Going(outcome, directory, dice, say, only).go()
    except Exception as failure:  # noqa: BLE001 - of whichever client or broker
        outcome.findings.append(f"{type(failure).__name__}: {failure}"[:4000])
        if directory is not None:
            outcome.findings += complaints(directory.log())[-10:]
    finally:
        if directory is not None:
            directory.end(signal.SIGKILL)
    if not outcome.findings and not outcome.is_good:
        outcome.findings.append("nothing was compared")
    outcome.seconds = time.monotonic() - began
    return outcome


def differences(before: Observation, after: Observation) -> list[tuple[str, list[str]]]:
    """By area, under which labels the answers are not the same, or there on one side only."""
    found = []
    for area in sorted(before.keys() | after.keys()):
        was, is_now = before.get(area), after.get(area)
        if was is None or is_now is None:
            found.append((area, sorted(was or is_now or {"": None})))
            continue
        labels = [one for one in was if one not in is_now or was[one] != is_now[one]]
        labels += [one for one in is_now if one not in was]
        if labels:
            found.append((area, sorted(labels)))
    return found


class _Going:
    """The way of one directory."""

    def __init__(
        self, outcome: Round, directory: Directory, dice: Random, say: Say, only: str | None
    ) -> None:
        self.outcome, self.directory, self.dice, self.say = outcome, directory, dice, say
        self.only = only
        dirs = [str(one) for one in directory.log_dirs]
        self.work = Workload(directory.port, dice, dirs)
        self.seen: Observation | None = None
        self.teller = ""  # of what was seen
        self.seen_by_apache_kafka: Observation | None = None

    def go(self) -> None:
        legs = [APACHE_KAFKA, KAFKALITE, APACHE_KAFKA]
        if self.outcome.how.way == OURS or self.dice.random() < 0.25:
            legs = [KAFKALITE, *legs[:2]]
        if self.dice.random() < 0.4:
            legs += [APACHE_KAFKA if legs[-1] == KAFKALITE else KAFKALITE]
        for number, kind in enumerate(legs):
            self.leg(number, self.only or kind, is_last=number == len(legs) - 1)
        self.check_files()

    def leg(self, number: int, kind: str, *, is_last: bool) -> None:
        self.say(f"{number + 1} {kind}")
        directory, work = self.directory, self.work
        is_apache_kafka = kind == APACHE_KAFKA
        directory.start(kind)
        if self.seen is not None:
            self.compare(kind)
        if is_apache_kafka and self.outcome.how.is_finalized:
            with administering.closing_asker(directory.port) as asker:
                administering.finalize(asker, NEWEST)
        if self.seen is None:
            work.begin()
        has_other_groups = is_apache_kafka and self.serves_other_groups()
        work.leg(STEPS, is_apache_kafka=is_apache_kafka, has_other_groups=has_other_groups)
        self.outcome.done.update(work.done)
        work.done.clear()
        if is_last:
            work.end()
            self.check_ledger()
        self.look(is_apache_kafka)
        how = self.dice.choice((signal.SIGTERM, signal.SIGTERM, signal.SIGKILL))
        directory.end(how)
        self.outcome.switches.append(f"{'K' if is_apache_kafka else 'k'} {HOW[how]}")
        self.note(f"leg {number + 1} of {kind}", complaints(directory.log()))

    def serves_other_groups(self) -> bool:
        with administering.closing_asker(self.directory.port) as asker:
            levels = administering.finalized(asker)
        return levels.get("share.version", 0) > 0 and levels.get("streams.version", 0) > 0

    def look(self, is_apache_kafka: bool) -> None:
        with closing(Observer(self.directory.port)) as observer:
            self.seen = observer.observe()
            self.teller = self.directory.kind
            if is_apache_kafka:
                self.seen_by_apache_kafka = observer.observe_apache_kafka()

    def compare(self, kind: str) -> None:
        assert self.seen is not None
        with closing(Observer(self.directory.port)) as observer:
            self.compare_with(kind, self.seen, observer.observe())
            if kind == APACHE_KAFKA and self.seen_by_apache_kafka is not None:
                self.compare_with(kind, self.seen_by_apache_kafka, observer.observe_apache_kafka())

    def compare_with(self, kind: str, before: Observation, after: Observation) -> None:
        for area, answers in before.items():
            self.outcome.compared[area] += len(answers)
        for area, found in differences(before, after):
            labels = [one for one in found if not self.is_excepted(area, one, before, after)]
            lines = []
            for label in labels[:EXAMPLES]:
                was, is_now = before[area].get(label), after.get(area, {}).get(label)
                lines += [f"{label} was {was!r}", f"and is {is_now!r}"]
            self.note(f"{kind} tells {len(labels)} of {area} in another way", lines)

    def is_excepted(
        self, area: str, label: str, before: Observation, after: Observation
    ) -> bool:
        told = before.get(area, {}), after.get(area, {})
        name = exception_for(Telling(area, label, *told, self.teller, self.work.moved))
        if name is not None:
            self.outcome.excepted[name] += 1
        return name is not None

    def note(self, where: str, lines: list[str]) -> None:
        if lines:
            text = "\n    ".join(line[:1200] for line in lines[:12])
            self.outcome.findings.append(f"{where}:\n    {text}")

    # -- at the end ------------------------------------------------------------------------

    def check_ledger(self) -> None:
        """What was acknowledged and committed over all switches is there once, and in order."""
        work = self.work
        with closing(Observer(self.directory.port)) as observer:
            steady = observer.values(STEADY, 1)
            read = observer.values(OPEN_TO, 2)
        ended = [one for one in read if one is not None and one.startswith(b"transaction")]
        self.outcome.compared["acknowledged records"] += len(steady) + len(ended)
        if steady != work.acknowledged:
            self.note(STEADY, [f"acknowledged {len(work.acknowledged)}", f"read {steady!r}"])
        if sorted(ended) != sorted(work.committed):
            self.note(OPEN_TO, [f"committed {work.committed!r}", f"read {ended!r}"])

    def check_files(self) -> None:
        said, count = dumping.dump(self.directory.log_dirs, self.directory.tools)
        self.outcome.compared["dumped records"] += count
        self.note("kafka-dump-log", said)
