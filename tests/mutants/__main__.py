"""`python -m tests.mutants [ID …]`: plants every defect and says which net caught it."""

from __future__ import annotations

import argparse
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from tests.mutants.planting import Mutant, Verdict, all_mutants, copy_project, try_out


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--jobs", type=int, default=1, help="so many at a time")
    arguments = parser.parse_args()
    names = set(arguments.names)
    mutants = [mutant for mutant in all_mutants() if not names or mutant.name in names]
    unknown = names - {mutant.name for mutant in mutants}
    if unknown or not mutants:
        parser.error(f"no such defect: {', '.join(sorted(unknown)) or 'there is none at all'}")
    with tempfile.TemporaryDirectory(prefix="kafkalite-mutants-") as folder:
        verdicts = _verdicts(mutants, Path(folder), max(1, arguments.jobs))
    Console(width=160, soft_wrap=True).print(table_of(verdicts))
    caught = sum(verdict.is_caught for _, verdict in verdicts)
    for mutant, verdict in verdicts:
        if not verdict.is_caught:
            print(f"{mutant.name} is not caught: {verdict.detail}")
    print(f"{caught} of {len(verdicts)} planted defects caught")
    return 0 if caught == len(verdicts) else 1


def _verdicts(mutants: list[Mutant], folder: Path, jobs: int) -> list[tuple[Mutant, Verdict]]:
    copies: SimpleQueue[Path] = SimpleQueue()
    for number in range(jobs):
        copy_project(folder / str(number))
        copies.put(folder / str(number))

    def verdict_on(mutant: Mutant) -> tuple[Mutant, Verdict]:
        copy = copies.get()
        try:
            verdict = try_out(mutant, copy)
            outcome = "caught" if verdict.is_caught else "NOT CAUGHT"
            print(f"{mutant.name}: {outcome} in {verdict.seconds:.0f} s", flush=True)
            return mutant, verdict
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(jobs) as pool:
        found = pool.map(verdict_on, mutants)
        return list(track(found, "planting", total=len(mutants), transient=True))


def table_of(verdicts: list[tuple[Mutant, Verdict]]) -> Table:
    table = Table("defect", "what is wrong", "net", "s", "caught by", show_lines=False)
    for mutant, verdict in verdicts:
        said = verdict.detail if verdict.is_caught else f"NOT CAUGHT: {verdict.detail}"
        net = " ".join(mutant.net)
        cells = (mutant.name, mutant.what, net, f"{verdict.seconds:.0f}", said)
        table.add_row(*map(escape, cells))  # a test may be called after a path in brackets
    return table


if __name__ == "__main__":
    raise SystemExit(main())
