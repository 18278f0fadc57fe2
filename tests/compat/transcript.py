"""Transcripts of Apache Kafka's command line tools: what is typed, and what they say to it.

A scene begins with a line `#` and its title. A line of a call is the tool's script and its words;
lines after it that begin with `<` are typed into it, and what it says is indented. `@name` is a
name that is made unique for the run, `{folder}` a folder of the scene's own, and a line
`> file text` puts a file there. A call may end with filters for what is not the same each time:
`| sort`, `| trimmed`, `| words` (one blank between them), `| grep WORD`, `| without WORD`, and
`| numbers`, which shows each number as N. A call that only looks is repeated for a while where
Apache Kafka's broker may not know yet what was decided.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.compat.brokers import Broker
from tests.compat.waiting import PATIENCE_S, POLL_S

FOLDER = Path(__file__).parent / "tools"
INDENT = "    "
TOOLS = "org.apache.kafka.tools."
CONFIGS = "kafka.admin.ConfigCommand"
# Scripts and the classes behind them; those that are no scripts are its own tests of itself.
SCRIPTS = {
    "kafka-acls": "AclCommand",
    "kafka-broker-api-versions": "BrokerApiVersionsCommand",
    "kafka-client-metrics": "ClientMetricsCommand",
    "kafka-cluster": "ClusterTool",
    "kafka-console-consumer": "consumer.ConsoleConsumer",
    "kafka-console-producer": "ConsoleProducer",
    "kafka-consumer-groups": "consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "ConsumerPerformance",
    "kafka-delegation-tokens": "DelegationTokenCommand",
    "kafka-delete-records": "DeleteRecordsCommand",
    "kafka-features": "FeatureCommand",
    "kafka-get-offsets": "GetOffsetShell",
    "kafka-groups": "GroupsCommand",
    "kafka-leader-election": "LeaderElectionCommand",
    "kafka-log-dirs": "LogDirsCommand",
    "kafka-metadata-quorum": "MetadataQuorumCommand",
    "kafka-producer-perf-test": "ProducerPerformance",
    "kafka-reassign-partitions": "reassign.ReassignPartitionsCommand",
    "kafka-console-share-consumer": "consumer.ConsoleShareConsumer",
    "kafka-share-groups": "consumer.group.ShareGroupCommand",
    "kafka-streams-application-reset": "StreamsResetter",
    "kafka-streams-groups": "streams.StreamsGroupCommand",
    "kafka-topics": "TopicCommand",
    "kafka-transactions": "TransactionsCommand",
    "kafka-verifiable-consumer": "VerifiableConsumer",
    "kafka-verifiable-producer": "VerifiableProducer",
    "client-compatibility-test": "ClientCompatibilityTest",
    "log-compaction-tester": "LogCompactionTester",
    "transactional-message-copier": "TransactionalMessageCopier",
    "kafka-e2e-latency": "EndToEndLatency",
}
ADDRESS = {"transactional-message-copier": "--broker-list"}
COMMAND_FIRST = ("kafka-cluster",)
LOOKS = {"--list", "--describe", "list", "describe"}
# What differs between brokers and runs, wherever it stands.
CHANGING = (
    (re.compile(r"((?:TopicId|Cluster ID|ClusterId): +)[\w-]{22}"), r"\1ID"),
    (re.compile(r"\t[\w-]{22}\t"), "\tID\t"),
    (re.compile(r"Epoch: \d+"), "Epoch: N"),
    (re.compile(r": \d+(?: to \d+)? \[usable"), ": [usable"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[:,.]\d{3}"), "TIME"),
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:E-?\d+)?")
# Blank, a line of a Java stack, how a tool that wanted to end its JVM takes that it does not, or a
# line of a tool's own log, which goes where its output went when the first of them was written.
NOISE = re.compile(
    r"\s*|\s+at .*|null|Tools\$Ended|.* error Ended: null .*"
    r"|\d\d:\d\d:\d\d\.\d{3} \[\w+\] [A-Z]+ .*"
)


def class_of(script: str) -> str:
    return CONFIGS if script == "kafka-configs" else TOOLS + SCRIPTS[script]


class Tools(Protocol):
    """Who runs tools by the names of their classes."""

    def run(self, tool: str, *words: str, text: str = "") -> str: ...


@dataclass(slots=True)
class Call:
    line: str
    typed: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # when it was written down


@dataclass(slots=True)
class Scene:
    title: str
    lines: list[str] = field(default_factory=list)

    @property
    def calls(self) -> list[Call]:
        calls: list[Call] = []
        files: list[str] = []
        for line in self.lines:
            if line.startswith("> "):
                files.append(line[2:])
            elif line.startswith("< "):
                calls[-1].typed.append(line[2:])
            elif line.startswith(INDENT):
                calls[-1].said.append(line.removeprefix(INDENT))
            else:
                calls.append(Call(line, [], files))
                files = []
        return calls


def scenes(path: Path) -> list[Scene]:
    found: list[Scene] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            found.append(Scene(line[2:]))
        elif line.strip():
            found[-1].lines.append(line)
    return found


class Stage:
    """Where a scene is played: a broker, the tools, and a folder."""

    def __init__(
        self, broker: Broker, tools: Tools, folder: Path, unique: Callable[[str], str],
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.broker = broker
        self.patience_s = 0 if broker.is_kafkalite else patience_s
        self.tools = tools
        self.folder = folder
        self.unique = unique
        self.names: dict[str, str] = {}

    def play(self, scene: Scene) -> list[str]:
        """The scene's lines as they are with what the tools say now."""
        lines = []
        for call in scene.calls:
            for file in call.files:
                name, _, text = file.partition(" ")
                (self.folder / name).write_text(self._actual(text))
                lines.append(f"> {file}")
            lines += [call.line, *(f"< {line}" for line in call.typed)]
            lines += [f"{INDENT}{said}" for said in self._said(call)]
        return lines

    def _said(self, call: Call) -> list[str]:
        deadline = time.monotonic() + self.patience_s
        only_looks = LOOKS & set(call.line.split())
        while True:
            said = self._perform(call)
            if said == call.said or not only_looks or time.monotonic() >= deadline:
                return said
            time.sleep(POLL_S)

    def _perform(self, call: Call) -> list[str]:
        command, *filters = call.line.split(" | ")
        script, *words = shlex.split(self._actual(command))
        typed = "".join(f"{self._actual(line)}\n" for line in call.typed)
        said = self.tools.run(class_of(script), *self._addressed(script, words), text=typed)
        shown = self._shown(said).splitlines()
        lines = [line.rstrip() for line in shown if not NOISE.fullmatch(line)]
        for each in filters:
            lines = _filtered(lines, *each.split())
        return lines

    def _addressed(self, script: str, words: list[str]) -> list[str]:
        """The words with the broker's address where the script wants it."""
        address = [ADDRESS.get(script, "--bootstrap-server"), self.broker.bootstrap]
        after = 1 if script in COMMAND_FIRST else 0
        return [*words[:after], *address, *words[after:]]

    def _actual(self, text: str) -> str:
        text = text.replace("{folder}", str(self.folder)).replace("{broker}", self.broker.bootstrap)
        return re.sub(r"@(\w+)", lambda found: self._name(found[1]), text)

    def _name(self, short: str) -> str:
        return self.names.setdefault(short, self.unique(short))

    def _shown(self, text: str) -> str:
        for short, name in self.names.items():
            text = text.replace(name, f"@{short}")
        text = text.replace(self.broker.bootstrap, "{broker}").replace(str(self.folder), "{folder}")
        text = text.replace(str(self.broker.folder / "data"), "{data}")
        for pattern, shown in CHANGING:
            text = pattern.sub(shown, text)
        return text


def _filtered(lines: list[str], name: str, *words: str) -> list[str]:
    if name == "trimmed":
        return [line.strip() for line in lines]
    if name == "words":
        return [" ".join(line.split()) for line in lines]
    if name == "sort":
        return sorted(lines)
    if name in ("grep", "without"):
        return [line for line in lines if (words[0] in line) == (name == "grep")]
    if name == "numbers":
        return [re.sub(r"N +", "N ", NUMBER.sub("N", line)) for line in lines]
    raise AssertionError(f"no filter {name!r}")


def rewrite(path: Path, title: str, lines: list[str]) -> None:
    """Puts a scene's lines as they are now into its file."""
    parts = []
    for scene in scenes(path):
        if scene.title == title:
            scene.lines = lines
        parts.append("\n".join([f"# {scene.title}", *scene.lines]))
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
