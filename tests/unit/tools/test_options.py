"""The words of a call: what joptsimple makes of them, and what a tool says when they are wrong."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalite.tools.failures import Failure, WrongUse
from kafkalite.tools.help import pieces
from kafkalite.tools.options import Given, Option
from kafkalite.tools.running import main
from kafkalite.tools.table import CLASSES, MODULES

HERE = Path(__file__).parent
# Said by Apache Kafka's tools. What --help prints; the operations of kafka-acls are a set there, in
# another order each time:
HELP = HERE / "help"
# What each option of kafka-topics, and each pair of describing, ends with before anybody is asked:
TOPIC_OPTIONS = HERE / "topic_options.txt"
# What wrong uses of kafka-acls end with:
ACL_OPTIONS = HERE / "acl_options.txt"

OPTIONS = [
    Option("topic", "A topic.", "topic"),
    Option("count", "How many.", "count", int, default=3),
    Option("all", "All.", without=frozenset(("topic",))),
    Option("maybe", "Perhaps with a value.", "value", may_lack_argument=True),
]


def given(*words: str) -> Given:
    return Given(OPTIONS).read(words)


@pytest.mark.parametrize("words", [
    ("--topic", "a"), ("--topic=a",), ("-topic", "a"), ("-topic=a",), ("--all", "--topic", "a"),
])
def test_an_argument_is_the_next_word_or_stands_behind_an_equals_sign(
    words: tuple[str, ...],
) -> None:
    assert given(*words).one("topic") == "a"


def test_what_looks_like_an_option_is_taken_as_an_argument() -> None:
    assert given("--count", "-4").one("count") == -4
    assert given("--topic", "--all").one("topic") == "--all"
    assert given("--maybe", "--all").has("all")


def test_an_option_that_is_not_given_is_its_default() -> None:
    assert given().one("count") == 3
    assert given().one("topic") is None
    assert not given().has("count")


def test_words_without_an_option_are_kept() -> None:
    assert given("a", "--all", "b", "--", "--topic").others == ["a", "b", "--topic"]


@pytest.mark.parametrize(("words", "said"), [
    (("--nothing",), "nothing is not a recognized option"),
    (("--top", "a"), "top is not a recognized option"),
    (("--topic",), "Option topic requires an argument"),
])
def test_what_cannot_be_read(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(Failure) as raised:
        given(*words)
    assert raised.value.message == said


def test_a_wrong_value_is_told_when_it_is_asked_for() -> None:
    found = given("--count", "x", "--topic", "a", "--topic", "b")
    assert found.all("topic") == ["a", "b"]
    with pytest.raises(Failure, match="Cannot parse argument 'x' of option count") as raised:
        found.one("count")
    assert raised.value.stack().count("Caused by:") == 2
    with pytest.raises(Failure, match="Found multiple arguments for option topic"):
        found.one("topic")


def test_options_that_exclude_each_other() -> None:
    with pytest.raises(WrongUse) as raised:
        given("--all", "--topic", "a").refuse_together()
    assert str(raised.value) == 'Option "[all]" can\'t be used with option "[topic]"'
    given("--all").refuse_together()
    with pytest.raises(WrongUse, match=r'Missing required argument "\[topic\]"'):
        given("--all").require("topic")


@pytest.mark.parametrize(("line", "parts"), [
    ("with --create", ["with ", "--", "create"]),
    ("a.b HOST1:PORT1,x", ["a.", "b ", "HOST1:", "PORT1,", "x"]),
    ("-1 or 0-3", ["-1 ", "or ", "0-3"]),
    ("(WARNING: yes).", ["(WARNING: ", "yes)."]),
])
def test_where_a_line_may_be_broken(line: str, parts: list[str]) -> None:
    assert pieces(line) == parts


@pytest.mark.parametrize("path", sorted(HELP.iterdir()), ids=lambda path: path.stem)
def test_help(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([path.stem, "--help"]) == 1
    assert capsys.readouterr().err == path.read_text()


def calls(path: Path) -> Iterator[tuple[str, str]]:
    said = ""
    for line in path.read_text().splitlines():
        if line.startswith("    "):
            yield line.strip(), said
        else:
            said = line


@pytest.mark.parametrize(("words", "said"), list(calls(TOPIC_OPTIONS)))
def test_options_of_topics(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kafka-topics", "--bootstrap-server", "127.0.0.1:x", *words.split()]) == 1
    wrote = capsys.readouterr()
    assert (wrote.out + wrote.err).splitlines()[0] == said


@pytest.mark.parametrize(("words", "said"), list(calls(ACL_OPTIONS)))
def test_options_of_acls(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kafka-acls", *words.split()]) == 1
    assert capsys.readouterr().err.splitlines()[0].rstrip() == said


@pytest.mark.parametrize(("resource", "operation", "others"), [
    ("--group g", "Write", "ALL, READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS"),
    ("--transactional-id t", "Nonsense", "ALL, WRITE, DESCRIBE, TWO_PHASE_COMMIT"),
    ("--delegation-token t", "read", "ALL, DESCRIBE"),
    ("--user-principal u", "Any", "ALL, CREATE_TOKENS, DESCRIBE_TOKENS"),
])
def test_operations_that_a_resource_has(
    resource: str, operation: str, others: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--add", "--allow-principal", "User:x", *resource.split(), "--operation", operation]
    assert main(["kafka-acls", "--bootstrap-server", "127.0.0.1:1", *words]) == 1
    kind = resource.split()[0].removeprefix("--").removesuffix("-principal")
    said = f"{kind.upper().replace('-', '_')} only supports operations [{others}]"
    assert capsys.readouterr().err.startswith(f"ResourceType {said}\n")


def test_a_number_may_begin_with_a_minus_where_an_argument_may_be_left_out() -> None:
    options = [Option("many", "", "", int, may_lack_argument=True)]
    assert Given(options).read(["--many", "-1"]).one("many") == -1
    left_out = Given(options).read(["--many", "x"])
    assert (left_out.one("many"), left_out.others) == (None, ["x"])


def test_a_tool_is_known_by_its_script_and_by_its_class(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("kafka-topics", "bin/kafka-topics.sh", CLASSES["kafka-topics"]):
        assert main([name, "--version"]) == 0
    assert capsys.readouterr().out == "4.3.1\n" * 3
    assert main(["kafka-nothing"]) == 2
    assert MODULES.keys() == CLASSES.keys()


def test_settings_of_security_that_cannot_be_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "client.properties"
    words = [
        "kafka-topics", "--bootstrap-server", "127.0.0.1:1", "--list",
        "--command-config", str(config),
    ]  # fmt: skip
    for text, said in (
        ("security.protocol=TLS\n", "Invalid value TLS for configuration security.protocol"),
        ("security.protocol=SASL_SSL\n", "sasl.mechanism: GSSAPI is not spoken here"),
        ("security.protocol=SSL\nssl.truststore.location=/none\n", "ssl.truststore.location: "),
    ):
        config.write_text(text)
        assert main(words) == 1
        assert said in capsys.readouterr().err


def test_nobody_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=120\nrequest.timeout.ms=50\nclient.id=me\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    where = f"localhost:{port}"
    words = ["--bootstrap-server", where, "--list", "--command-config", str(config)]
    assert main(["kafka-topics", *words]) == 1
    wrote = capsys.readouterr()
    assert wrote.out == (
        "Error while executing topic command : Timed out waiting for a node assignment. Call: "
        "listTopics\n"
    )
    warning = (
        f"WARN [AdminClient clientId=me] Connection to node -1 (localhost/127.0.0.1:{port}) could "
        "not be established. Node may not be available. (org.apache.kafka.clients.NetworkClient)\n"
    )
    assert wrote.err.count(warning) == 2
    assert "ERROR org.apache.kafka.common.errors.TimeoutException: Timed out" in wrote.err
