"""Runs commands through bad days, on kafkalite and on Apache Kafka.

    python -m tests.bad_days --matrix                          all of it: hours
    python -m tests.bad_days --matrix --missing --minutes 30   a piece of it
    python -m tests.bad_days --broker kafkalite --day "disk|topic" --command "mirror|dlq"

With `--matrix` outcomes go to docs/generated/bad_days.md. Days of full disks need `unshare`, to
mount small ones; without it they are left out, and a line says so.
"""

import argparse
import math
import re
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from tests import mounts
from tests.bad_days import page
from tests.bad_days.commands import COMMANDS, Case, Command
from tests.bad_days.days import DAYS, Day, Outcome, run_cell
from tests.bad_days.scene import Scene
from tests.compat import brokers


def main() -> int:
    given = arguments()
    if not mounts.are_there() and mounts.can_be():
        return mounts.run_within("tests.bad_days")
    outcomes = page.load()
    failed, until = 0, time.monotonic() + given.minutes * 60
    for kind in brokers.BROKERS:
        if not kind.startswith(given.broker):
            continue
        for day, command, outcome in run_all(kind, given, until):
            failed += bool(outcome.faults)
            if given.matrix:
                page.keep(outcomes, kind, day.name, command.name, outcome)
    return 1 if failed else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--matrix", action="store_true", help="keep outcomes, write the page")
    parser.add_argument("--broker", default="", help="kafkalite or apache-kafka")
    parser.add_argument("--day", default="", help="days with this pattern in their name")
    parser.add_argument("--command", default=".*", help="commands of this pattern")
    parser.add_argument("--quick", action="store_true", help="fewer kills, shorter absences")
    parser.add_argument("--missing", action="store_true", help="only what has not run yet")
    parser.add_argument("--minutes", type=float, default=math.inf, help="then no further cell")
    return parser.parse_args()


def run_all(
    kind: str, given: argparse.Namespace, until: float
) -> Iterator[tuple[Day, Command, Outcome]]:
    known = page.load().get(kind, {}) if given.missing else {}
    ahead = [each for each in cells(given) if each[1].name not in known.get(each[0].name, {})]
    if not ahead or time.monotonic() > until:
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        scene = Scene(kind, Path(folder))
        try:
            for day, command in ahead:
                began = time.monotonic()
                if began > until:
                    break
                outcome = run_one(scene, day, command, is_quick=given.quick)
                tell(kind, day, command, outcome, time.monotonic() - began)
                yield day, command, outcome
        finally:
            scene.close()


def cells(given: argparse.Namespace) -> Iterator[tuple[Day, Command]]:
    for day in DAYS.values():
        if "disk" in day.name and not mounts.are_there():
            print(f"{day.name}: left out, no mounts of one's own here", flush=True)
            continue
        for name in day.of:
            if re.search(given.day, day.name) and re.fullmatch(given.command, name):
                yield day, COMMANDS[name]


def run_one(scene: Scene, day: Day, command: Command, *, is_quick: bool) -> Outcome:
    """One cell; a driver that is gone, or hangs, is an outcome as well."""
    port = brokers.free_ports(1)[0]
    registry = f"http://127.0.0.1:{port}" if day.is_framed else ""
    case = Case(scene, command, f"{command.name}-{uuid.uuid4().hex[:8]}", registry)
    try:
        return run_cell(case, day, is_quick=is_quick)
    except Exception as error:  # noqa: BLE001
        scene.begin_anew()
        return Outcome([], [f"{type(error).__name__}: {error}"])


def tell(kind: str, day: Day, command: Command, outcome: Outcome, took_s: float) -> None:
    exits = " ".join("killed" if each is None else str(each) for each in outcome.exits)
    print(f"{kind}: {day.name}: {command.name}: {exits} ({took_s:.0f} s)", flush=True)
    for fault in outcome.faults:
        print(f"  FAULT {fault}", flush=True)
    for point in outcome.killed_at:
        print(f"  killed {point}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
