"""`python -m tests.differential.migrations`: every cell of the table, asked of both brokers.

A broker of each kind is started for each migration policy, which no running one changes. `--record`
writes what Apache Kafka said, for a test without a JVM.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kafkalite.protocol.messages import (
    CreateTopicsRequest,
    MetadataRequest,
)
from kafkalite.testing.comparison import settling
from kafkalite.testing.comparison.side import Side
from tests.compat import brokers
from tests.compat.brokers import Broker
from tests.differential.group_cells import POLICIES, Cell, all_cells
from tests.differential.group_exceptions import allowed
from tests.differential.group_record import record
from tests.differential.group_scene import PARTITIONS
from tests.differential.group_verdicts import Verdict, WireLine, judge

TOPIC = "orders"
POLICY = "group.consumer.migration.policy"
# A coordinator of Apache Kafka hears of a topic some time after everybody else.
HEARS_S = 2.0
THREADS = 12


class Judge:
    """One broker; any number of threads may ask it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        side = Side(broker.host, broker.port)
        settling.warm_up(side)
        topic = CreateTopicsRequest.Topic(
            name=TOPIC, num_partitions=PARTITIONS, replication_factor=1
        )
        side.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)
        asked = MetadataRequest(topics=[MetadataRequest.Topic(name=TOPIC)])
        while not (topic_id := side.ask(asked, 12).topics[0].topic_id) or not any(topic_id):
            time.sleep(0.1)
        self.topic_id = topic_id
        side.close()
        time.sleep(0 if broker.is_kafkalite else HEARS_S)

    def judge(self, number: int, cell: Cell) -> Verdict:
        lines: list[WireLine] = []

        def open_line() -> WireLine:
            lines.append(WireLine(self.broker.host, self.broker.port))
            return lines[-1]

        try:
            return judge(cell, open_line, f"cell-{number}-{time.time_ns()}", TOPIC, self.topic_id)
        except AssertionError as trouble:
            return [f"trouble: {trouble}"]
        finally:
            for line in lines:
                line.close()

    def judge_all(self, cells: list[Cell]) -> list[Verdict]:
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(self.judge, range(len(cells)), cells))


@contextmanager
def started(policy: str) -> Iterator[tuple[Broker, Broker]]:
    """kafkalite and Apache Kafka with this policy."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkalite-migrations-"))
        pair = []
        for kind in brokers.BROKERS:
            broker = brokers.start(kind, Path(folder) / kind, {POLICY: policy})
            stack.callback(broker.stop)
            pair.append(broker)
        yield pair[0], pair[1]


def compare(cells: list[Cell], pair: Iterable[Broker]) -> list[tuple[Cell, Verdict, Verdict]]:
    """Each cell with what both said, kafkalite first."""
    ours, theirs = (Judge(broker).judge_all(cells) for broker in pair)
    return list(zip(cells, ours, theirs, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.migrations")
    parser.add_argument("--policy", choices=POLICIES, action="append")
    parser.add_argument("--state", default="", help="only states whose name has this in it")
    parser.add_argument("--act", default="", help="only acts whose name has this in it")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    policies = tuple(given.policy or POLICIES)
    told: list[tuple[Cell, Verdict]] = []
    counts: Counter[str] = Counter()
    for policy in policies:
        cells = [
            cell
            for cell in all_cells((policy,))
            if given.state in cell.state and given.act in cell.act
        ]
        with started(policy) as pair:
            for cell, ours, theirs in compare(cells, pair):
                told.append((cell, theirs))
                counts[_verdict_of(cell, ours, theirs)] += 1
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    if given.record:
        record(told)
    return 0 if counts["alike"] and not counts["differ"] else 1


def _verdict_of(cell: Cell, ours: Verdict, theirs: Verdict) -> str:
    if ours == theirs:
        return "alike"
    reason = allowed(cell, ours, theirs)
    if reason is not None:
        return "allowed"
    print(cell)
    for mine, other in zip(ours + [""] * len(theirs), theirs + [""] * len(ours), strict=False):
        if mine != other:
            print(f"    kafkalite     {mine}\n    Apache Kafka  {other}")
        elif mine:
            print(f"    both          {mine}")
    return "differ"


if __name__ == "__main__":
    raise SystemExit(main())
