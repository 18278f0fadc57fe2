"""`python -m tests.differential`: random conversations until one differs."""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from kafkalite.testing.comparison.differences import as_page
from tests.compat import brokers
from tests.differential.generating import THEMES, Generator, Step
from tests.differential.memory import Memory
from tests.differential.report import show
from tests.differential.running import Outcome, Runner, Speaker
from tests.differential.shrinking import shrink

STEPS = 25


def main() -> int:
    options = _options()
    if options.write_page:
        options.write_page.write_text(as_page(), encoding="utf-8")
        return 0
    with ExitStack() as stack:
        runner = Runner(*(_side(kind, given, stack) for kind, given in _chosen(options)))
        return fuzz(runner, options.seed, options.rounds, options.theme, options.keep_going)


def fuzz(runner: Runner, seed: str, rounds: int, theme: str | None, keep_going: int) -> int:
    """How many conversations differed. The same seed makes the same conversations."""
    asked: Counter[tuple[str, int]] = Counter()
    seen: set[tuple[str, str]] = set()
    began = time.monotonic()
    for number in range(rounds):
        outcome = converse(runner, f"{seed}/{number}", theme)
        asked.update((step.api, step.version) for step in outcome.steps)
        signature = outcome.differences[0].signature if outcome.differences else None
        if signature is not None and signature not in seen:
            seen.add(signature)
            print(f"\n--- conversation {seed}/{number} differs ---")
            print(show(shrink(runner, outcome)), flush=True)
            if len(seen) > keep_going:
                break
    print(f"{sum(asked.values())} requests, {len(asked)} versions of"
          f" {len({api for api, _ in asked})} APIs, {time.monotonic() - began:.0f} s;"
          f" {len(seen)} kinds of unexplained differences")
    return len(seen)


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


def _side(kind: str, given: str | None, stack: ExitStack) -> Speaker:
    if given:
        host, _, port = given.rpartition(":")
        return Speaker(host, int(port))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkalite-compare-")))
    broker = brokers.start(kind, folder / "broker")
    stack.callback(broker.stop)
    return Speaker(broker.host, broker.port)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
