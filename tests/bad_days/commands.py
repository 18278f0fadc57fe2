"""The commands that bad days happen to: their words, and how what they wrote is counted.

Owns one case: a command over a filled topic, with its folder and its targets.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bad_days.counting import (
    Record,
    Verdict,
    committed,
    compare,
    out_of_order,
    records,
    rows,
    told_lost,
)
from tests.bad_days.scene import EACH, PARTITIONS, PER_BATCH, SLOWLY, Scene

FRAME = b"\x00\x00\x00\x00"
RULE = "even=CAST(CAST(substring(value, {at}, 5) AS STRING) AS INT) % 2 = 0"
# Where the number stands in a framed value: behind frame and length of an Avro string.
PLAIN_AT, FRAMED_AT = 1, 8
PAD = b"x" * 95
ALL = PARTITIONS * EACH


@dataclass(slots=True)
class Case:
    """One command on one bad day."""

    scene: Scene
    command: "Command"
    topic: str
    registry: str = ""
    made: list[Record] = field(default_factory=list)
    # Of another topic that took the place of this one.
    others: list[Record] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.scene.folder / self.topic

    @property
    def table(self) -> Path:
        return self.folder / "table"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def target(self) -> str:
        return f"{self.topic}-{self.command.suffix}"

    def words(self, *more: str) -> list[str]:
        words = {"topic": self.topic, "folder": str(self.folder), "target": self.target}
        words["servers"] = self.scene.broker.bootstrap
        name, *given = [each.format(**words) for each in self.command.words.split()]
        call = [name, self.topic, "-b", words["servers"], *given]
        if self.command.name == "dlq":
            call += ["--rule", RULE.format(at=FRAMED_AT if self.registry else PLAIN_AT)]
        for each in (*SLOWLY, *self._batches()):
            call += ["--option", each]
        if self.registry:
            call += ["--value-format", "confluent-avro", "--schema-registry", self.registry]
        return [*call, "--ledger", "json", *more]

    def _batches(self) -> list[str]:
        return [f"maxOffsetsPerTrigger={PER_BATCH}"] if self.command.is_stream else []

    def fill(self, **settings: str) -> None:
        self.folder.mkdir()
        self.scene.create(self.topic, PARTITIONS, **settings)
        for partition in range(PARTITIONS):
            numbers = range(partition * EACH, (partition + 1) * EACH)
            values = [self.value(number) for number in numbers]
            self.scene.produce(self.topic, values, partition)
        self.made = self.scene.records(self.topic)
        assert len(self.made) == ALL

    def value(self, number: int) -> bytes:
        """By the first schema, and the last ones of each partition by the second."""
        text = b"%05d" % number + PAD
        if not self.registry:
            return text
        schema = 1 if number % EACH < EACH // 2 else 2
        return FRAME + bytes([schema]) + b"\xc8\x01" + text

    def copied(self) -> list[Record]:
        """What the target has, but for what was told to be of another topic."""
        others = self.told_of_others()
        found = records(self.scene.broker.bootstrap, self.target)
        return [each for each in found if each.value not in others]

    def told_lost(self) -> set[bytes]:
        return told_lost(self.checkpoint, self.made)

    def told_of_others(self) -> set[bytes]:
        """What was read under a wrong name, where a run said from which offset on it may be so."""
        return told_lost(self.checkpoint, self.others)

    def verdict(self, exit_code: int | None) -> Verdict:
        """What is wrong with what is there, now that a run ended so; None: it was killed."""
        must = self.scene.records(self.topic) if exit_code == 0 else []
        return self.command.judge(self, must)


Judge = Callable[[Case, Sequence[Record]], Verdict]


@dataclass(frozen=True, slots=True)
class Command:
    """A command, its words but for the source, and who judges what it wrote."""

    name: str
    words: str
    judge: Judge
    suffix: str = ""
    is_stream: bool = True
    # Where the source is planned and not read yet.
    when: str = "planned 1"


def is_bad(value: bytes) -> bool:
    """By the rule of `dlq`, whatever frame there is."""
    digits = value[7:12] if value.startswith(FRAME) else value[:5]
    return int(digits) % 2 == 1


def _lake(table_format: str) -> Judge:
    def judge(case: Case, must: Sequence[Record]) -> Verdict:
        others = case.told_of_others()
        found = [row for row in rows(case.table, table_format) if row["value"] not in others]
        values = [row["value"] for row in found]
        verdict = compare(case.made, must, values, case.told_lost())
        places = {each.value: (each.partition, each.offset) for each in case.made}
        lie = {row["value"]: (row["partition"], row["offset"]) for row in found}
        moved = (value for value in lie if value in places and lie[value] != places[value])
        verdict.add("out of their place", moved)
        return verdict

    return judge


def _lag(case: Case, must: Sequence[Record]) -> Verdict:
    """A group is never ahead of its table, and at the end in the end."""
    verdict = _lake("delta")(case, must)
    loaded = Counter(row["partition"] for row in rows(case.table, "delta"))
    servers = case.scene.broker.bootstrap
    ends = Counter(each.partition for each in case.made)
    there = committed(servers, f"{case.topic}-group", case.topic, len(ends))
    for partition, offset in there.items():
        if offset > loaded[partition]:
            verdict.faults.append(f"the group is at {offset}, the table at {loaded[partition]}")
    if must and there != ends:
        verdict.faults.append(f"the group is at {there}")
    return verdict


def _letters(case: Case, must: Sequence[Record]) -> Verdict:
    found = [each.value for each in case.copied()]
    bad = [each for each in must if is_bad(each.value)]
    made = [each for each in case.made if is_bad(each.value)]
    return compare(made, bad, found, case.told_lost())


def _again(case: Case, must: Sequence[Record]) -> Verdict:
    return compare(case.made, must, [each.value for each in case.copied()], set())


def _copy(case: Case, must: Sequence[Record]) -> Verdict:
    copy = case.copied()
    verdict = compare(case.made, must, [each.value for each in copy], case.told_lost())
    verdict.add("out of their place", out_of_order(copy, case.made))
    said = {each.value: (each.key, each.headers) for each in case.made}
    changed = {each.value for each in copy if said.get(each.value) != (each.key, each.headers)}
    verdict.add("with another key or header", changed & said.keys())
    return verdict


def _latest(case: Case, must: Sequence[Record]) -> Verdict:
    """The last value of each key, and each key once."""
    others = case.told_of_others()
    found = [row for row in rows(case.table, "delta") if row["value"] not in others]
    newest = {(each.partition, each.key): each for each in must}
    values = [row["value"] for row in found]
    verdict = compare(case.made, list(newest.values()), values, case.told_lost())
    keys = Counter((row["partition"], row["key"]) for row in found)
    verdict.add("keys twice", (key for (_, key), count in keys.items() if count > 1))
    return verdict


def _reports(case: Case, must: Sequence[Record]) -> Verdict:
    """Each report that was written is whole, and the table is as it was."""
    verdict = _lake("delta")(case, case.made[:ALL])
    report = case.folder / "report"
    sums: Counter[str] = Counter()
    for row in rows(report, "delta") if report.exists() else []:
        sums[str(row["audited_at"])] += row["lake"]
    verdict.faults += [f"a report of {count} rows" for count in sums.values() if count != ALL]
    if must and not sums:
        verdict.faults.append("no report, and exit code 0")
    return verdict


_TABLE = "--path {folder}/table --checkpoint {folder}/checkpoint"
_KEPT = "--checkpoint {folder}/checkpoint"

COMMANDS = {
    each.name: each
    for each in (
        Command("to-lake", f"to-lake {_TABLE}", _lake("delta")),
        Command("to-lake-parquet", f"to-lake {_TABLE} --format parquet", _lake("parquet")),
        Command("dlq", f"dlq --dead-letters {{target}} {_KEPT}", _letters, suffix="dead"),
        Command("snapshot", f"snapshot {_TABLE} --follow", _latest),
        Command(
            "mirror",
            f"mirror --to-bootstrap-servers {{servers}} --rename {{target}} {_KEPT}",
            _copy,
            suffix="copy",
        ),
        Command(
            "replay",
            "replay --to {target} --state {folder}/checkpoint",
            _again,
            suffix="again",
            is_stream=False,
            when="after rows",
        ),
        Command("lag", f"to-lake {_TABLE} --commit-group {{topic}}-group", _lag),
        Command(
            "audit",
            f"audit {_TABLE} --report {{folder}}/report",
            _reports,
            is_stream=False,
            when="before audit",
        ),
    )
}
# Those whose values are read by a schema that they name.
DECODING = ("to-lake", "to-lake-parquet", "dlq", "snapshot")
TO_TOPICS = ("dlq", "mirror", "replay")
