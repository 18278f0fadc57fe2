"""Users in a file of JAAS."""

import pytest

from kafkalite.config import InvalidSetting
from kafkalite.container.logins import with_logins_read

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
USERS = f'{PLAIN} required\n  username="b" // not { "{" }\n  user_b="a;b {{}} // \\"c\\"";'
FILE = f"""
/* KafkaServer {{ nobody; }}; */
KafkaServer {{
  {USERS}
  {SCRAM} required username="x" password="y";
}};
inside.KafkaServer {{
  {PLAIN} required user_c="d";
}};
Client {{ {PLAIN} required user_e="f"; }};
"""
OPTIONS = {"KAFKA_OPTS": "-Xmx1G -Djava.security.auth.login.config=/jaas.conf -Dx=y"}
FILES = {"/jaas.conf": FILE}


def read(**more: str) -> dict[str, str]:
    given = {**OPTIONS, **more}
    found = with_logins_read(given, FILES.__getitem__)
    return {name: found[name] for name in found.keys() - given.keys()}


def test_each_listener_that_has_clients_log_in_is_given_the_users() -> None:
    found = read(
        KAFKA_LISTENERS="PLAINTEXT://:1,SASL_PLAINTEXT://:2, a-b://:3,INSIDE://:4",
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="a-b:SASL_SSL,INSIDE:SASL_PLAINTEXT",
    )
    users = f'{PLAIN} required\n  username="b"  \n  user_b="a;b {{}} // \\"c\\"";'
    assert found == {
        "KAFKA_LISTENER_NAME_SASL__PLAINTEXT_PLAIN_SASL_JAAS_CONFIG": users,
        "KAFKA_LISTENER_NAME_A___B_PLAIN_SASL_JAAS_CONFIG": users,
        "KAFKA_LISTENER_NAME_INSIDE_PLAIN_SASL_JAAS_CONFIG": f'{PLAIN} required user_c="d";',
    }


def test_listeners_that_are_only_advertised_count() -> None:
    assert len(read(KAFKA_CFG_ADVERTISED_LISTENERS="SASL_SSL://kafka:9092")) == 1


def test_a_setting_of_its_own_counts_before() -> None:
    own = {"KAFKA_LISTENER_NAME_SASL__SSL_PLAIN_SASL_JAAS_CONFIG": "mine"}
    assert read(KAFKA_LISTENERS="SASL_SSL://:1", **own) == {}


def test_where_nobody_logs_in_nothing_is_read() -> None:
    assert with_logins_read(OPTIONS, str) == OPTIONS


def test_a_file_that_is_not_there_is_told() -> None:
    def missing(_: str) -> str:
        raise FileNotFoundError(2, "No such file or directory")

    with pytest.raises(InvalidSetting, match=r"KAFKA_OPTS: /jaas.conf cannot be read: No such"):
        with_logins_read({**OPTIONS, "KAFKA_LISTENERS": "SASL_SSL://:1"}, missing)
