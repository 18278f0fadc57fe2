"""Conversations with something between: `python -m tests.differential.between`.

Owns two brokers, and does to both at once what no request tells: a pass of the cleaner, retention,
a clean stop and start, a kill. Many conversations talk with both meanwhile, and pause at each such
act; after it each reads everything that both keep of it from both, and that is equal but for rows.
Topics roll often and are compacted soon.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import random
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from tests.compat.brokers import Broker
from tests.differential import acting, pieces, talking
from tests.differential.conversing import Ended
from tests.differential.pair import Pair, take_first_ids
from tests.differential.pieces import Piece
from tests.differential.report import show_piece
from tests.differential.restarting import Restarting
from tests.differential.running import Runner, Speaker
from tests.differential.talking import Turn

ACTS = 4  # of the pair in a round
CONVERSATIONS, STEPS, WORKERS = 16, 30, 4


class Search:
    """Rounds, each with its conversations and acts, which follow from the seed and numbers."""

    def __init__(self, pair: Pair, runner: Runner, options: argparse.Namespace) -> None:
        self.pair, self.runner, self.options = pair, runner, options
        self.piece = Piece(options.seed, options.first)
        self.is_old = False
        addresses = [(side.host, side.port) for side in runner.sides]
        self.workers = [
            ProcessPoolExecutor(
                1, multiprocessing.get_context("spawn"), talking.begin,
                (addresses, runner.served, list(numbers)),
            )
            for numbers in _dealt(range(options.conversations), options.workers)
        ]  # fmt: skip

    def close(self) -> None:
        for worker in self.workers:
            worker.shutdown(cancel_futures=True)

    def go(self) -> None:
        options, piece, began = self.options, self.piece, time.monotonic()
        for number in range(options.first, options.first + options.rounds):
            self._round(number)
            piece.rounds += 1
            piece.seconds = time.monotonic() - began
            print(f"round {number}: {piece}", flush=True)
            if len(piece.unexplained) > options.keep_going or piece.seconds > options.seconds:
                break

    def _round(self, number: int) -> None:
        name, last = f"{self.options.seed}/{number}", None
        acts = random.Random(name).choices(acting.PAIR_ACTS, k=ACTS)
        for act in acts:
            self._turn(Turn(name, self.options.steps, last, act, self.is_old))
            self._act(act)
            last = act
        self._turn(Turn(name, 0, last, None, self.is_old))

    def _turn(self, turn: Turn) -> None:
        """All seats take it, and it is over when the last has."""
        takes = [worker.submit(talking.take, turn) for worker in self.workers]
        for each in takes:
            self._note(each.result())

    def _act(self, act: str) -> None:
        pair, sides = self.pair, self.runner.sides
        if act == acting.RETAIN:
            pair.retain()
        elif act in acting.RESTARTS:
            pair.again(sides, Broker.stop if act == acting.RESTART else Broker.kill)
            self.is_old = True
        pair.clean(sides)
        self.piece.acts[act] += 1

    def _note(self, ended: Iterable[Ended]) -> None:
        piece = self.piece
        for each in ended:
            piece.asked.update(each.asked)
            piece.allowed.update(each.allowed)
            piece.ledger.update(each.ledger)
            piece.acts.update(each.acts)
            if each.signature is not None:
                self._tell(each)
                piece.unexplained[each.signature] += 1

    def _tell(self, each: Ended) -> None:
        options, round_number = self.options, each.name.split("/")[-3]
        print(f"\n--- conversation {each.name} differs {each.text}\n--- its round again:"
              f" python -m tests.differential.between --seed {options.seed} --first {round_number}"
              f" --rounds 1 --conversations {options.conversations} --steps {options.steps}",
              flush=True)  # fmt: skip


def _dealt(numbers: range, hands: int) -> list[range]:
    return [numbers[hand::hands] for hand in range(min(hands, len(numbers)))]


def main() -> int:
    options = _options()
    earlier = pieces.read(options.total) if options.total else []
    options.first = options.first or pieces.next_number(earlier, options.seed)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkalite-between-"))
        pair = Pair(Path(folder))
        stack.callback(pair.end, Broker.stop)
        pair.start()
        runner = Restarting(*(Speaker(each.host, each.port) for each in pair.running))
        stack.callback(runner.close)
        take_first_ids(runner.sides)
        search = Search(pair, runner, options)
        stack.callback(search.close)
        try:
            search.go()
        finally:
            show_piece(search.piece, runner.served)
    if options.total:
        pieces.append(options.total, search.piece)
        print(f"\nall {len(earlier) + 1} pieces so far:")
        show_piece(pieces.total([*earlier, search.piece]), runner.served)
    if search.piece.ledger.is_nothing:
        print("nothing was compared")
        return 1
    return len(search.piece.unexplained)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.between")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=0, help="number of the first round")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--total", type=Path, metavar="FILE",
                        help="go on with this seed where FILE says it stopped, and note how far")
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS, help="at once")
    parser.add_argument("--steps", type=int, default=STEPS, help="of each before an act")
    parser.add_argument("--workers", type=int, default=WORKERS, help="processes that talk")
    parser.add_argument("--seconds", type=float, default=math.inf, help="no round after this time")
    parser.add_argument("--keep-going", type=int, default=0, metavar="N",
                        help="stop only after more than N kinds of differences")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
