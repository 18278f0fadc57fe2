"""Commands before options: what argparse4j makes of the words, in Apache Kafka's own layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalite.tools.cluster import COMMANDS
from kafkalite.tools.running import main
from kafkalite.tools.subcommands import Parser

# Calls and what Apache Kafka's tools said to them.
SAID = [
    block.partition("\n")
    for block in (Path(__file__).parent / "commands.txt").read_text().split("$ ")
    if block
]


@pytest.mark.parametrize(("call", "said"), [(call, said) for call, _, said in SAID])
def test_help_and_complaints(call: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    asks_help = "--help" in call and "error:" not in said
    help_fails = call.startswith(("kafka-cluster", "kafka-transactions"))
    ends_well = "--version" in call or (asks_help and not help_fails)
    assert main(call.split()) == (0 if ends_well else 1)
    wrote = capsys.readouterr()
    shown = [line.removeprefix("    ") for line in said.rstrip("\n").split("\n")]
    assert (wrote.out + wrote.err).rstrip("\n").split("\n") == shown


@pytest.mark.parametrize("words", [
    ["--bootstrap-server", "a:1"], ["--bootstrap-server=a:1"], ["-b", "a:1"], ["-ba:1"],
    ["-b=a:1"], ["--bootstrap-s", "a:1"],
])
def test_an_option_in_all_its_ways(words: list[str]) -> None:
    found = Parser("kafka-cluster", "", COMMANDS).read(["cluster-id", *words])
    assert found == ("cluster-id", {"bootstrap-server": "a:1"})


@pytest.mark.parametrize(("words", "said"), [
    (["--boot", "a:1"], "could  match --bootstrap-\ncontroller, --bootstrap-server"),
    (["-b"], "expected   one\nargument"),
    (["-b", "--config"], "expected   one\nargument"),
])
def test_what_is_wrong(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kafka-cluster", "cluster-id", *words]) == 1
    assert capsys.readouterr().err.endswith(f"{said}\n")


def test_what_comes_with_a_version_and_what_a_feature_needs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["kafka-features", "version-mapping", "--release-version", "4.0"]) == 0
    needs = "eligible.leader.replicas.version=1"
    assert main(["kafka-features", "feature-dependencies", "--feature", needs]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "metadata.version=25 (4.0)", "kraft.version=1", "transaction.version=2", "group.version=1",
        "eligible.leader.replicas.version=0", "share.version=0", "streams.version=0",
        f"{needs} requires:", "    metadata.version=23 (4.0-IV1)",
    ]  # fmt: skip
