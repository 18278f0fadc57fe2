"""Access rules in the metadata log: made by either broker, kept and enforced by the other."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.compat import brokers
from tests.compat.waiting import eventually

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
USER = "User:ANONYMOUS"
ANY = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
    AclPermissionType.ANY,
)  # fmt: skip


def rule(name: str, permission: AclPermissionType) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, name, ResourcePatternType.PREFIXED, USER, "*", AclOperation.ALL,
        permission,
    )  # fmt: skip


def found(admin: AdminClient) -> set[str]:
    return {str(each) for each in admin.describe_acls(ANY).result(20)}


def assert_rules(broker: brokers.Broker, admin: AdminClient, wanted: set[str]) -> None:
    eventually(broker, lambda: found(admin) == wanted)


def test_rules_go_from_one_broker_to_the_other_and_back(tmp_path: Path) -> None:
    expected: set[str] = set()
    for kind in (brokers.KAFKALITE, brokers.APACHE_KAFKA, brokers.KAFKALITE):
        broker = brokers.start(kind, tmp_path, SETTINGS)
        try:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            assert_rules(broker, admin, expected)
            number = len(expected)
            new = rule(f"secret-{number}", AclPermissionType.DENY)
            admin.create_acls([new])[new].result(20)
            expected = expected | {str(new)}
            assert_rules(broker, admin, expected)
            for earlier in range(number + 1):
                name = f"secret-{earlier}-plans"
                refusal = admin.list_topics(name, timeout=20).topics[name].error
                assert refusal.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        finally:
            broker.stop()
