"""`python -m tests.differential.acls`: random conversations of who may do some things.

Both brokers have StandardAuthorizer. On PLAINTEXT there is one user, so hosts make the difference:
what asks from 127.0.0.1 may do everything, as the brokers themselves do, and the conversation comes
from 127.0.0.2. Its rules are random, and change meanwhile.
"""

from __future__ import annotations

import argparse
import random
import socket
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kafkalite.client.wire import CONNECT_TIMEOUT_S, Wire
from kafkalite.protocol.framing import MAX_FRAME_BYTES, FrameCutter
from kafkalite.protocol.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from kafkalite.security import acl as rules
from kafkalite.security.acl import Acl
from kafkalite.testing.comparison.comparing import Difference
from kafkalite.testing.comparison.conditions import SILENT
from kafkalite.testing.comparison.side import FIRST
from tests.compat import brokers
from tests.differential.generating import THEMES, Generator, Step
from tests.differential.ledger import Ledger
from tests.differential.memory import Memory
from tests.differential.report import show
from tests.differential.running import SILENT_AFTER_S, Outcome, Runner, Speaker, only_ours

GUEST, OWNER = "127.0.0.2", "127.0.0.1"
USER = "User:ANONYMOUS"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
# Apache Kafka gathers what it refuses in hash sets, or in the order of the request among what is
# not there; here it comes first.
ORDERS_OF_REFUSALS = {
    ("DescribeTopicPartitions", "topics[] order"),
    ("OffsetCommit", "topics[] order"),
    ("TxnOffsetCommit", "topics[] order"),
    ("OffsetDelete", "topics[] order"),
    ("DescribeShareGroupOffsets", "groups[].topics[] order"),
}
# What brokers ask of share coordinators: Apache Kafka gathers the answers in hash maps, so that
# they come in their order, and what was named twice once.
STATE_REQUESTS = {
    f"{verb}ShareGroupState" for verb in ("Initialize", "Read", "Write", "Delete")
} | {"ReadShareGroupStateSummary"}
GATHERED = (" order", ".partitions[]")
STEPS, PATIENCE_S, SOON_S = 25, 10.0, 4.0
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


class GuestWire(Wire):
    """From the other address."""

    def send(self, frame: bytes) -> None:
        if self._socket is None:
            self._socket = socket.create_connection(
                (self.host, self.port), CONNECT_TIMEOUT_S, source_address=(GUEST, 0)
            )
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._cutter = FrameCutter(MAX_FRAME_BYTES)
        super().send(frame)


