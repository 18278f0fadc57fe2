"""`kafkalite acl`, `user`, `quota` and `log dirs` on both brokers: what they say and do is what
librdkafka's admin client sees, and whoever has the password comes in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kafkalite.cli.main import main
from tests.compat.brokers import Broker
from tests.compat.conftest import MakeTopic
from tests.compat.waiting import eventually

PATIENCE_S = 30

Run = Callable[..., Result]


def command(broker: Broker, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "-b", broker.bootstrap])


def rows(broker: Broker, *words: str) -> list[dict[str, Any]]:
    result = command(broker, *words, "-o", "json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def test_rules(authorized: Broker, unique: Callable[[str], str]) -> None:
    user, prefix = f"User:{unique('user')}", unique("topic")
    denied = f"deny {user} read group {prefix} from 10.0.0.7"
    texts = [f"allow {user} read topic {prefix}*", denied]
    added = command(authorized, "acl", "add", *texts)
    assert added.stdout == "".join(f"{each}: is there\n" for each in texts), added.output

    def named() -> list[str]:
        words = ("acl", "list", "--principal", user, "-o", "name")
        return sorted(command(authorized, *words).stdout.splitlines())

    eventually(authorized, lambda: named() == texts)
    admin = AdminClient({"bootstrap.servers": authorized.bootstrap})
    any_rule = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, user, None, AclOperation.ANY,
        AclPermissionType.ANY,
    )  # fmt: skip
    seen = admin.describe_acls(any_rule, request_timeout=PATIENCE_S).result(PATIENCE_S)
    assert sorted((each.name, each.operation.name, each.host) for each in seen) == [
        (prefix, "READ", "*"), (prefix, "READ", "10.0.0.7"),
    ]  # fmt: skip
    match = rows(authorized, "acl", "list", "--principal", user, "--concerning", f"{prefix}7")
    assert [each["rule"] for each in match] == texts[:1]
    assert command(authorized, "acl", "add", texts[0]).exit_code == 0
    assert named() == texts
    gone = command(authorized, "acl", "remove", "--principal", user, "--yes")
    assert gone.stdout.count("is not there any more") == 2
    eventually(authorized, lambda: named() == [])


def test_without_rules_it_says_so(broker: Broker) -> None:
    result = command(broker, "acl", "list")
    assert result.exit_code == 1
    assert "the access rules cannot be had: SECURITY_DISABLED" in result.stderr


def test_users(broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> None:
    name, file = unique("user"), tmp_path / "password"
    file.write_text("secret\n")
    word = ("--password-file", str(file))
    added = command(broker, "user", "add", name, *word)
    assert added.stdout == f"{name}: is there (SCRAM-SHA-256, SCRAM-SHA-512)\n", added.output

    def seen() -> list[tuple[str, int]]:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        try:
            asked = admin.describe_user_scram_credentials([name])[name].result(PATIENCE_S)
        except KafkaException:  # a user that is not there
            return []
        infos = asked.scram_credential_infos
        return sorted((info.mechanism.name, info.iterations) for info in infos)

    eventually(broker, lambda: seen() == [("SCRAM_SHA_256", 4096), ("SCRAM_SHA_512", 4096)])
    changed = command(broker, "user", "passwd", name, "-m", "SCRAM-SHA-512", "--iterations", "5000",
                      *word)  # fmt: skip
    assert changed.exit_code == 0, changed.output
    eventually(broker, lambda: ("SCRAM_SHA_512", 5000) in seen())
    again = command(broker, "user", "add", name, *word)
    assert (again.exit_code, "is there already" in again.stderr) == (1, True)
    assert command(broker, "user", "delete", name, "--yes").exit_code == 0
    eventually(broker, lambda: seen() == [] == rows(broker, "user", "list", name))


def test_quotas(broker: Broker, unique: Callable[[str], str]) -> None:
    user = unique("user")
    of_both = ("--user", user, "--client", "app")
    rates = ("producer_byte_rate=1000000", "request_percentage=12.5")
    tried = command(broker, "quota", "set", *of_both, *rates, "--dry-run")
    assert tried.stdout == f"user {user}, client app: would be done\n", tried.output
    assert rows(broker, "quota", "list", "--user", user) == []
    assert command(broker, "quota", "set", *of_both, *rates).exit_code == 0

    def listed() -> list[tuple[str, str, float]]:
        found = rows(broker, "quota", "list", "--user", user)
        return [(each["of"], each["key"], each["value"]) for each in found]

    whose = f"user {user}, client app"
    wanted = [(whose, "producer_byte_rate", 1e6), (whose, "request_percentage", 12.5)]
    eventually(broker, lambda: listed() == wanted)
    unknown = command(broker, "quota", "set", *of_both, "speed=1")
    assert (unknown.exit_code, "INVALID_REQUEST" in unknown.stderr) == (1, True)
    keys = ("producer_byte_rate", "request_percentage")
    assert command(broker, "quota", "unset", *of_both, *keys).exit_code == 0
    eventually(broker, lambda: listed() == [])


def test_directories(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic(3)

    def there() -> list[int]:
        logs = rows(broker, "log", "dirs", "--partitions", topic)
        return sorted(each["partition"] for each in logs)

    eventually(broker, lambda: there() == [0, 1, 2])
    [directory] = rows(broker, "log", "dirs", topic)
    assert (directory["broker"], directory["partitions"], directory["failure"]) == (1, 3, None)
    assert directory["total"] > directory["usable"] > 0
