"""What commands print of what others say: scripts read it as it was, and no terminal obeys it."""

from __future__ import annotations

import json
import re

import pytest

from kafkalite.cli._as_program import complain
from kafkalite.cli._output import tell
from kafkalite.cli._starts import begin_at
from kafkalite.cli._where import JSON, NAME, TABLE, YAML
from kafkalite.client.cluster import Cluster, Unsaid
from kafkalite.protocol.messages import CreateTopicsRequest, MetadataRequest
from kafkalite.testing.embedded import EmbeddedKafka

AWKWARD = (
    "a\x7fb", "a\x9b31mb", "a \u2028 b", "a\x85b", "\ufeffx", "\uffff", "\x1b[2J", "ü😀", "1:2",
)  # fmt: skip


@pytest.mark.parametrize("shape", [JSON, YAML, TABLE])
@pytest.mark.parametrize("text", AWKWARD)
def test_all_that_is_printed_can_be_seen(
    shape: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(shape, [{"name": text}], ["name"])
    shown = capsys.readouterr().out
    assert shown.replace("\n", "").isprintable()
    if shape == JSON:
        assert json.loads(shown) == [{"name": text}]
    elif shape == YAML:  # whose double quotes have all escapes of JSON
        [quoted] = re.findall('^- name: (".*")$', shown, re.MULTILINE)
        assert json.loads(quoted) == text


def test_names_are_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    tell(NAME, [{"name": each} for each in AWKWARD], ["name"])
    assert capsys.readouterr().out == "".join(f"{each}\n" for each in AWKWARD)


def test_no_broker_commands_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    complain("no login: \x1b]0;owned\x07\nand ü")
    assert capsys.readouterr().err == "kafkalite: no login: \\x1b]0;owned\\x07\nand ü\n"


def test_what_no_field_has_room_for_is_told() -> None:
    with EmbeddedKafka() as kafka:
        cluster = Cluster([("127.0.0.1", kafka.port)])
        topic = CreateTopicsRequest.Topic(name="t", num_partitions=1 << 31, replication_factor=1)
        for _ in range(2):
            with pytest.raises(Unsaid, match="the protocol cannot say that: CreateTopics"):
                cluster.ask_any(CreateTopicsRequest(topics=[topic], timeout_ms=1))
            assert cluster.ask_any(MetadataRequest(topics=[])).brokers
        cluster.close()


@pytest.mark.parametrize(("text", "at_ms"), [
    ("@1969-12-31T23:59:59.999+00:00", 0), ("@1969-12-31T23:59:59.998+00:00", 0),
    ("@1970-01-01T00:00:00.001+00:00", 1),
])  # fmt: skip
def test_a_time_is_never_a_word_of_the_protocol(text: str, at_ms: int) -> None:
    """In which -1 is the end, and -2 the beginning."""
    assert begin_at(text, "-o").timestamp == at_ms
