"""Words, numbers and files as people and scripts hand them to a tool; what is expected was said by
Apache Kafka's tools, asked the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.tools import reset_plans
from kafkalite.tools.client_settings import settings_of
from kafkalite.tools.failures import Failure
from kafkalite.tools.java_numbers import INT, LONG, java_split, real, whole
from kafkalite.tools.options import Given, Option
from kafkalite.tools.running import main

COUNT = Option("count", "How many.", "count", int)
LONG_COUNT = Option("long", "How many.", "count", int, is_long=True)
NOWHERE = "127.0.0.1:1"
DIRECTORY_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    import_module("kafkalite.testing.staging")
    with EmbeddedKafka(topics={"t": 12, "t-1": 1}) as broker:
        yield broker


def ask(kafka: EmbeddedKafka, name: str, *words: str) -> int:
    return main([name, "--bootstrap-server", kafka.bootstrap_servers, *words])


@pytest.mark.parametrize("text", ["1_0", " 3", "3 ", "", "0x10", "5L", "1e3", "2147483648"])
def test_no_int_of_java(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        whole(text)
    with pytest.raises(Failure, match=f"Cannot parse argument '{text}' of option count"):
        Given([COUNT]).read(["--count", text]).one("count")


def test_numbers_are_as_large_as_their_type_holds() -> None:
    assert whole("-2147483648") == -(2**31)
    assert whole("+007") == 7
    assert whole("٣") == 3
    assert whole("9223372036854775807", LONG) == 2**63 - 1
    for text, bits in (("-2147483649", INT), ("9" * 5000, LONG), (str(2**63), LONG)):
        with pytest.raises(ValueError, match=r".*"):
            whole(text, bits)
    with pytest.raises(Failure):
        Given([LONG_COUNT]).read(["--long", str(2**63)]).one("long")


@pytest.mark.parametrize(("text", "value"), [
    (" 5 ", 5.0), ("1d", 1.0), (".5", 0.5), ("1e6", 1e6), ("Infinity", float("inf")),
    ("0x1p4", 16.0), ("1_0", None), ("inf", None), ("nan", None), ("0x10", None), ("", None),
])
def test_real_numbers(text: str, value: float | None) -> None:
    if value is None:
        with pytest.raises(ValueError, match=r".*"):
            real(text)
    else:
        assert real(text) == value


def test_lists_end_with_what_is_not_empty() -> None:
    splits = {"1,": ["1"], ",": [], "": [""], ",1": ["", "1"], "1,,2,,": ["1", "", "2"]}
    assert {text: java_split(text, ",") for text in splits} == splits


def test_a_single_dash_begins_letters_and_a_lone_one_is_a_value() -> None:
    with pytest.raises(Failure, match=r"^x is not a recognized option$"):
        Given([COUNT]).read(["-xyz"])
    maybe = Option("maybe", "Perhaps with a value.", "value", may_lack_argument=True)
    assert Given([maybe]).read(["--maybe", "-"]).one("maybe") == "-"


@pytest.mark.parametrize(("word", "value"), [("-5", -5), ("1_0", None), (str(2**31), None)])
def test_a_number_that_need_not_be_there(word: str, value: int | None) -> None:
    maybe = Option("maybe", "Perhaps with a number.", "", int, may_lack_argument=True)
    assert Given([maybe]).read(["--maybe", word]).one("maybe") == value


# --- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "said"), [
    ("", "You must set either bootstrap.servers or bootstrap.controllers"),
    ("a:99999", "Invalid port in bootstrap.servers: a:99999"),
    ("a b:1", "Invalid url in bootstrap.servers: a b:1"),
    ("ünï:1", "Invalid url in bootstrap.servers: ünï:1"),
    ("..:1", "No resolvable bootstrap urls given in bootstrap.servers"),
    (f"{NOWHERE},", "Configuration 'bootstrap.servers' values must not be empty."),
    (",,", "Configuration 'bootstrap.servers' values must not be empty."),
])
def test_what_is_no_address(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kafka-topics", "--bootstrap-server", text, "--list"]) == 1
    assert capsys.readouterr().err.strip().endswith(f"config.ConfigException: {said}")


@pytest.mark.parametrize("form", ["PLAINTEXT://{0}", " {0} ", "{0},{0}", "{0} , localhost:1"])
def test_addresses_as_people_write_them(
    form: str, kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    address = form.format(kafka.bootstrap_servers)
    assert main(["kafka-topics", "--bootstrap-server", address, "--list"]) == 0
    assert capsys.readouterr().out == "t\nt-1\n"


# --- files of settings ----------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "said"), [
    (b"a=\\u12G4\n", "java.lang.IllegalArgumentException: Malformed \\uxxxx encoding."),
    (b"default.api.timeout.ms=abc\n", "ConfigException: Invalid value abc for configuration "
     "default.api.timeout.ms: Not a number of type INT"),
    (b"request.timeout.ms=-1\n", "ConfigException: Invalid value -1 for configuration "
     "request.timeout.ms: Value must be at least 0"),
    (b"default.api.timeout.ms=99999999999\n", "Not a number of type INT"),
    (b"default.api.timeout.ms=5000\n", "ConfigException: The specified value of "
     "default.api.timeout.ms must be no smaller than the value of request.timeout.ms."),
    (b"security.protocol=FOO\n", "ConfigException: Invalid value FOO for configuration "
     "security.protocol: String must be one of (case insensitive): SASL_SSL, PLAINTEXT, SSL, "
     "SASL_PLAINTEXT"),
    (None, "java.io.IOException: Is a directory"),
])
def test_settings_that_cannot_be(
    text: bytes | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "client.properties"
    config.mkdir() if text is None else config.write_bytes(text)
    words = ["--bootstrap-server", NOWHERE, "--list", "--command-config", str(config)]
    assert main(["kafka-topics", *words]) == 1
    assert capsys.readouterr().err.strip().endswith(said)


def test_settings_are_latin_1_whatever_bytes_they_are(tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_bytes("client.id=caf\xe9\nother=".encode("latin-1") + bytes(range(128, 256)))
    assert settings_of(str(config))["client.id"] == "café"
    config.write_bytes(b"security.protocol=plaintext\n")
    assert settings_of(str(config)) == {"security.protocol": "plaintext"}


def test_added_settings_of_a_file_that_is_none(
    kafka: EmbeddedKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--alter", "--topic", "t", "--add-config-file"]
    assert ask(kafka, "kafka-configs", *words, str(tmp_path)) == 1
    assert "java.io.IOException: Is a directory" in capsys.readouterr().err


# --- files of JSON --------------------------------------------------------------------------------


def delete(kafka: EmbeddedKafka, file: Path, text: str) -> int:
    file.write_text(text, encoding="utf-8")
    config = file.with_name("client.properties")
    config.write_text("default.api.timeout.ms=2000\nrequest.timeout.ms=1000\n")
    words = ["--offset-json-file", str(file), "--command-config", str(config)]
    return ask(kafka, "kafka-delete-records", *words)


def entry(**fields: object) -> str:
    return json.dumps({"partitions": [{"topic": "t", "partition": 0, "offset": 0, **fields}]})


@pytest.mark.parametrize(("text", "said"), [
    ("[" * 100_000, "The input string is not a valid JSON"),
    ('{"partitions":[{"topic":"t","partition":0,"offset":NaN}]}',
     "The input string is not a valid JSON"),
    (entry(partition=99999999999), "Expected `Integer` value, received 99999999999"),
    (entry(offset=2**63), f"Expected `Long` value, received {2**63}"),
    ("  \n", "Expected JSON object, received "),
])
def test_json_that_cannot_be(
    text: str, said: str, kafka: EmbeddedKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert delete(kafka, tmp_path / "offsets.json", text) == 1
    assert capsys.readouterr().err.splitlines()[0] == said


@pytest.mark.parametrize(("text", "said"), [
    (f"{entry()} and more", "partition: t-0\tlow_watermark: 0"),
    (entry(topic="a b"), "partition: a b-0\terror: org.apache.kafka.common.errors."
     "InvalidTopicException: Failed to fetch metadata for partition a b-0 due to invalid topic "
     "`a b`"),
    (entry(topic="\ud800"), "partition: ?-0\terror: org.apache.kafka.common.errors."
     "InvalidTopicException: Failed to fetch metadata for partition ?-0 due to invalid topic `?`"),
])
def test_what_becomes_of_odd_json(
    text: str, said: str, kafka: EmbeddedKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert delete(kafka, tmp_path / "offsets.json", text) == 0
    assert capsys.readouterr().out.splitlines()[-1] == said


def test_json_that_is_no_utf_8(
    kafka: EmbeddedKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "offsets.json"
    file.write_bytes(b"\xff\xfe{")
    assert ask(kafka, "kafka-delete-records", "--offset-json-file", str(file)) == 1
    assert capsys.readouterr().err.splitlines()[0] == "The input string is not a valid JSON"


# --- what is asked for ----------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "said"), [
    (["--topic-id", "AAAAAAAAAAAAAAAAAAAAAé"], "Illegal base64 character -17"),
    (["--topic-id", "AAAA!AAA"], "Illegal base64 character 21"),
    (["--topic-id", "00000000-0000-0000-0000-000000000000"],
     "Input string with prefix `00000000-0000-0000-0000-` is too long to be decoded as a base64 "
     "UUID"),
])
def test_no_id_of_a_topic(
    words: list[str], said: str, kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(kafka, "kafka-topics", "--describe", *words) == 1
    assert capsys.readouterr().out == f"Error while executing topic command : {said}\n"


def test_a_topic_without_a_name(
    kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(kafka, "kafka-topics", "--create", "--topic", "") == 1
    assert "The given topic name '' cannot be represented" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "partitions"), [
    (["--topic", "t", "--partitions", "0,"], ["t:0"]),
    (["--topic", "t-1", "--partitions", ""], ["t-1:0"]),
    (["--topic", "t-1", "--partitions", ","], ["t-1:0"]),
    (["--topic-partitions", "t:9-,t-1"], ["t-1:0", "t:10", "t:11", "t:9"]),
])
def test_offsets_are_in_the_order_of_their_names(
    words: list[str], partitions: list[str], kafka: EmbeddedKafka,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ask(kafka, "kafka-get-offsets", *words) == 0
    found = [line.rpartition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert found == partitions


@pytest.mark.parametrize(("words", "said"), [
    (["--topic-partitions", "t:99999999999"], 'For input string: "99999999999"'),
    (["--topic", "t", "--time", str(2**63)], "Malformed time argument"),
    (["--topic", "t", "--partitions", "1_0"], "--partitions expects a comma separated list"),
])
def test_no_partition_and_no_moment(
    words: list[str], said: str, kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(kafka, "kafka-get-offsets", *words) == 1
    assert capsys.readouterr().err.startswith(f"Error occurred: {said}")


@pytest.mark.parametrize(("text", "said"), [
    ("P99999999999999999999D", "Text cannot be parsed to a Duration: days"),
    ("PT9223372036854775807H", "Text cannot be parsed to a Duration: overflow"),
])
def test_durations_that_are_too_long(text: str, said: str) -> None:
    with pytest.raises(Failure) as raised:
        reset_plans.duration_ms(text)
    assert raised.value.message == said


def of_file(file: Path, data: bytes) -> dict[str, dict[tuple[str, int], int]]:
    file.write_bytes(data)
    options = [Option("group", "", ""), Option("from-file", "", "")]
    return reset_plans.of_file(Given(options).read(["--group", "g", "--from-file", str(file)]))


@pytest.mark.parametrize("data", [b"t,0,1\r\nt,1,2\r\n", b"t,0,1\rt,1,2\r", b"t,0,1\nt,1,2"])
def test_lines_of_a_plan_end_in_any_way(data: bytes, tmp_path: Path) -> None:
    assert of_file(tmp_path / "plan.csv", data) == {"g": {("t", 0): 1, ("t", 1): 2}}


@pytest.mark.parametrize(("data", "said"), [
    (b"t,0,-5\n", "Invalid negative offset"),
    (b"t,0,abc\n", "Cannot deserialize value of type `int` from String"),
    (b"g,t,0,1,9\n", "Too many entries: expected at most 4 \\(value #4 \\(1 chars\\) \"9\"\\)"),
    (b"t,0," + b"9" * 200_000 + b"\n", "field larger than field limit"),
])
def test_plans_that_cannot_be(data: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(Failure, match=said):
        of_file(tmp_path / "plan.csv", data)


@pytest.mark.parametrize(("words", "said"), [
    (["--topic", " "], "Topic collection to subscribe to cannot contain null or empty topic"),
    (["--include", ""], "Topic pattern to subscribe to cannot be empty"),
])
def test_a_consumer_of_nothing(
    words: list[str], said: str, kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(kafka, "kafka-console-consumer", *words, "--timeout-ms", "500") == 1
    assert capsys.readouterr().err.strip().endswith(f"IllegalArgumentException: {said}")


def test_fewer_records_than_none_are_none(
    kafka: EmbeddedKafka, capfd: pytest.CaptureFixture[str]
) -> None:
    kafka.produce("t-1", "one")
    words = ["--topic", "t-1", "--from-beginning", "--max-messages", "-5"]
    assert ask(kafka, "kafka-console-consumer", *words) == 0
    assert capfd.readouterr().err.endswith("Processed a total of 0 messages\n")


def test_two_files_of_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = str(tmp_path / "client.properties")
    words = ["cluster-id", "--bootstrap-server", NOWHERE, "--config", config]
    assert main(["kafka-cluster", *words, "--command-config", config]) == 1
    said = "--config and --command-config cannot be specified together."
    assert capsys.readouterr().err.startswith(f"{said}\n")


@pytest.mark.parametrize(("words", "said"), [
    (["--describe", "--topic", "a b"], "Topic name is invalid: 'a b' contains one or more"),
    (["--describe", "--topic", ""], "Topic name is invalid: the empty string is not allowed"),
    (["--alter", "--topic", "t", "--add-config", "ünï=1"],
     "Invalid character found for config key: ünï"),
    (["--alter", "--user", "u", "--add-config", "SCRAM-SHA-256=[iterations=,password=x]"],
     'For input string: ""'),
])
def test_no_topic_and_no_setting(
    words: list[str], said: str, kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask(kafka, "kafka-configs", *words) == 1
    assert capsys.readouterr().err.startswith(said)


def test_commas_behind_the_last_setting(kafka: EmbeddedKafka) -> None:
    words = ["--alter", "--topic", "t", "--add-config", "retention.ms=5000,,"]
    assert ask(kafka, "kafka-configs", *words) == 0


@pytest.mark.parametrize(("words", "said"), [
    (["--feature", "metadata.version=1_0"],
     "Can't parse feature=level string metadata.version=1_0: unable to parse 1_0 as a short."),
    (["--feature", "=1"], "Provided feature can not be empty."),
    (["--release-version", "4.0", "--dry-run"], "4 out of 4 operation(s) failed."),
])
def test_no_level_of_a_feature(
    words: list[str], said: str, kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    address = ["--bootstrap-server", kafka.bootstrap_servers]
    assert main(["kafka-features", *address, "upgrade", *words]) == 1
    assert capsys.readouterr().err == f"{said}\n"


@pytest.mark.parametrize("number", ["99999999999", "9" * 5000, "+-5", "1_0"])
def test_numbers_of_a_command_with_words_before_its_options(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["unregister", "--bootstrap-server", NOWHERE, "--id", number]
    assert main(["kafka-cluster", *words]) == 1
    assert f"could not convert '{number}' to Integer" in " ".join(
        capsys.readouterr().err.split()
    )


# --- a node's directories -------------------------------------------------------------------------

SERVER = {
    "process.roles": "controller", "node.id": "1", "controller.listener.names": "C",
    "listeners": "C://127.0.0.1:9",
}  # fmt: skip


def storage(folder: Path, command: str, *words: str, **changes: str) -> int:
    """Keys of changes have _ for their dots."""
    settings = SERVER | {"log.dirs": str(folder)}
    settings |= {name.replace("_", "."): value for name, value in changes.items()}
    config = folder / "server.properties"
    text = "".join(f"{name}={value}\n" for name, value in settings.items())
    config.write_text(text, encoding="latin-1")
    return main(["kafka-storage", command, "--config", str(config), *words])


@pytest.mark.parametrize(("changes", "said"), [
    ({"node_id": "1_0"}, "ConfigException: Invalid value 1_0 for configuration node.id: Not a "
     "number of type INT"),
    ({"node_id": "-5"}, "ConfigException: Invalid value -5 for configuration node.id: Value must "
     "be at least 0"),
    ({"other": "\\u12G4"}, "IllegalArgumentException: Malformed \\uxxxx encoding."),
])
def test_a_node_that_cannot_be(
    changes: dict[str, str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert storage(tmp_path, "info", **changes) == 1
    assert capsys.readouterr().err.strip().endswith(said)


FORMAT = ("--cluster-id", DIRECTORY_ID, "--standalone")


@pytest.mark.parametrize("port", ["²", "1_0", ""])
def test_a_port_is_a_number_of_java(
    port: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert storage(tmp_path, "format", *FORMAT, listeners=f"C://h:{port}") == 1
    assert "for configuration listeners: no port" in capsys.readouterr().err


def test_a_folder_that_is_called_as_the_file_of_a_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "meta.properties").mkdir()
    assert storage(tmp_path, "info") == 1
    assert capsys.readouterr().err.strip().endswith("java.io.IOException: Is a directory")
    assert storage(tmp_path, "format", *FORMAT) == 1
    told = capsys.readouterr()
    assert told.out == f"I/O error trying to read log directory {tmp_path}. Ignoring...\n"
    assert told.err == "No available log directories to format.\n"


@pytest.mark.parametrize(("words", "said"), [
    (("--add-scram", "SCRAM-SHA-256=[name=a,iterations= 5000,password=x]"),
     "Failed to parse iterations count:  5000"),
    (("--feature", "group.version=1_0"), "unable to parse 1_0 as a short."),
])
def test_no_number_in_a_format(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert storage(tmp_path, "format", *FORMAT, *words) == 1
    assert said in capsys.readouterr().err


def test_no_number_in_a_voter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    voters = f"1_0@h:1:{DIRECTORY_ID}"
    assert storage(tmp_path, "format", *FORMAT[:2], "--initial-controllers", voters) == 1
    assert 'NumberFormatException: For input string: "1_0"' in capsys.readouterr().err


@pytest.mark.parametrize("level", ["1_0", "", "1=2", "40000"])
def test_no_level_to_depend_on(level: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kafka-storage", "feature-dependencies", "--feature", f"group.version={level}"])
    said = f"Invalid version format: {level} for feature group.version\n"
    assert capsys.readouterr().err == said