class Guest(Speaker):
    """Who talks comes from one address, and what is done beside it from the other."""

    is_guest = False

    def receive(self, step: Step) -> Any:
        """What Apache Kafka never answers is not waited for as long as usual."""
        frame = self.wire().receive(SILENT_AFTER_S.get(step.api, SOON_S))
        view = self.understand(frame, step.request.API_KEY, step.version)
        return only_ours(view, step) if isinstance(view, dict) else view

    def wire(self, connection: int = FIRST) -> Wire:
        if self.is_guest and connection == FIRST and connection not in self._wires:
            self._wires[connection] = GuestWire(self.host, self.port)
        return super().wire(connection)

    def add(self, acls: list[Acl]) -> None:
        creations = [
            CreateAclsRequest.Creation(
                resource_type=each.kind,
                resource_name=self.names.text_out(each.name),
                resource_pattern_type=each.pattern,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in acls
        ]
        answer = self.ask(CreateAclsRequest(creations=creations), 3)
        assert not any(each.error_code for each in answer.results), answer
        self.wait_for({self.names.text_out(each.name) for each in acls}, acls)

    def forget(self) -> None:
        everything = DeleteAclsRequest.Filter(
            resource_type_filter=rules.ANY, resource_name_filter=None,
            pattern_type_filter=rules.ANY, principal_filter=None, host_filter=GUEST,
            operation=rules.ANY, permission_type=rules.ANY,
        )  # fmt: skip
        self.ask(DeleteAclsRequest(filters=[everything]), 3)
        self._wait(lambda found: not found)

    def wait_for(self, _: set[str], acls: list[Acl]) -> None:
        wanted = {
            (each.kind, self.names.text_out(each.name), each.pattern, each.operation,
             each.permission)
            for each in acls if each.host == GUEST
        }  # fmt: skip
        self._wait(lambda found: wanted <= found)

    def _wait(self, is_there) -> None:
        """A broker of Apache Kafka hears of rules a moment after they were made."""
        request = DescribeAclsRequest(
            resource_type_filter=rules.ANY, resource_name_filter=None,
            pattern_type_filter=rules.ANY, principal_filter=None, host_filter=GUEST,
            operation=rules.ANY, permission_type=rules.ANY,
        )  # fmt: skip
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = {
                (one.resource_type, one.resource_name, one.pattern_type, each.operation,
                 each.permission_type)
                for one in self.ask(request, 3).resources
                for each in one.acls
            }  # fmt: skip
            if is_there(found):
                return
            time.sleep(0.01)
        raise AssertionError("rules were not heard of")


def owners() -> list[Acl]:
    """What lets everything be done from one address, and so nothing from another one."""
    return [
        Acl(kind, rules.CLUSTER_NAME if kind == rules.CLUSTER else rules.WILDCARD, rules.LITERAL,
            USER, OWNER, rules.ALL, rules.ALLOW)
        for kind in KINDS
    ]  # fmt: skip


def random_acls(rng: random.Random) -> list[Acl]:
    """Few or many, on top of nothing or of everything."""
    found = [random_acl(rng) for _ in range(rng.choice((0, 2, 5, 10, 20)))]
    for kind in KINDS:
        if rng.random() < 0.5:
            operation = rng.choice((rules.ALL, rules.ALL, rng.choice(OPERATIONS[kind])))
            name = rules.CLUSTER_NAME if kind == rules.CLUSTER else rules.WILDCARD
            found.append(Acl(kind, name, rules.LITERAL, USER, GUEST, operation, rules.ALLOW))
    return list(dict.fromkeys(found))


def random_acl(rng: random.Random) -> Acl:
    kind = rng.choice((*KINDS, rules.TOPIC))
    is_prefix = kind != rules.CLUSTER and rng.random() < 0.25
    return Acl(
        kind,
        rng.choice(NAMES[kind]),
        rules.PREFIXED if is_prefix else rules.LITERAL,
        rng.choice((USER, rules.EVERYBODY)),
        GUEST,
        rng.choice(OPERATIONS[kind]),
        rules.DENY if rng.random() < 0.25 else rules.ALLOW,
    )


class Conversation:
    """One, with the rules that it was had under."""

    def __init__(self, runner: Runner, sides: tuple[Guest, Guest], seed: str) -> None:
        self.runner, self.sides = runner, sides
        self.rng = random.Random(seed)
        self.rules: list[str] = []
        self.memory = Memory()

    def have(self) -> Outcome:
        theme = self.rng.choice(list(THEMES))
        generator = Generator(self.rng, self.memory, self.runner.served, theme)

        def steps():
            self._add(random_acls(self.rng))
            yield from generator.beginning()
            for _ in range(STEPS):
                if self.rng.random() < 0.08:
                    self._add([random_acl(self.rng)])
                yield self._harmless(generator)

        try:
            return self.runner.run(steps(), self.memory)
        finally:
            for side in self.sides:
                side.forget()

    def _harmless(self, generator: Generator) -> Step:
        """Rules are made beside the conversation: those it makes for hosts of its own stay."""
        while True:
            step = generator.step()
            if step.api not in ("CreateAcls", "DeleteAcls", "UpdateFeatures"):
                return step

    def _add(self, acls: list[Acl]) -> None:
        self.rules += [f"{each}" for each in acls]
        if acls:
            for side in self.sides:
                side.add(acls)


def main() -> int:
    options = _options()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkalite-acls-")))
        sides = []
        for kind in brokers.BROKERS:
            broker = brokers.start(kind, folder / kind, SETTINGS)
            stack.callback(broker.stop)
            sides.append(Guest(broker.host, broker.port))
        ours, theirs = sides
        runner = Runner(ours, theirs)
        for side in sides:
            side.add(owners())
            side.is_guest = True
        return _compare(options, runner, (ours, theirs))


def _compare(options: argparse.Namespace, runner: Runner, sides: tuple[Guest, Guest]) -> int:
    asked, ledger = Counter[str](), Ledger()
    seen: Counter[tuple[str, str]] = Counter()
    deadline = time.monotonic() + options.seconds
    number = options.first - 1
    while time.monotonic() < deadline:
        number += 1
        conversation = Conversation(runner, sides, f"{options.seed}/{number}")
        outcome = conversation.have()
        asked.update(step.api for step in outcome.steps)
        ledger.update(outcome.ledger)
        for found in outcome.differences[:1]:
            if found.signature in ORDERS_OF_REFUSALS or _is_named(found, outcome.steps[-1]):
                continue
            seen[found.signature] += 1
            if seen[found.signature] == 1:
                print(f"--- {options.seed}/{number} ---\n" + "\n".join(conversation.rules))
                print(show(outcome), flush=True)
        if len(seen) > options.keep_going:
            break
    print(f"{number - options.first + 1} conversations, {asked.total()} requests of {len(asked)} "
          f"APIs, {sum(seen.values())} differ")
    for signature, count in seen.items():
        print(count, *signature)
    return len(seen)


def _is_named(found: Difference, step: Step) -> bool:
    return (
        _is_never_answered(found, step)
        or (step.api in STATE_REQUESTS and found.path.endswith(GATHERED))
        or (step.api == "AlterShareGroupOffsets" and _has_negative_partition(step.request))
    )


def _is_never_answered(found: Difference, step: Step) -> bool:
    """All users, asked for by who may not, and offsets of share groups some of whose topics one may
    not see: Apache Kafka fails at saying so."""
    if step.api == "DescribeShareGroupOffsets":
        return found.path == SILENT
    return step.api == "DescribeUserScramCredentials" and step.request.users is None


def _has_negative_partition(request: Any) -> bool:
    """Apache Kafka fails as a whole then, though it knows that there is no such partition."""
    return any(
        each.partition_index < 0 for topic in request.topics for each in topic.partitions
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.acls", description=__doc__)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--keep-going", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
