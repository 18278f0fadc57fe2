"""`kafkalite group watch`: how groups do, in Burrow's words, looked at again and again.

Owns the screen. Commits are read as they happen, on a thread, from a little before the end on, so
that a first look has something to say.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._as_program import FOUND, Text
from kafkalite.cli._output import (
    Seconds,
    is_meant,
    moment,
    output_option,
    tell,
    tell_missing,
    with_cluster,
)
from kafkalite.cli._where import JSON, TABLE, Where, cluster_options

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster
    from kafkalite.client.survey import Survey
    from kafkalite.metrics.commits import Commits
    from kafkalite.metrics.watched import Watched
    from kafkalite.metrics.windows import PartitionStatus, Place

GROUPS = ("group", "status", "lag", "worst", "worst_status", "worst_lag", "last_commit", "commits")
CLEAR = "\x1b[H\x1b[J"
BAD = "ERR"

Row = dict[str, Any]


@dataclass(slots=True)
class Look:
    found: Survey
    rows: list[Row]


class Watch:
    """Commits come on another thread."""

    def __init__(self, watched: Watched) -> None:
        self._lock = threading.Lock()
        self._watched = watched

    def committed(self, group: str, place: Place, offset: int | None, at_ms: int) -> None:
        with self._lock:
            self._watched.committed(group, place, offset, at_ms)

    def look(self, found: Survey, patterns: tuple[str, ...]) -> Look:
        with self._lock:
            self._watched.note(found)
            windows = self._watched.windows
            ends = {place: end for places in windows.groups.values() for place in places
                    if (end := found.end(place)) is not None}  # fmt: skip
            rows = [
                _row(group, windows.look(group, ends, found.at_ms))
                for group in sorted(windows.groups)
                if is_meant(group, patterns)
            ]
        return Look(found, rows)


def _row(group: str, partitions: list[PartitionStatus]) -> Row:
    from kafkalite.metrics.windows import of_group

    worst = max(partitions, key=lambda each: (each.status, each.lag))
    topic, index = worst.place
    return {
        "group": group, "status": of_group(partitions).name,
        "lag": sum(each.lag for each in partitions),
        "worst": f"{topic}-{index}", "worst_status": worst.status.name, "worst_lag": worst.lag,
        "last_commit": moment(max(each.last.at_ms for each in partitions)),
        "commits": worst.complete,
        "partitions": [
            {"topic": each.place[0], "partition": each.place[1], "status": each.status.name,
             "committed": each.last.offset, "lag": each.lag, "commits": each.complete}
            for each in partitions
        ],
    }  # fmt: skip


@click.command()
@click.argument("patterns", nargs=-1, type=Text(), metavar="[NAME]…")
@cluster_options
@click.option("--every", "every_s", type=Seconds(0.1), default=5.0, show_default=True,
              metavar="SECONDS", help="How often to look.")
@click.option("-n", "--count", "times", type=click.IntRange(1, sys.maxsize),
              help=f"End after so many looks; with {FOUND} when in the last a group is ERR.")
@output_option
def watch(
    patterns: tuple[str, ...], where: Where, every_s: float, times: int | None, shape: str
) -> None:
    """Tell whether groups get on, from what they have committed lately; Ctrl-C ends.

    OK, WARN (it gets on, and falls behind) or ERR, by the partition that does worst: STOP (no more
    commits), STALL (the same offset again and again) or REWIND (it went back). NAME may have * and
    ? in it. With `-o json` each look is one line.
    """
    from kafkalite.metrics.commits import Commits
    from kafkalite.metrics.watched import Watched

    watched = Watch(Watched())
    commits = Commits(where.connect, watched.committed)

    def act(cluster: Cluster) -> None:
        last = None
        for last in islice(_looks(cluster, watched, patterns, every_s, commits), times):
            _show(last, shape)
        if last is not None and any(row["status"] == BAD for row in last.rows):
            sys.exit(FOUND)

    try:
        with_cluster(where, act)
    finally:
        commits.stop()


def _looks(
    cluster: Cluster, watched: Watch, patterns: tuple[str, ...], every_s: float, commits: Commits
) -> Iterator[Look]:
    from kafkalite.client.survey import survey

    watched.look(survey(cluster, with_settings=False), patterns)  # where partitions end
    commits.start()
    while True:
        time.sleep(every_s)
        yield watched.look(survey(cluster, with_settings=False), patterns)


def _show(look: Look, shape: str) -> None:
    found = look.found
    if shape == JSON:
        from kafkalite.client.rendering import as_json

        click.echo(as_json({
            "at_ms": found.at_ms, "cluster": found.cluster_id, "groups": look.rows,
            "missing": found.missing,
        }))  # fmt: skip
    elif shape != TABLE:
        tell(shape, look.rows, GROUPS)
    else:
        at = time.strftime("%H:%M:%S", time.localtime(found.at_ms / 1000))
        clear = CLEAR if sys.stdout.isatty() else ""
        click.echo(f"{clear}{at}  cluster {found.cluster_id}, {len(look.rows)} groups that commit")
        tell(TABLE, look.rows, GROUPS)
        tell_missing(found.missing)
    sys.stdout.flush()
