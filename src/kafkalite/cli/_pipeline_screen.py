"""What a pipeline shows on the terminal: a bar while it runs, tables of what it did or would do."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafkalite.pipelines.audit import Report
    from kafkalite.pipelines.common.dry_run import DryRun
    from kafkalite.pipelines.common.ledger import Ledger
    from kafkalite.pipelines.common.running import Progress
    from kafkalite.pipelines.common.translation import Moves
    from kafkalite.pipelines.lag import PartitionLag

# Wide when nobody looks, so that a pipe gets whole lines.
OUT = Console() if sys.stdout.isatty() else Console(width=160)
ERR = Console(stderr=True)
SHOWN_ROWS = 40
LINE_EVERY_S = 10.0


def say(text: str) -> None:
    """A line beside the output."""
    ERR.print(text, highlight=False, markup=False)


def watching(name: str, kind: str) -> AbstractContextManager[Callable[[Progress], None]]:
    """A bar where somebody looks, else a line now and then."""
    if kind == "json" or not ERR.is_terminal:
        return nullcontext(lines_of(name, kind))
    return progress_bar(name)


def lines_of(
    name: str, kind: str, clock: Callable[[], float] = time.monotonic
) -> Callable[[Progress], None]:
    """Tells of progress each ten seconds, in one line."""
    told = clock()

    def watch(progress: Progress) -> None:
        nonlocal told
        if clock() - told < LINE_EVERY_S:
            return
        told = clock()
        lag = progress.lag if progress.batches else progress.total
        numbers = {"rows": progress.rows, "rows_per_s": round(progress.rows_per_s)}
        numbers |= {"batches": progress.batches, "lag": lag}
        if kind == "json":
            click.echo(json.dumps({"command": name, **numbers}), err=True)
        else:
            told_of = ", ".join(f"{what} {number:,}" for what, number in numbers.items())
            click.echo(f"{name}: {told_of}", err=True)

    return watch


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[[Progress], None]]:
    """A bar of rows read of those that lay ahead, with rows per second, lag and time left."""
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} rows"),
        TextColumn("{task.fields[rate]:,.0f} rows/s"),
        TextColumn("lag {task.fields[lag]:,}"),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=ERR) as bar:
        task = bar.add_task(name, total=1, rate=0.0, lag=0)

        def watch(progress: Progress) -> None:
            # A stream that goes on passes what lay ahead when it began.
            total = max(progress.total, progress.rows)
            lag = progress.lag if progress.batches else progress.total
            bar.update(
                task, total=total, completed=progress.rows, rate=progress.rows_per_s, lag=lag
            )

        yield watch


def show_progress(name: str, progress: Progress, moved: Mapping[str, Moves]) -> None:
    OUT.print(
        f"{name}: {progress.rows:,} rows in {progress.batches} batches, lag {progress.lag:,}",
        highlight=False,
    )
    _some(
        f"  {topic}-{partition} up to offset {offset}"
        for (topic, partition), offset in sorted(progress.reached.items())
    )
    _some(f"  lost: {loss}" for loss in progress.losses)
    for group, moves in moved.items():
        reasons = Counter(moves.left.values())
        left = "".join(f", {count} {why}" for why, count in sorted(reasons.items()))
        OUT.print(f"  group {group}: {len(moves.ahead)} offsets moved{left}", highlight=False)


def show_ledger(ledger: Ledger) -> None:
    for what, how_much in ledger.rows():
        OUT.print(f"  {what:14}{how_much}", highlight=False, markup=False)
    for fault in ledger.faults:
        say(fault)


def _some(lines: Iterable[str]) -> None:
    """As many as one looks at, and how many more there are."""
    rows = list(lines)
    for row in rows[:SHOWN_ROWS]:
        OUT.print(row, highlight=False, markup=False)
    _and_more(len(rows))


def _and_more(count: int) -> None:
    if count > SHOWN_ROWS:
        OUT.print(f"  … and {count - SHOWN_ROWS:,} more", highlight=False)


def show_dry_run(found: DryRun) -> None:
    OUT.print(
        f"would read at most {found.rows:,} rows"
        f"{', from where the checkpoint is' if found.resumes else ''}:",
        highlight=False,
    )
    table = Table("topic", "partition", "from", "to", "rows")
    for each in found.ranges[:SHOWN_ROWS]:
        table.add_row(each.topic, *map(str, (each.partition, each.start, each.end, len(each))))
    OUT.print(table)
    _and_more(len(found.ranges))
    OUT.print(
        f"schema\n{found.schema}\nplan\n{found.plan}", highlight=False, markup=False, soft_wrap=True
    )


def show_report(report: Report) -> None:
    table = Table("topic", "bucket", "producers", "broker", "lake", "p50 ms", "p95 ms", "p99 ms")
    for each in report.buckets[-SHOWN_ROWS:]:
        latencies = (each.latency_p50_ms, each.latency_p95_ms, each.latency_p99_ms)
        table.add_row(
            each.topic,
            f"{each.bucket:%Y-%m-%d %H:%M}",
            _number(each.producer),
            _number(each.broker),
            _number(each.lake),
            *map(_number, latencies),
        )
    OUT.print(table)
    _and_more(len(report.buckets))
    findings = [str(each) for each in report.findings]
    _some(findings)
    _some(fault for fault in report.faults if fault not in findings)
    if report.not_yet_loaded:
        OUT.print(f"{report.not_yet_loaded:,} offsets not loaded yet", highlight=False)
    verdict = f"{len(report.faults)} faults" if report.faults else "nothing missing, nothing twice"
    OUT.print(verdict, highlight=False)


def show_lag(measured: list[PartitionLag]) -> None:
    table = Table("topic", "partition", "done", "end", "lag")
    for each in measured:
        table.add_row(each.topic, *map(str, (each.partition, each.done, each.end, each.lag)))
    OUT.print(table)


def _number(value: Any) -> str:
    return "" if value is None else f"{value:,.0f}"
