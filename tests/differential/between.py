"""Conversations with something between: `python -m tests.differential.between`.

Owns two brokers, and does to both at once what no request tells: a pass of the cleaner, retention,
a clean stop and start, a kill. Topics roll often and are compacted soon. After each such act
everything that both keep is read from both, and is equal but for the table's rows.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafkalite.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    IncrementalAlterConfigsRequest,
)
from kafkalite.records.batch import CONTROL_BIT
from kafkalite.testing.comparison import differences, settling
from kafkalite.testing.comparison.comparing import ABSENT, Comparison, Difference
from tests.compat import brokers
from tests.compat.brokers import Broker
from tests.differential.everything import everything
from tests.differential.generating import Generator, Step
from tests.differential.memory import Memory
from tests.differential.pieces import Piece
from tests.differential.report import show, show_piece
from tests.differential.running import Outcome, Runner, Speaker
from tests.differential.unlike import leaves_unlike, parts_states

# Short, so that what happens by itself happens soon.
SETTINGS = {
    "log.cleaner.backoff.ms": "200",
    "log.retention.check.interval.ms": "300",
    "log.segment.delete.delay.ms": "100",
    "log.initial.task.delay.ms": "100",
    "transactional.id.expiration.ms": "604800000",
}
ROLLING = {"segment.ms": "5000"}  # of record time
COMPACTED = {
    "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0", "delete.retention.ms": "0",
    **ROLLING,
}  # fmt: skip
TOPICS = {"apples-RUN": COMPACTED, "pears-RUN": ROLLING}
PARTITIONS = 2
STEPS = 9  # of requests before each act
ACTS = 4  # of a conversation
THEMES = ("log", "log", "transactions", "classic groups", "consumer groups", "administration")
CHECKPOINT = "cleaner-offset-checkpoint"
QUIET_S, PATIENCE_S = 0.9, 20.0
MARKER = "responses[].partitions[].records[].records[].value"
TOPIC_CONFIG, DEFAULT_CONFIG = 1, 5  # sources of settings
EPOCHS = frozenset(
    "current_leader_epoch leader_epoch last_fetched_epoch committed_leader_epoch".split()
)


@dataclass(slots=True)
class Pair:
    """Both brokers, which can be stopped and started under the same address."""

    folder: Path
    running: list[Broker] = field(default_factory=list)

    def start(self) -> None:
        ports = [each.port for each in self.running] or [0, 0]
        with ThreadPoolExecutor() as pool:
            self.running = list(pool.map(self._start, brokers.BROKERS, ports))

    def _start(self, kind: str, port: int) -> Broker:
        return brokers.start(kind, self.folder / kind, SETTINGS, port=port)

    def end(self, how: Callable[[Broker], None]) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(how, self.running))

    def checkpoints(self) -> list[str]:
        """What either cleaner says how far it has come."""
        return [
            "".join(sorted(each.read_text() for each in (self.folder / kind).rglob(CHECKPOINT)))
            for kind in brokers.BROKERS
        ]


class Restarting(Runner):
    """A runner that knows of restarts: each is a new epoch of leaders, and brokers count up to it
    in steps of their own (Apache Kafka by two; kafkalite by one after a kill, and by none where a
    clean stop has left nothing that a leader could have missed)."""

    has_restarted = has_parted = False
    epochs_apart = groups_apart = settings_apart = credentials_apart = 0

    def _compare(self, step: Step, ours: Any, theirs: Any) -> list[Difference]:
        found = super()._compare(step, ours, theirs)
        if not self.has_restarted:
            return found
        groups = [each for each in found if _is_group_of_nobody(each)]
        settings = [each for each in found if _is_setting_that_came_back(each)]
        credentials = [each for each in found if _is_lost_credential(each)]
        odd = [*groups, *settings, *credentials]
        rest = [each for each in found if each not in odd]
        found = [each for each in rest if not _is_epoch(each)]
        self.epochs_apart += len(rest) - len(found)
        self.groups_apart += len(groups)
        self.settings_apart += len(settings)
        self.credentials_apart += len(credentials)
        self.has_parted = self.has_parted or bool(odd)
        return found


def _is_epoch(difference: Difference) -> bool:
    if difference.path == MARKER and difference.around[-2][0]["attributes"] & CONTROL_BIT:
        pair = [int.from_bytes(each[2:]) for each in (difference.ours, difference.theirs)]
        return 0 <= pair[0] < pair[1]  # the epoch of the coordinator that wrote it
    is_one = difference.path.endswith((".leader_epoch", "committed_leader_epoch"))
    return is_one and 0 <= difference.ours < difference.theirs


def _is_group_of_nobody(difference: Difference) -> bool:
    """A group of which only a member's id was told: Apache Kafka records it, kafkalite does not."""
    theirs = difference.theirs
    return (
        difference.signature == ("ListGroups", "groups[]")
        and difference.ours is ABSENT
        and (theirs["protocol_type"], theirs.get("group_state", "Empty")) == ("", "Empty")
    )


