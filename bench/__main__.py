"""Measures kafkalite beside Apache Kafka: `python -m bench`, or `make bench`.

    python -m bench                       # every suite; takes its time
    python -m bench --quick               # the core, in under three minutes
    python -m bench --suites raw,latency  # some of them; their rows replace those of before
    python -m bench --suites raw --only "produce 64 KB"     # some rows, shown, and kept with --keep
    python -m bench --compiled            # kafkalite beside itself as `make compiled` built it
    python -m bench --list

Rows go to bench/results/latest.json, a table and plots to docs/performance.md; those of --compiled
go to a file and a table of their own. Only ratios of one run mean something: both brokers are
measured in turns, on the same machine, in the same minutes.
"""

from __future__ import annotations

import argparse
import importlib
import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console
from rich.status import Status

from bench import pair, report, rows
from bench.pair import Run
from bench.rows import Row


@dataclass(slots=True, frozen=True)
class Suite:
    """A module with `measure`, which yields rows."""

    name: str
    module: str
    is_shared: bool  # takes the two brokers that run for all; else starts what it needs
    is_core: bool  # part of a quick run
    what: str
    is_for_compiled: bool = False  # has rows of kafkalite compiled, too

    @property
    def measure(self) -> Callable[..., Iterator[Row]]:
        found: Any = importlib.import_module(f"bench.{self.module}")
        measure: Callable[..., Iterator[Row]] = found.measure
        return measure


SUITES = (
    Suite("requests", "requests", False, False, "requests without a network", True),
    Suite("raw", "produce_fetch", True, True, "produce and fetch by a raw client", True),
    Suite("latency", "latency", True, True, "from producing to consuming, and the tail's wake-up",
          True),
    Suite("clients", "clients", True, False, "stock clients end to end"),
    Suite("groups", "groups", True, True, "rebalances and commits"),
    Suite("sharing", "sharing", True, False, "share groups and streams groups"),
    Suite("transactions", "transactions", True, False, "what exactly-once costs"),
    Suite("start", "startup", False, True, "start to first acknowledgement, memory"),
    Suite("stand-in", "stand_in", False, False, "what a test suite pays for its broker"),
    Suite("fail-over", "fail_over", False, False, "a leader that goes, until others acknowledge"),
    Suite("growth", "scale", False, False, "topics, partitions, connections, a long log"),
    Suite("fairness", "fairness", False, False, "what others wait beside large requests"),
    Suite("security", "security", False, False, "TLS, handshakes, logins and access rules"),
    Suite("command-line", "command_line", False, False, "start, produce and consume beside kcat"),
    Suite("log", "log", False, False, "the log alone: append, open, compaction, partitions"),
    Suite("spark", "spark", True, False, "a million records through Spark"),
)


def main() -> None:
    arguments = _arguments()
    console = Console(width=140)
    if arguments.list:
        for suite in SUITES:
            aside = "" if suite.is_core else " (not in --quick)"
            console.print(f"{suite.name:14}{suite.what}{aside}")
        return
    _allow_descriptors()
    if arguments.compiled:
        pair.check_compiled()
    found: list[Row] = []
    with console.status("starting") as status:
        run = Run(arguments.quick, arguments.rounds or (3 if arguments.quick else 5),
                  arguments.only, arguments.compiled, partial(_tell, console, status))  # fmt: skip
        for row in _measured(run, _chosen(arguments)):
            found.append(row)
            console.print(report.line(row))
    console.print(report.table(found))
    if arguments.compiled:
        console.print(report.table((row.as_compiled for row in found), "kafkalite compiled"))
    if not arguments.only or arguments.keep:
        path = rows.COMPILED if arguments.compiled else rows.LATEST
        put_in = rows.exchanged if arguments.only else rows.merged
        every = put_in(rows.load(path), found)
        rows.store(every, report.machine(), path)
        (report.write_compiled if arguments.compiled else report.write)(every)


def _tell(console: Console, status: Status, what: str) -> None:
    """How far it is; line by line where nobody sees a line change."""
    if console.is_terminal:
        status.update(what)
    else:
        print(what, file=sys.stderr, flush=True)


def _measured(run: Run, suites: list[Suite]) -> Iterator[Row]:
    shared = [suite for suite in suites if suite.is_shared]
    if shared:
        run.tell("starting both brokers")
        with pair.both(is_compiled=run.is_compiled) as targets:
            for suite in shared:
                yield from suite.measure(run, targets)
    for suite in suites:
        if not suite.is_shared:
            yield from suite.measure(run)


def _chosen(arguments: argparse.Namespace) -> list[Suite]:
    suites = [suite for suite in SUITES if suite.is_for_compiled or not arguments.compiled]
    if not arguments.suites:
        return [suite for suite in suites if suite.is_core or not arguments.quick]
    names = arguments.suites.split(",")
    unknown = set(names) - {suite.name for suite in suites}
    if unknown:
        raise SystemExit(f"no suite {', '.join(sorted(unknown))}; see --list")
    return [suite for suite in suites if suite.name in names]


def _allow_descriptors() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="the core, in under three minutes")
    parser.add_argument("--suites", default="", help="names with commas between; see --list")
    parser.add_argument("--only", default="", help="rows with this in their name; not kept")
    parser.add_argument("--compiled", action="store_true", help="with kafkalite compiled, too")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="keep what --only measured, too")
    parser.add_argument("--list", action="store_true", help="name the suites")
    return parser.parse_args()


if __name__ == "__main__":
    main()
