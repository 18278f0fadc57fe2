"""How far a pipeline is while it runs: a live table where somebody looks, else a line at times.

Owns the choice between them, and that both have the same figures.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from kafkalite.pipelines.common.progress import Progress, Stage

ERR = Console(stderr=True)
KINDS = ("auto", "line", "json", "none")
LINE_EVERY_S = 10.0
SHOWN_PARTITIONS = 16
# The name, the frame of the partitions, what is cut, and the line below all.
LINES_AROUND = 7

Watch = Callable[["Progress"], None]


def watching(name: str, kind: str) -> AbstractContextManager[Watch]:
    """A table where somebody looks, else a line now and then, or nothing."""
    if kind == "none":
        return nullcontext(lambda progress: None)
    if kind == "auto" and _can_draw():
        return live_table(name)
    return nullcontext(lines_of(name, kind))


def _can_draw() -> bool:
    """Whether somebody looks, at a terminal where a table can be drawn over itself."""
    return ERR.is_terminal and not ERR.is_dumb_terminal


def figures(progress: Progress) -> dict[str, Any]:
    """What is told for machines."""
    by_partition: dict[str, dict[str, int]] = {}
    for (topic, partition), lag in sorted(progress.behind.items()):
        by_partition.setdefault(topic, {})[str(partition)] = lag
    return {
        "rows": progress.rows,
        "rows_per_s": round(progress.rows_per_s),
        "bytes_per_s": _rounded(progress.bytes_per_s),
        "batches": progress.batches,
        "batch": progress.batch,
        "batch_rows": progress.reading,
        "lag": progress.lag,
        "lag_by_partition": by_partition,
        "last_commit": progress.committed_at,
        "seconds_left": _rounded(progress.seconds_left),
    }


def words(progress: Progress) -> dict[str, str]:
    """The same for people, but for the partitions."""
    rate = f"{progress.rows_per_s:,.0f} rows/s"
    if progress.bytes_per_s is not None:
        # On the brokers' disks: as they are compressed there.
        rate += f", about {progress.bytes_per_s / 1e6:,.1f} MB/s"
    at = progress.committed_at
    left = progress.seconds_left
    return {
        "rows": f"{progress.rows:,} in {progress.batches:,} batches",
        "under way": _under_way(progress),
        "rate": rate,
        "lag": f"{progress.lag:,}",
        "last commit": "none yet" if at is None else time.strftime("%H:%M:%S UTC", time.gmtime(at)),
        "time left": "not known yet" if left is None else str(timedelta(seconds=round(left))),
    }


def lines_of(name: str, kind: str, clock: Callable[[], float] = time.monotonic) -> Watch:
    """Tells of progress each ten seconds, in one line."""
    is_due = _every(LINE_EVERY_S, clock)

    def watch(progress: Progress) -> None:
        if is_due():
            said = ", ".join(f"{what} {how}" for what, how in words(progress).items())
            if kind == "json":
                said = json.dumps({"command": name, **figures(progress)})
            click.echo(said if kind == "json" else f"{name}: {said}", err=True)

    return watch


@contextmanager
def live_table(name: str) -> Iterator[Watch]:
    """A table that is drawn anew each time."""
    with Live(console=ERR, auto_refresh=False) as live:
        yield lambda progress: live.update(picture(name, progress), refresh=True)


def picture(name: str, progress: Progress) -> Group:
    """The figures, and the partitions that are furthest behind."""
    table = Table.grid(padding=(0, 2))
    for what, how in words(progress).items():
        table.add_row(f"  {what}", how)
    partitions = Table("topic", "partition", "lag")
    furthest = sorted(progress.behind.items(), key=lambda each: (-each[1], each[0]))
    around = len(ERR.render_lines(table)) + LINES_AROUND
    shown = max(1, min(SHOWN_PARTITIONS, ERR.height - around))
    for (topic, partition), lag in furthest[:shown]:
        partitions.add_row(topic, str(partition), f"{lag:,}")
    parts: list[Any] = [Text(name, style="bold"), table, partitions]
    rest = furthest[shown:]
    if rest:
        lag = sum(each[1] for each in rest)
        parts.append(Text(f"… and {len(rest):,} more partitions, lag {lag:,}"))
    return Group(*parts)


@contextmanager
def working(name: str, kind: str, spark: Any) -> Iterator[None]:
    """The same for a command that is no stream, of which only its tasks tell how far it is."""
    from kafkalite.pipelines.common.progress import watched

    if kind == "none":
        yield
    elif kind == "auto" and _can_draw():
        status = ERR.status(f"{name}: planning")
        with status, watched(spark, name, lambda each: status.update(f"{name}: {each}")):
            yield
    else:
        with watched(spark, name, stage_lines(name, kind)):
            yield


def stage_lines(
    name: str, kind: str, clock: Callable[[], float] = time.monotonic
) -> Callable[[Stage], None]:
    is_due = _every(LINE_EVERY_S, clock)

    def tell(stage: Stage) -> None:
        if is_due():
            said = {"stage": stage.number, "tasks": stage.tasks, "tasks_done": stage.done}
            as_json = json.dumps({"command": name, **said, "rows": stage.rows})
            click.echo(as_json if kind == "json" else f"{name}: {stage}", err=True)

    return tell


def _every(seconds: float, clock: Callable[[], float]) -> Callable[[], bool]:
    """True when that long has passed since it was last."""
    told = clock()

    def is_due() -> bool:
        nonlocal told
        now = clock()
        if now - told < seconds:
            return False
        told = now
        return True

    return is_due


def _under_way(progress: Progress) -> str:
    if progress.batch is None:
        return "no batch"
    return f"batch {progress.batch:,} with {progress.reading:,} rows so far"


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)