def _is_setting_that_came_back(difference: Difference) -> bool:
    """Of a topic that was deleted and made again: Apache Kafka's new start forgets the deletion."""
    if not difference.path.startswith("results[].configs[]."):
        return False
    return difference.beside("config_source") == (DEFAULT_CONFIG, TOPIC_CONFIG)


def _is_lost_credential(difference: Difference) -> bool:
    """Of a user; Apache Kafka's new start may lose some when those of another were deleted."""
    is_one = difference.signature[0] == "DescribeUserScramCredentials"
    told = difference.beside("error_code") if is_one and difference.around else ()
    return told == ("NONE", "RESOURCE_NOT_FOUND")


def _has_half_a_producer(step: Step) -> bool:
    """A producer with an id and without an epoch, which Apache Kafka forgets when it recovers."""
    return step.api == "Produce" and any(
        partition.records is not None
        and partition.records.producer_id >= 0 > partition.records.epoch
        for topic in step.request.topic_data
        for partition in topic.partition_data
    )


def _without_epochs(value: Any) -> None:
    """Nothing in a request names an epoch that one of the two may not have come to."""
    for each in value if isinstance(value, list) else [value]:
        if hasattr(each, "__slots__") and not hasattr(each, "build"):
            for name in each.__slots__:
                if name in EPOCHS:
                    setattr(each, name, -1)
                else:
                    _without_epochs(getattr(each, name))


class Conversation:
    def __init__(self, pair: Pair, runner: Restarting, seed: str) -> None:
        self.pair, self.runner = pair, runner
        self.rng, self.memory, self.outcome = random.Random(seed), Memory(), Outcome()
        self.acts: list[str] = []

    def run(self) -> Outcome:
        runner, outcome = self.runner, self.outcome
        runner.count += 1
        runner.has_restarted = runner.has_parted = False
        for side in runner.sides:
            side.begin(f"{runner.prefix}n{runner.count}e")
        runner.comparison = Comparison(*(side.names for side in runner.sides))
        theme = self.rng.choice(THEMES)
        generator = Generator(self.rng, self.memory, runner.served, theme)
        if self._say(created()):
            for _ in range(ACTS):
                steps = (generator.step() for _ in range(STEPS))
                if not (self._all(steps) and self._act() and self._clean()):
                    break
                if not self._all(everything(self.memory)):
                    break
        self._clean_up()
        return outcome

    def _all(self, steps: Iterator[Step]) -> bool:
        return all(map(self._say, steps))

    def _say(self, step: Step) -> bool:
        """Whether both are in like states afterwards."""
        outcome = self.outcome
        if _has_half_a_producer(step):
            return True
        if self.runner.has_restarted:
            if step.api == "OffsetForLeaderEpoch":
                return True
            _without_epochs(step.request)
        outcome.steps.append(step)
        self.runner._step(step, outcome, self.memory)
        before = [each.request for each in outcome.steps[:-1]]
        return not (
            outcome.differences
            or self.runner.has_parted
            or any(map(parts_states, outcome.allowed))
            or leaves_unlike(step.request, outcome.answers[-1], before)
        )

    def _clean_up(self) -> None:
        self.runner._clean_up(self.outcome)

    # --- acts -------------------------------------------------------------------------------------

    def _act(self) -> bool:
        act = self.rng.choice(ACTIONS)
        self.acts.append(act.__name__.strip("_"))
        return act(self)

    def _topic(self) -> str:
        return self.rng.choice(list(TOPICS))

    def _remake(self) -> bool:
        name = self._topic()
        deleted = DeleteTopicsRequest.Topic(name=name)
        return self._say(
            Step(DeleteTopicsRequest(topics=[deleted], timeout_ms=10_000), 6)
        ) and self._say(created(name))

    def _delete_records(self) -> bool:
        partition = DeleteRecordsRequest.Partition(
            partition_index=self.rng.randrange(PARTITIONS), offset=self.rng.choice((-1, 1, 2, 4))
        )
        topic = DeleteRecordsRequest.Topic(name="pears-RUN", partitions=[partition])
        return self._say(Step(DeleteRecordsRequest(topics=[topic], timeout_ms=10_000), 2))

    def _clean(self) -> bool:
        """Until neither cleaner has had anything to do for a while, as before all that is read."""
        last, since = self.pair.checkpoints(), time.monotonic()
        deadline = since + PATIENCE_S
        while time.monotonic() - since < QUIET_S and time.monotonic() < deadline:
            time.sleep(0.1)
            if (now := self.pair.checkpoints()) != last:
                last, since = now, time.monotonic()
        return True

    def _retain(self) -> bool:
        """A day, of records that are three days old, and some time for it to be done."""
        done = self._say(altered("pears-RUN", "retention.ms", "86400000"))
        time.sleep(2 * QUIET_S)
        return done and self._say(altered("pears-RUN", "retention.ms", "-1"))

    def _restart(self) -> bool:
        return self._again(Broker.stop)

    def _kill(self) -> bool:
        return self._again(Broker.kill)

    def _again(self, how: Callable[[Broker], None]) -> bool:
        for side in self.runner.sides:
            side.close()
        self.pair.end(how)
        self.pair.start()
        for side in self.runner.sides:
            settling.warm_up(side)
        self.runner.has_restarted = True
        return True

    def _administer(self) -> bool:
        generator = Generator(self.rng, self.memory, self.runner.served, "administration")
        partition = AlterPartitionReassignmentsRequest.Partition(partition_index=0, replicas=[1])
        topic = AlterPartitionReassignmentsRequest.Topic(name=self._topic(), partitions=[partition])
        more = CreatePartitionsRequest.Topic(name="pears-RUN", count=PARTITIONS + 1)
        steps = [
            Step(AlterPartitionReassignmentsRequest(topics=[topic]), 1),
            Step(CreatePartitionsRequest(topics=[more], timeout_ms=10_000), 3),
            altered(self._topic(), "max.message.bytes", self.rng.choice(("150", "1048588"))),
            *(generator.step() for _ in range(3)),
        ]
        return self._all(iter(steps))


