"""What a pipeline shows when it is through: tables of what it did, or would do."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from kafkalite.cli._pipeline_progress import ERR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkalite.pipelines.audit import Report
    from kafkalite.pipelines.common.dry_run import DryRun
    from kafkalite.pipelines.common.ledger import Ledger
    from kafkalite.pipelines.common.progress import Progress
    from kafkalite.pipelines.common.translation import Moves
    from kafkalite.pipelines.lag import PartitionLag

# Wide when nobody looks, so that a pipe gets whole lines.
OUT = Console() if sys.stdout.isatty() else Console(width=160)
SHOWN_ROWS = 40


def say(text: str) -> None:
    """A line beside the output."""
    ERR.print(text, highlight=False, markup=False)


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
