"""`python -m tests.out_and_in --rounds N --seed S`: directories out to one broker and in again."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.compat.brokers import BROKERS, RUN_FOLDER
from tests.out_and_in.directory import java_tools
from tests.out_and_in.rounds import Round, run


def main() -> int:
    options = _options()
    home = Path(tempfile.mkdtemp(prefix="out-and-in-", dir=options.folder))
    keeper = _start_keeper()
    console = Console(width=options.width)
    rounds: list[Round] = []
    bar = Progress(
        TextColumn("out and in"), BarColumn(), TextColumn("{task.completed}/{task.total}"),
        TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True,
    )  # fmt: skip
    (home / "classes").mkdir()
    with java_tools(home / "classes") as tools, bar:
        task = bar.add_task("", total=options.rounds)
        for seed in range(options.seed, options.seed + options.rounds):
            def say(what: str, seed: int = seed) -> None:
                bar.update(task, description=f"seed {seed}, leg {what}")

            folder = home / f"round-{seed}"
            one = run(seed, folder, tools, say, only=options.only)
            rounds.append(one)
            bar.advance(task)
            _tell(console, one, folder)
            if one.is_good and not options.keep:
                shutil.rmtree(folder)
    _show(console, rounds)
    if all(one.is_good for one in rounds) and not options.keep:
        shutil.rmtree(home)
    keeper.communicate()
    return 0 if rounds and all(one.is_good for one in rounds) else 1


def _start_keeper() -> subprocess.Popen[bytes]:
    """Somebody who ends the broker that runs, also if this is killed."""
    folder = os.environ[RUN_FOLDER] = tempfile.mkdtemp(prefix="kafkalite-test-")
    call = [sys.executable, "-m", "tests.compat.keeper", folder]
    return subprocess.Popen(call, stdin=subprocess.PIPE, start_new_session=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.out_and_in", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--folder", type=Path, help="where the directories lie")
    parser.add_argument("--only", choices=BROKERS, help="has all legs: finds what is its own")
    parser.add_argument("--keep", action="store_true", help="leave them there, also of good rounds")
    parser.add_argument("--width", type=int, default=150)
    return parser.parse_args()


def _tell(console: Console, one: Round, folder: Path) -> None:
    what = f"seed {one.seed} ({one.how}; {', '.join(one.switches)})"
    if one.is_good:
        console.print(f"{what}: {one.compared.total()} answers alike in {one.seconds:.0f} s")
        return
    console.print(f"{what}: [red]{len(one.findings)} findings[/], kept in {folder}")
    for finding in one.findings:
        console.print(f"  {finding}", markup=False, highlight=False)


def _show(console: Console, rounds: list[Round]) -> None:
    table = Table(title="K is Apache Kafka 4.3.1, k is kafkalite; each began on what was left")
    for column in ("seed", "formatted as", "ends", "answers compared", "steps", "s", "findings"):
        table.add_column(column)
    for one in rounds:
        table.add_row(
            str(one.seed), str(one.how), ", ".join(one.switches), str(one.compared.total()),
            str(one.done.total()), f"{one.seconds:.0f}", str(len(one.findings) or "none"),
        )  # fmt: skip
    console.print(table)
    compared: Counter[str] = Counter()
    done: Counter[str] = Counter()
    excepted: Counter[str] = Counter()
    for one in rounds:
        compared += one.compared
        done += one.done
        excepted += one.excepted
    console.print("compared: " + ", ".join(f"{area} {n}" for area, n in compared.most_common()))
    console.print("done: " + ", ".join(f"{step} {n}" for step, n in done.most_common()))
    for name, count in excepted.items():
        console.print(f"told in another way for a reason: {count} {name}")


if __name__ == "__main__":
    raise SystemExit(main())
