"""`python -m tests.differential.acls`: random requests of random users under random access rules.

Both brokers have StandardAuthorizer. Rules are made on a listener without logins, whose user may do
everything; the conversations come to one with PLAIN. A conversation goes through a few sets, each
of rules and of one user who asks under them. Several processes converse at once: each from an
address of its own, for which alone its rules hold.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from kafkalite.security import acl as rules
from kafkalite.security.acl import Acl
from kafkalite.testing.comparison.comparing import Difference
from kafkalite.testing.comparison.conditions import SILENT
from tests.compat import brokers
from tests.differential.acl_sides import USERS, Guest, GuestRunner, settings
from tests.differential.conversing import is_of_all_brokers
from tests.differential.generating import THEMES, Generator, Step
from tests.differential.ledger import Ledger
from tests.differential.memory import Memory
from tests.differential.report import show
from tests.differential.running import Outcome

# Apache Kafka gathers what it refuses in hash sets, or in the order of the request among what is
# not there; here it comes first.
ORDERS_OF_REFUSALS = {
    ("DescribeTopicPartitions", "topics[] order"),
    ("OffsetCommit", "topics[] order"),
    ("TxnOffsetCommit", "topics[] order"),
    ("OffsetDelete", "topics[] order"),
    # By the coordinators' partitions, in the order of a hash map.
    ("ShareGroupDescribe", "groups[] order"),
}
SHARING = {
    "share groups": "ShareGroupHeartbeat ShareGroupDescribe ShareFetch ShareAcknowledge"
    " DescribeShareGroupOffsets AlterShareGroupOffsets DeleteShareGroupOffsets Produce ListOffsets"
    " InitializeShareGroupState InitializeShareGroupState ReadShareGroupState WriteShareGroupState"
    " DeleteShareGroupState ReadShareGroupStateSummary ReadShareGroupStateSummary"
}
SETS, STEPS = 3, 8  # of a conversation; of a set
CREATED_CHANCE = 0.8  # that there are topics before the first set
ADDED_CHANCE = 0.3  # that a set is the one before and some rules more
# Made beside the conversation are rules; features would change for all of them.
NEVER = frozenset(("CreateAcls", "DeleteAcls", "UpdateFeatures"))
KINDS = (rules.TOPIC, rules.GROUP, rules.CLUSTER, rules.TRANSACTIONAL_ID)
NAMES = {
    rules.TOPIC: ("apples-RUN", "pears-RUN", "plums-RUN", "__consumer_offsets", "app", "*"),
    rules.GROUP: ("readers-RUN", "clerks-RUN", "re", "*"),
    rules.CLUSTER: (rules.CLUSTER_NAME,),
    rules.TRANSACTIONAL_ID: ("till-RUN", "bank-RUN", "ti", "*"),
}
OPERATIONS = {
    rules.TOPIC: (2, 3, 3, 4, 4, 5, 6, 7, 8, 8, 10, 11),
    rules.GROUP: (2, 3, 3, 6, 8, 8, 10, 11),
    rules.CLUSTER: (2, 5, 7, 8, 9, 10, 11, 12),
    rules.TRANSACTIONAL_ID: (2, 4, 4, 8),
}
ELSEWHERE = "10.9.8.7"
Address = tuple[str, int, int]  # host, the port without logins and the one with them


def random_acls(rng: random.Random, user: str, host: str) -> list[Acl]:
    """Few or many, on top of nothing or of everything."""
    found = [random_acl(rng, host) for _ in range(rng.choice((0, 2, 5, 10, 20)))]
    for kind in KINDS:
        if rng.random() < 0.5:
            operation = rng.choice((rules.ALL, rules.ALL, rng.choice(OPERATIONS[kind])))
            name = rules.CLUSTER_NAME if kind == rules.CLUSTER else rules.WILDCARD
            principal = rng.choice((f"User:{user}", rules.EVERYBODY))
            found.append(
                Acl(kind, name, rules.LITERAL, principal, host, operation, rules.ALLOW)
            )
    return list(dict.fromkeys(found))


def random_acl(rng: random.Random, host: str) -> Acl:
    kind = rng.choice((*KINDS, rules.TOPIC))
    is_prefix = kind != rules.CLUSTER and rng.random() < 0.25
    return Acl(
        kind,
        rng.choice(NAMES[kind]),
        rules.PREFIXED if is_prefix else rules.LITERAL,
        rng.choice((*(f"User:{user}" for user in USERS), rules.EVERYBODY)),
        host if rng.random() < 0.9 else ELSEWHERE,
        rng.choice(OPERATIONS[kind]),
        rules.DENY if rng.random() < 0.25 else rules.ALLOW,
    )


def everything(user: str, host: str) -> list[Acl]:
    return [
        Acl(kind, rules.CLUSTER_NAME if kind == rules.CLUSTER else rules.WILDCARD, rules.LITERAL,
            f"User:{user}", host, rules.ALL, rules.ALLOW)
        for kind in KINDS
    ]  # fmt: skip


class Conversation:
    """One, with the rules that it was had under."""

    def __init__(self, runner: GuestRunner, host: str, seed: str) -> None:
        self.runner, self.host = runner, host
        self.rng = random.Random(seed)
        self.rules: list[Acl] = []
        self.told: list[str] = []
        self.sets = 0
        self.memory = Memory()

    def have(self) -> Outcome:
        themes = {**THEMES, **SHARING}
        theme = self.rng.choice(list(themes))
        generator = Generator(
            self.rng, self.memory, self.runner.served, theme if theme in THEMES else "topics"
        )
        generator.apis = [name for name in themes[theme].split() if name in self.runner.served]
        return self.runner.run(self._steps(generator), self.memory)

    def _steps(self, generator: Generator):
        if self.rng.random() < CREATED_CHANCE:
            self._change(USERS[0], everything(USERS[0], self.host))
            yield from generator.beginning()
        for _ in range(SETS):
            self._begin_set()
            for _ in range(STEPS):
                yield self._harmless(generator)

    def _begin_set(self) -> None:
        """Another user, other rules."""
        user = self.rng.choice(USERS)
        if self.rules and self.rng.random() < ADDED_CHANCE:
            self.rules += [random_acl(self.rng, self.host) for _ in range(3)]
        else:
            self.rules = random_acls(self.rng, user, self.host)
        self.sets += 1
        self._change(user, self.rules)

    def _change(self, user: str, wanted: list[Acl]) -> None:
        self.rules = list(dict.fromkeys(wanted))
        self.told.append(f"as {user}, under\n" + "\n".join(map(str, self.rules)))
        self.runner.begin_set(user, self.rules)

    def _harmless(self, generator: Generator) -> Step:
        while True:
            step = generator.step()
            if step.api not in NEVER and not is_of_all_brokers(step):
                return step


@dataclass(slots=True)
class Found:
    """What came of some conversations, as it goes from one process to another."""

    conversations: int = 0
    sets: int = 0
    asked: Counter[str] = field(default_factory=Counter)
    ledger: Ledger = field(default_factory=Ledger)
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    unconfirmed: Counter[tuple[str, str]] = field(default_factory=Counter)
    named: Counter[str] = field(default_factory=Counter)
    texts: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, other: Found) -> None:
        self.conversations += other.conversations
        self.sets += other.sets
        self.ledger.update(other.ledger)
        self.asked.update(other.asked)
        self.seen.update(other.seen)
        self.unconfirmed.update(other.unconfirmed)
        self.named.update(other.named)
        for signature, text in other.texts.items():
            self.texts.setdefault(signature, text)

    def take(self, name: str, conversation: Conversation, outcome: Outcome) -> None:
        self.conversations += 1
        self.sets += conversation.sets
        self.asked.update(step.api for step in outcome.steps)
        self.ledger.update(outcome.ledger)
        for found in outcome.differences[:1]:
            if not _first_unnamed(outcome):
                self.named[f"{found.api} {found.path}"] += 1
                continue
            self.seen[found.signature] += 1
            text = "\n".join((f"--- {name} ---", *conversation.told, show(outcome)))
            self.texts.setdefault(found.signature, text)


def _first_unnamed(outcome: Outcome) -> bool:
    """Whether it differs, and in a way that has no name here."""
    return any(not _is_named(each, outcome.steps[-1]) for each in outcome.differences[:1])


def _is_named(found: Difference, step: Step) -> bool:
    return (
        found.signature in ORDERS_OF_REFUSALS
        or _is_never_answered(found, step)
        or (step.api == "AlterShareGroupOffsets" and _has_negative_partition(step))
        or (step.api == "DescribeShareGroupOffsets" and _names_no_partition(step))
    )


def _is_never_answered(found: Difference, step: Step) -> bool:
    """All users, asked for by who may not, and offsets of share groups some of whose topics one may
    not see: Apache Kafka fails at saying so."""
    if step.api == "DescribeShareGroupOffsets":
        return found.path == SILENT
    return step.api == "DescribeUserScramCredentials" and step.request.users is None


def _has_negative_partition(step: Step) -> bool:
    """Apache Kafka fails as a whole then, though it knows that there is no such partition."""
    return any(
        each.partition_index < 0 for topic in step.request.topics for each in topic.partitions
    )


def _names_no_partition(step: Step) -> bool:
    """Apache Kafka fails where a topic is named without partitions, which no client does."""
    return any(
        not topic.partitions for group in step.request.groups for topic in group.topics or ()
    )


# --- processes ------------------------------------------------------------------------------------

_guests: list[GuestRunner] = []


def converse(pair: list[Address], host: str, names: list[str]) -> Found:
    """In a worker: the conversations of these names."""
    if not _guests or _guests[0].host != host:
        _guests[:] = [GuestRunner(*(Guest(*each, host) for each in pair), host=host)]
    [runner] = _guests
    found = Found()
    for name in names:
        conversation = Conversation(runner, host, name)
        outcome = conversation.have()
        if _first_unnamed(outcome) and not _is_so_again(runner, host, name, outcome):
            found.unconfirmed.update(each.signature for each in outcome.differences[:1])
            outcome.differences = []
        found.take(name, conversation, outcome)
    return found


def _is_so_again(runner: GuestRunner, host: str, name: str, outcome: Outcome) -> bool:
    """Whether the same conversation differs in the same way when it is had once more: at which
    moment a member's time runs out is chance, on a busy machine."""
    again = Conversation(runner, host, name).have()
    return [each.signature for each in again.differences[:1]] == [
        each.signature for each in outcome.differences[:1]
    ]


