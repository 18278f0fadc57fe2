"""`kafkalite acl`, `user` and `quota` on a broker of the test's own: what goes wrong, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from kafkalite.cli.main import main
from kafkalite.cli.user import _password
from kafkalite.cli.user import add as add_user
from kafkalite.security.acl import ALLOW, LITERAL, PREFIXED, READ, TOPIC, Acl, acl_of, text_of
from kafkalite.testing.embedded import EmbeddedKafka

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(settings=AUTHORIZER) as broker:
        yield broker


def run(kafka: EmbeddedKafka, *words: str, typed: str | None = None) -> Result:
    call = [*words, "-b", kafka.bootstrap_servers]
    return CliRunner().invoke(main, call, input=typed)


def rows(kafka: EmbeddedKafka, *words: str) -> list[dict[str, Any]]:
    result = run(kafka, *words, "-o", "json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


# --- rules ----------------------------------------------------------------------------------------

RULES = (
    "allow User:alice read topic orders-*",
    'deny "User:CN=a b,O=x" write topic audit from 10.0.0.7',
    "allow User:ops alter cluster",
    'allow User:alice read group "my group"',
)


def test_rules_come_and_go_as_they_are_written(kafka: EmbeddedKafka) -> None:
    added = run(kafka, "acl", "add", *RULES)
    assert (added.exit_code, added.stdout) == (
        0, "".join(f"{each}: is there\n" for each in RULES)
    )  # fmt: skip
    named = run(kafka, "acl", "list", "-o", "name").stdout.splitlines()
    assert sorted(named) == sorted(RULES)
    [prefixed] = rows(kafka, "acl", "list", "--kind", "topic", "--name", "orders-*")
    assert prefixed == {
        "principal": "User:alice", "permission": "allow", "operation": "read", "kind": "topic",
        "name": "orders-", "pattern": "prefixed", "host": "*", "rule": RULES[0],
    }  # fmt: skip
    assert rows(kafka, "acl", "list", "--kind", "topic", "--name", "orders-") == []
    concerning = rows(kafka, "acl", "list", "--kind", "topic", "--concerning", "orders-7")
    assert [each["rule"] for each in concerning] == [RULES[0]]
    denied = rows(kafka, "acl", "list", "--permission", "deny")
    assert [each["rule"] for each in denied] == [RULES[1]]

    tried = run(kafka, "acl", "remove", "--principal", "User:alice", "--dry-run")
    assert tried.stdout.count("User:alice") == 2
    assert len(rows(kafka, "acl", "list")) == len(RULES)
    gone = run(kafka, "acl", "remove", "--principal", "User:alice", "--yes")
    assert gone.exit_code == 0, gone.output
    assert run(kafka, "acl", "remove", *RULES[1:3], "--yes").exit_code == 0
    assert rows(kafka, "acl", "list") == []
    again = run(kafka, "acl", "remove", RULES[0], "--yes")
    assert (again.exit_code, again.stderr) == (1, f"kafkalite: there is no rule {RULES[0]}\n")


AWKWARD = (
    "foo", "foo*", "*", "**", 'a"b', 'a" b', '"q"', "a\\ b", "a\nb", "x\u00a0", "\u2028", "from",
)  # fmt: skip


@pytest.mark.parametrize("pattern", [LITERAL, PREFIXED])
@pytest.mark.parametrize("name", AWKWARD)
def test_a_rule_is_read_as_it_is_written(name: str, pattern: int) -> None:
    rule = Acl(TOPIC, name, pattern, f"User:{name}", name, READ, ALLOW)
    text = text_of(rule)
    assert acl_of(text) == rule
    assert text.isprintable()


def test_a_rule_of_a_star_is_not_one_of_a_beginning(kafka: EmbeddedKafka) -> None:
    literal, prefixed = r'allow User:a read topic "foo\*"', "allow User:a read topic foo*"
    assert run(kafka, "acl", "add", literal, prefixed).exit_code == 0
    assert run(kafka, "acl", "remove", literal, "--yes").exit_code == 0
    assert [each["rule"] for each in rows(kafka, "acl", "list")] == [prefixed]
    assert run(kafka, "acl", "add", literal).exit_code == 0
    assert run(kafka, "acl", "remove", "--principal", "User:a", "--yes").exit_code == 0
    assert rows(kafka, "acl", "list") == []


def test_no_rule_of_the_cluster_has_a_name_of_its_own(kafka: EmbeddedKafka) -> None:
    refused = run(kafka, "acl", "add", "User:a alter cluster prod")
    assert refused.exit_code == 1
    assert rows(kafka, "acl", "list") == []


@pytest.mark.parametrize(("words", "said"), [
    (("acl", "add", "alice may read"), "is no access rule"),
    (("acl", "add", "User:alice sing topic t"), "where one of all, read"),
    (("acl", "remove", "--yes"), "which ones?"),
    (("acl", "remove", "User:a read topic t", "--kind", "topic"), "which ones?"),
    (("acl", "list", "--name", "a", "--concerning", "b"), "--name or --concerning"),
    (("acl", "remove", "User:a read topic t"), "say --yes"),
    (("user", "add", "alice"), "say --password-file"),
    (("quota", "set", "producer_byte_rate=1"), "whose?"),
    (("quota", "set", "--user", "a", "producer_byte_rate=nan"), "'nan' is no number"),
    (("quota", "set", "--user", "a", "--default", "user", "x=1"), "not both"),
    (("quota", "set", "--user", "a", "--ip", "::1", "x=1"), "leave the others out"),
])  # fmt: skip
def test_what_is_wrong_in_a_command_is_told(
    kafka: EmbeddedKafka, words: tuple[str, ...], said: str
) -> None:
    result = run(kafka, *words)
    assert result.exit_code == 2
    assert said in result.stderr.replace("\n", " ")


def test_a_broker_without_rules_says_so() -> None:
    with EmbeddedKafka() as plain:
        result = run(plain, "acl", "list")
        assert result.exit_code == 1
        assert "the access rules cannot be had: SECURITY_DISABLED" in result.stderr


# --- users ----------------------------------------------------------------------------------------


def test_a_users_life(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("first\n")
    word = ("--password-file", str(file))
    added = run(kafka, "user", "add", "alice", *word)
    assert added.stdout == "alice: is there (SCRAM-SHA-256, SCRAM-SHA-512)\n", added.output
    twice = run(kafka, "user", "add", "alice", *word)
    assert (twice.exit_code, "is there already" in twice.stderr) == (1, True)
    assert rows(kafka, "user", "list", "al*") == [
        {"user": "alice", "mechanism": name, "iterations": 4096}
        for name in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    ]
    one = run(kafka, "user", "delete", "alice", "-m", "SCRAM-SHA-256", "--yes")
    assert one.exit_code == 0, one.output
    changed = run(
        kafka, "user", "passwd", "alice", "--iterations", "8192", "--password-file", "-",
        typed="second\n",
    )  # fmt: skip
    assert changed.stdout == "alice: has another password (SCRAM-SHA-512)\n", changed.output
    assert rows(kafka, "user", "list") == [
        {"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 8192}
    ]
    gone = run(kafka, "user", "delete", "bob", "alice", "--yes")
    assert (gone.exit_code, gone.stdout) == (1, "alice: is not there any more\n")
    assert gone.stderr == "kafkalite: there is no user bob\n"
    none = run(kafka, "user", "passwd", "alice", *word)
    assert (none.exit_code, "there is no user alice" in none.stderr) == (1, True)


def test_the_mark_of_utf_8_is_no_part_of_a_password(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes("\ufeffsecret\n".encode())
    [option] = [each for each in add_user.params if each.name == "file"]
    with click.Context(add_user) as ctx:
        assert _password("alice", option.type_cast_value(ctx, str(file))) == "secret"


@pytest.mark.parametrize(("data", "said"), [(b"", "no password"), (b"\xff\n", "not UTF-8")])
def test_a_file_without_a_password(
    kafka: EmbeddedKafka, tmp_path: Path, data: bytes, said: str
) -> None:
    file = tmp_path / "password"
    file.write_bytes(data)
    result = run(kafka, "user", "add", "carol", "--password-file", str(file))
    assert (result.exit_code, said in result.stderr) == (1, True)


# --- quotas ---------------------------------------------------------------------------------------


def test_quotas_of_users_clients_and_addresses(kafka: EmbeddedKafka) -> None:
    rate = "producer_byte_rate=1048576"
    tried = run(kafka, "quota", "set", "--user", "alice", rate, "--dry-run")
    assert tried.stdout == "user alice: would be done\n", tried.output
    assert rows(kafka, "quota", "list") == []
    for whose, key in (
        (("--user", "alice", "--client", "app"), rate),
        (("--user", "alice", "--default", "client"), "request_percentage=12.5"),
        (("--ip", "10.0.0.7"), "connection_creation_rate=3"),
    ):
        assert run(kafka, "quota", "set", *whose, key).exit_code == 0
    assert [(each["of"], each["key"], each["value"]) for each in rows(kafka, "quota", "list")] == [
        ("ip 10.0.0.7", "connection_creation_rate", 3.0),
        ("user alice, any other client", "request_percentage", 12.5),
        ("user alice, client app", "producer_byte_rate", 1048576.0),
    ]
    [one] = rows(kafka, "quota", "list", "--client", "app")
    assert (one["user"], one["client"]) == ("alice", "app")
    unknown = run(kafka, "quota", "set", "--user", "alice", "speed=1")
    assert (unknown.exit_code, "are not changed" in unknown.stderr) == (1, True)
    for whose, key in (
        (("--user", "alice", "--client", "app"), "producer_byte_rate"),
        (("--user", "alice", "--default", "client"), "request_percentage"),
        (("--ip", "10.0.0.7"), "connection_creation_rate"),
    ):
        assert run(kafka, "quota", "unset", *whose, key).exit_code == 0
    assert rows(kafka, "quota", "list") == []