ACTIONS = (
    *(2 * (Conversation._remake, Conversation._delete_records, Conversation._clean)),
    *(2 * (Conversation._retain, Conversation._administer)),
    Conversation._restart,
    Conversation._kill,
)


def created(*names: str) -> Step:
    topics = [
        CreateTopicsRequest.Topic(
            name=name, num_partitions=PARTITIONS, replication_factor=1,
            configs=[
                CreateTopicsRequest.Config(name=each, value=value)
                for each, value in TOPICS[name].items()
            ],
        )
        for name in names or TOPICS
    ]  # fmt: skip
    return Step(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)


def altered(topic: str, name: str, value: str) -> Step:
    config = IncrementalAlterConfigsRequest.Config(name=name, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequest.Resource(
        resource_type=2, resource_name=topic, configs=[config]
    )
    return Step(IncrementalAlterConfigsRequest(resources=[resource]), 1)


def main() -> int:
    options = _options()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkalite-between-"))
        pair = Pair(Path(folder))
        stack.callback(pair.end, Broker.stop)
        pair.start()
        runner = Restarting(*(Speaker(each.host, each.port) for each in pair.running))
        stack.callback(runner.close)
        piece, acts = _search(pair, runner, options)
    show_piece(piece, runner.served)
    print(f"{sum(acts.values())} acts: {acts}")
    print(f"after restarts: {runner.epochs_apart} epochs of leaders apart,"
          f" {runner.groups_apart} groups of nobody,"
          f" {runner.settings_apart} fields of settings that came back,"
          f" {runner.credentials_apart} of credentials that went")
    if piece.ledger.is_nothing:
        print("nothing was compared")
        return 1
    return len(piece.unexplained)


def _search(
    pair: Pair, runner: Restarting, options: argparse.Namespace
) -> tuple[Piece, dict[str, int]]:
    piece, acts, began = Piece(options.seed, options.first), dict[str, int](), time.monotonic()
    for number in range(options.first, options.first + options.rounds):
        conversation = Conversation(pair, runner, f"{options.seed}/{number}")
        outcome = conversation.run()
        _note(piece, outcome)
        for act in conversation.acts:
            acts[act] = acts.get(act, 0) + 1
        if outcome.differences:
            print(f"\n--- {options.seed}/{number} differs after {conversation.acts} ---")
            print(show(outcome), flush=True)
            piece.unexplained[outcome.differences[0].signature] += 1
            if len(piece.unexplained) > options.keep_going:
                break
        if time.monotonic() - began > options.seconds:
            break
    piece.seconds = time.monotonic() - began
    return piece, acts


def _note(piece: Piece, outcome: Outcome) -> None:
    piece.rounds += 1
    piece.asked.update((step.api, step.version) for step in outcome.steps)
    piece.ledger.update(outcome.ledger)
    rows: Iterator[Any] = map(differences.explain, outcome.allowed)
    piece.allowed.update(row.name for row in rows if row)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.between")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--keep-going", type=int, default=0, metavar="N")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
