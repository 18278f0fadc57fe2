"""What a pipeline shows on the terminal: a bar while it runs, tables of what it did or would do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafkalite.pipelines.audit import Report
    from kafkalite.pipelines.common.dry_run import DryRun
    from kafkalite.pipelines.common.running import Progress
    from kafkalite.pipelines.lag import PartitionLag

# Wide when nobody looks, so that a pipe gets whole lines.
OUT = Console() if sys.stdout.isatty() else Console(width=160)
ERR = Console(stderr=True)
SHOWN_ROWS = 40


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
    with Bar(*columns, console=ERR, disable=not ERR.is_terminal) as bar:
        task = bar.add_task(name, total=1, rate=0.0, lag=0)

        def watch(progress: Progress) -> None:
            # A stream that goes on passes what lay ahead when it began.
            total = max(progress.total, progress.rows)
            lag = progress.lag if progress.batches else progress.total
            bar.update(
                task, total=total, completed=progress.rows, rate=progress.rows_per_s, lag=lag
            )

        yield watch


def show_progress(name: str, progress: Progress) -> None:
    OUT.print(
        f"{name}: {progress.rows:,} rows in {progress.batches} batches, lag {progress.lag:,}",
        highlight=False,
    )
    for (topic, partition), offset in sorted(progress.reached.items())[:SHOWN_ROWS]:
        OUT.print(f"  {topic}-{partition} up to offset {offset}", highlight=False)
    for loss in progress.losses[:SHOWN_ROWS]:
        OUT.print(f"  lost: {loss}", highlight=False)


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
    for finding in report.findings[:SHOWN_ROWS]:
        OUT.print(str(finding), highlight=False)
    for fault in report.faults[:SHOWN_ROWS]:
        if fault not in map(str, report.findings):
            OUT.print(fault, highlight=False)
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
