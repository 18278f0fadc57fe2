"""`python -m tests.differential.settings`: every dynamic setting, asked of both brokers."""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafkalite.client.wire import NoReply, decode_response, request_frame
from kafkalite.testing.comparison.side import CLIENT_ID, Side
from tests.compat import brokers
from tests.compat.brokers import Broker
from tests.differential.setting_cases import BROKER, Case, all_cases, lasting_cases, random_case
from tests.differential.setting_exceptions import allowed
from tests.differential.setting_quotas import QuotaCase, ask_quota, quota_cases
from tests.differential.setting_record import record
from tests.differential.setting_verdicts import Judge, Pair, Verdict

PATIENCE_S = 6.0
ATTEMPTS = 10


class Asker(Side):
    """A side that gives up on an answer sooner."""

    def ask(self, request: Any, version: int) -> Any:
        wire = self.wire()
        wire.send(request_frame(request, version, 1, CLIENT_ID))
        frame = wire.receive(PATIENCE_S)
        if isinstance(frame, NoReply):
            self.hang_up()
            raise AssertionError(f"{type(request).__name__}: {frame.value}")
        return decode_response(frame, request.API_KEY, version)


@dataclass
class Place:
    """One broker of the pair, which may be started again where it was."""

    broker: Broker
    overrides: dict[str, str]
    controller: int

    def judge(self) -> Judge:
        local = {
            "{dir}": str(self.broker.folder / "data"),
            "{port}": str(self.broker.port),
            "{controller}": str(self.controller),
        }
        return Judge(Asker(self.broker.host, self.broker.port), local)

    def stop(self) -> None:
        self.broker.stop()

    def restart(self) -> None:
        self.stop()
        self.broker = brokers.start(
            self.broker.kind, self.broker.folder, self.overrides, port=self.broker.port
        )


@contextmanager
def own_brokers() -> Iterator[tuple[Place, Place]]:
    """A pair of its own: what is set here may shut out whoever else would ask."""
    with ExitStack() as stack:
        started = []
        for kind in brokers.BROKERS:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkalite-settings-"))
            port, controller = brokers.free_ports(2)
            overrides = {
                "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            }
            broker = brokers.start(kind, Path(folder) / "broker", overrides, port=port)
            place = Place(broker, overrides, controller)
            stack.callback(place.stop)
            started.append(place)
        yield started[0], started[1]


@dataclass
class Tally:
    """How many were asked of each kind, and how many of those were answered differently."""

    asked: Counter[str] = field(default_factory=Counter)
    allowed: Counter[str] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)

    def take(
        self, case: Case | QuotaCase, ours: Verdict, theirs: Verdict, kind: str | None = None
    ) -> bool:
        """Counts it; says whether the two may go on from it alike."""
        kind = kind or KINDS.get(getattr(case, "kind", 0), "other")
        self.asked[kind] += 1
        if ours == theirs:
            return True
        reason = allowed(case, ours, theirs)
        if reason is not None:
            self.allowed[reason] += 1
            return ours.code == theirs.code
        self.differing[kind] += 1
        line = f"{case}\n  kafkalite    {told(ours)}\n  Apache Kafka {told(theirs)}"
        self.told.append(line)
        print(line, flush=True)
        return False

    @property
    def exit_code(self) -> int:
        """0 where something was asked and nothing differed."""
        return 1 if self.differing or not sum(self.asked.values()) else 0

    def __str__(self) -> str:
        lines = [
            f"{kind:16} {count:7} asked {self.differing[kind]:7} differ"
            for kind, count in self.asked.items()
        ]
        lines += [f"{count:7} allowed: {reason}" for reason, count in self.allowed.items()]
        return "\n".join(lines)


def ask_each(
    pair: Pair, cases: Iterable[Case], seconds: float, tally: Tally
) -> list[tuple[Case, Verdict]]:
    """Each case from where the broker began; tells what Apache Kafka said."""
    said = []
    deadline = time.monotonic() + seconds
    for case in cases:
        if time.monotonic() > deadline:
            break
        ours, theirs = pair.ask(case)
        tally.take(case, ours, theirs)
        said.append((case, theirs))
    return said


def walk(pair: Pair, seed: str, seconds: float, tally: Tally) -> None:
    """Random cases, each on top of those before it."""
    rng = random.Random(seed)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        steps: list[Case] = []
        for _ in range(rng.choice((3, 10, 30))):
            steps.append(random_case(rng))
            if not tally.take(steps[-1], *pair.alter(steps[-1]), kind="in a row"):
                break
        # Brokers first: what a topic may have depends on what its broker has.
        left = {(each.kind, each.resource): each for each in steps}
        for _, case in sorted(left.items(), key=lambda item: item[0][0] != BROKER):
            pair.put_back(case)


def ask_quotas(pair: Pair, tally: Tally, cases: Iterable[QuotaCase]) -> None:
    """Client quotas; what shows late is asked for again."""
    for case in cases:
        for _ in range(ATTEMPTS):
            ours, theirs = (ask_quota(each.broker, case) for each in (pair.ours, pair.theirs))
            if ours == theirs or ours.code != theirs.code:
                break
            time.sleep(0.02)
        tally.take(case, ours, theirs, kind="client quota")


def restarts(places: tuple[Place, Place], tally: Tally) -> None:
    """What is set stands alike after both were started again."""
    pair = Pair(*(place.judge() for place in places))
    cases = lasting_cases()
    for case in cases:
        tally.take(case, *pair.alter(case), kind="before a restart")
    for place in places:
        place.restart()
    pair = Pair(*(place.judge() for place in places))
    for case in cases:
        ours, theirs = pair.shown(case)
        tally.take(case, ours, theirs, kind="after a restart")
    for case in cases:
        pair.put_back(case)


KINDS = {2: "topic", 4: "broker", 16: "client metrics", 32: "group"}


def told(verdict: Verdict) -> str:
    return f"{verdict.code} {verdict.message or ''} {verdict.shown or ''}"


def main() -> int:
    options = _options()
    tally = Tally()
    with own_brokers() as places:
        pair = Pair(*(place.judge() for place in places))
        cases = [case for case in all_cases() if options.only in str(case)]
        random.Random(options.seed).shuffle(cases)
        said = ask_each(pair, cases, options.seconds, tally)
        if options.record and not options.only and len(said) == len(cases):
            record(said)
        if not options.only:
            ask_quotas(pair, tally, quota_cases())
            walk(pair, options.seed, min(options.seconds, options.walk), tally)
            restarts(places, tally)
    print(tally)
    return tally.exit_code


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential.settings", description=__doc__
    )
    parser.add_argument("--seed", default="1")
    parser.add_argument("--seconds", type=float, default=math.inf, help="for the table of cases")
    parser.add_argument("--walk", type=float, default=60, help="seconds of random steps")
    parser.add_argument("--only", default="", help="cases that name this")
    parser.add_argument("--record", action="store_true", help="write down what Apache Kafka says")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