def main() -> int:
    options = _options()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkalite-acls-")))
        pair: list[Address] = []
        for kind in brokers.BROKERS:
            plain, controller, guests = brokers.free_ports(3)
            given = settings(plain, controller, guests, options.everybody)
            broker = brokers.start(kind, folder / kind, given, port=plain)
            stack.callback(broker.stop)
            pair.append((broker.host, broker.port, guests))
        return _compare(options, pair)


def _compare(options: argparse.Namespace, pair: list[Address]) -> int:
    began, found = time.monotonic(), Found()
    with ExitStack() as stack:
        lines = [
            stack.enter_context(ProcessPoolExecutor(1, get_context("spawn")))
            for _ in range(options.workers)
        ]
        number, under_way = options.first, []
        while found.sets < options.sets and time.monotonic() - began < options.seconds:
            for index, line in enumerate(lines):
                names = [f"{options.seed}/{number + each}" for each in range(options.batch)]
                number += options.batch
                under_way.append(line.submit(converse, pair, f"127.0.0.{2 + index}", names))
            for each in under_way:
                _tell(found, each.result())
            under_way.clear()
            spent_s = time.monotonic() - began
            print(f"{found.sets} sets, {found.asked.total()} requests, {spent_s:.0f} s",
                  file=sys.stderr, flush=True)
            if len(found.seen) > options.keep_going:
                break
    for row in found.ledger.lines():
        print(row)
    print(f"{found.sets} sets of rules in {found.conversations} conversations, "
          f"{found.asked.total()} requests of {len(found.asked)} APIs, "
          f"{found.seen.total()} differ, {time.monotonic() - began:.0f} s")
    for named, count in found.named.most_common():
        print(f"{count:6} named: {named}")
    for signature, count in found.unconfirmed.items():
        print(f"{count:6} seen once and not when it was repeated:", *signature)
    for signature, count in found.seen.items():
        print(count, *signature)
    return len(found.seen)


def _tell(found: Found, more: Found) -> None:
    for signature, text in more.texts.items():
        if signature not in found.texts:
            print(text, flush=True)
    found.add(more)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.acls", description=__doc__)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--sets", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=3_600)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=10, help="conversations between two looks")
    parser.add_argument("--keep-going", type=int, default=0)
    parser.add_argument(
        "--everybody", action="store_true", help="may do what no rule is about; with one worker"
    )
    options = parser.parse_args()
    if options.everybody and options.workers > 1:
        parser.error("--everybody goes with --workers 1: rules of others would decide")
    return options


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
