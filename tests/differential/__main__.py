"""`python -m tests.differential`: random conversations until one differs."""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.progress import track

from kafkalite.testing.comparison.differences import explain
from tests.compat import brokers
from tests.differential import pieces
from tests.differential.generating import THEMES, Generator, Step
from tests.differential.ledger import Ledger
from tests.differential.memory import Memory
from tests.differential.page import as_page
from tests.differential.pieces import Piece
from tests.differential.report import show, show_piece
from tests.differential.running import Outcome, Runner, Speaker
from tests.differential.shrinking import shrink

STEPS = 25
Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one conversation, as it goes from one process to another."""

    number: int
    asked: tuple[tuple[str, int], ...]
    allowed: tuple[str, ...]  # the rows
    ledger: Ledger
    signature: tuple[str, str] | None
    text: str


def main() -> int:
    options = _options()
    if options.write_page:
        options.write_page.write_text(as_page(), encoding="utf-8")
        return 0
    with ExitStack() as stack:
        pair = [_address(kind, given, stack) for kind, given in _chosen(options)]
        runner = _runner(pair)
        converse_as = partial(_converse, pair, options.seed, options.theme)
        pool = ProcessPoolExecutor(options.workers)
        stack.callback(pool.shutdown, cancel_futures=True)
        earlier = pieces.read(options.total) if options.total else []
        first = options.first or pieces.next_number(earlier, options.seed)
        numbers = range(first, first + options.rounds)
        piece = fuzz(runner, options, first, pool.map(converse_as, numbers))
    show_piece(piece, runner.served)
    if options.total:
        pieces.append(options.total, piece)
        print(f"\nall {len(earlier) + 1} pieces so far:")
        show_piece(pieces.total([*earlier, piece]), runner.served)
    if piece.ledger.is_nothing:
        print("nothing was compared")
        return 1
    return len(piece.unexplained)


def fuzz(
    runner: Runner, options: argparse.Namespace, first: int, findings: Iterator[Finding]
) -> Piece:
    """Until the rounds or the time are over. The same seed makes the same conversations."""
    piece = Piece(options.seed, first)
    began = time.monotonic()
    for found in track(findings, total=options.rounds, transient=True, disable=options.quiet):
        piece.rounds += 1
        piece.asked.update(found.asked)
        piece.allowed.update(found.allowed)
        piece.ledger.update(found.ledger)
        if found.signature is not None:
            _look_into(runner, options, found, piece)
            if len(piece.unexplained) > options.keep_going:
                break
        if time.monotonic() - began > options.seconds:
            break
    piece.seconds = time.monotonic() - began
    return piece


def _converse(pair: list[Address], seed: str, theme: str | None, number: int) -> Finding:
    """In a worker process, which keeps its connections."""
    if not _own:
        _own.append(_runner(pair))
    outcome = converse(_own[0], f"{seed}/{number}", theme)
    rows = map(explain, outcome.allowed)
    return Finding(
        number,
        tuple((step.api, step.version) for step in outcome.steps),
        tuple(row.name for row in rows if row),
        outcome.ledger,
        outcome.differences[0].signature if outcome.differences else None,
        show(outcome) if outcome.differences else "",
    )


_own: list[Runner] = []


def _look_into(
    runner: Runner, options: argparse.Namespace, found: Finding, piece: Piece
) -> None:
    """Repeats a conversation that differed: what a busy machine's timing made is not seen again."""
    assert found.signature is not None
    if found.signature not in piece.unexplained:
        outcome = converse(runner, f"{options.seed}/{found.number}", options.theme)
        print(f"\n--- conversation {options.seed}/{found.number} differs ---")
        if not outcome.differences:
            piece.unconfirmed[found.signature] += 1
            print(f"{found.text}\n(not seen when it was repeated)", flush=True)
            return
        print(show(shrink(runner, outcome)), flush=True)
    piece.unexplained[found.signature] += 1


def converse(runner: Runner, seed: str, theme: str | None = None) -> Outcome:
    rng = random.Random(seed)
    memory = Memory()
    chosen = theme or rng.choice(list(THEMES))
    generator = Generator(rng, memory, runner.served, chosen)

    def steps() -> Iterator[Step]:
        yield from generator.beginning()
        for _ in range(STEPS):
            yield generator.step()

    return runner.run(steps(), memory)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--rounds", type=int, default=100, help="conversations of 26 requests")
    parser.add_argument("--first", type=int, default=0, help="number of the first conversation")
    parser.add_argument("--total", type=Path, metavar="FILE",
                        help="go on with this seed where FILE says it stopped, and note how far")
    parser.add_argument("--workers", type=int, default=3, help="conversations at a time")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this time")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.add_argument("--write-page", type=Path, help="only write the table of differences")
    parser.add_argument("--theme", choices=list(THEMES))
    parser.add_argument("--keep-going", type=int, default=0, metavar="N",
                        help="stop only after more than N kinds of differences")
    parser.add_argument("--kafkalite", metavar="HOST:PORT", help="one that runs already")
    parser.add_argument("--apache-kafka", metavar="HOST:PORT", help="one that runs already")
    return parser.parse_args()


def _chosen(options: argparse.Namespace) -> list[tuple[str, str | None]]:
    return [
        (brokers.KAFKALITE, options.kafkalite),
        (brokers.APACHE_KAFKA, options.apache_kafka),
    ]


def _runner(pair: list[Address]) -> Runner:
    return Runner(*(Speaker(*each) for each in pair))


def _address(kind: str, given: str | None, stack: ExitStack) -> Address:
    if given:
        host, _, port = given.rpartition(":")
        return host, int(port)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkalite-compare-")))
    broker = brokers.start(kind, folder / "broker")
    stack.callback(broker.stop)
    return broker.host, broker.port


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
