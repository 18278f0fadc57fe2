"""A JAAS file: its sections, whose users they are, and what is no such file."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalite.config import BrokerConfig, InvalidSetting
from kafkalite.security.jaas import parse_entry
from kafkalite.security.login_file import client_line, named_in, read, settings_in
from kafkalite.security.login_settings import login_settings

# As in the harnesses of clients: several modules in one section, and one of ZooKeeper.
FILE = """\
// of all listeners
KafkaServer {
    org.apache.kafka.common.security.plain.PlainLoginModule required
    username="broker"
    password="broker-secret"
    user_broker="broker-secret"
    user_alice='it''s';
    com.sun.security.auth.module.Krb5LoginModule required
    useKeyTab=true storeKey=true keyTab="/server.keytab" principal="kafka/broker@REALM";
    org.apache.kafka.common.security.scram.ScramLoginModule required;
};
outside.KafkaServer {
    org.apache.kafka.common.security.plain.PlainLoginModule required user_bob="b{};";
};
/* of clients */
KafkaClient {
    org.apache.kafka.common.security.scram.ScramLoginModule required
    username="alice" password="secret";
};
Client { org.apache.zookeeper.server.auth.DigestLoginModule required; };
"""
LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:1,INSIDE://127.0.0.1:2,OUTSIDE://127.0.0.1:3",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SASL_PLAINTEXT,OUTSIDE:SASL_SSL",
    "sasl.enabled.mechanisms": "PLAIN",
    "kafkalite.allow.insecure": "true",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "jaas.conf"
    path.write_text(FILE.replace("'it''s'", '"it\\"s"'))
    return path


def test_the_section_of_a_listener_counts_before_that_of_all(file: Path) -> None:
    found = settings_in(read(str(file)), BrokerConfig(LISTENERS))
    assert list(found) == [
        "listener.name.inside.plain.sasl.jaas.config",
        "listener.name.inside.scram-sha-256.sasl.jaas.config",
        "listener.name.inside.scram-sha-512.sasl.jaas.config",
        "listener.name.outside.plain.sasl.jaas.config",
    ]
    users = login_settings(BrokerConfig({**LISTENERS, **found}))
    assert users["INSIDE"].plain_users == {"broker": "broker-secret", "alice": 'it"s'}
    assert users["OUTSIDE"].plain_users == {"bob": "b{};"}


def test_a_client_has_a_section_too(file: Path) -> None:
    sections = read(str(file))
    line = client_line(sections, "SCRAM-SHA-512")
    assert line is not None
    assert parse_entry(line).options == {"username": "alice", "password": "secret"}
    assert client_line(sections, "PLAIN") is None
    assert client_line(sections, "GSSAPI") is None


def test_the_options_of_a_jvm_name_it() -> None:
    named = "-Xmx1G -Djava.security.auth.login.config=/etc/kafka/jaas.conf -Dx=y"
    assert named_in(named) == "/etc/kafka/jaas.conf"
    assert named_in("-Djava.security.auth.login.config==file:///etc/jaas.conf") == "/etc/jaas.conf"
    assert named_in("-Dx=java.security.auth.login.config=a") is None
    assert named_in("") is None


@pytest.mark.parametrize(("text", "why"), [
    ("KafkaServer", "section 1 does not begin"),
    ("KafkaServer { a.B required hunter2= };", "Value not specified for option 1"),
    ("KafkaServer { a.B required hunter2=", "section 1 does not end"),
    ('A { a.B required x="y"; }', "section 1 does not end"),
    ("A { }; A { };", "section 2 has the name of one before it"),
    ('A { a.B required x="${hunter2}"; };', "names a property of Java's"),
    ("{", "section 1 does not begin"),
    (None, "No such file"),
])  # fmt: skip
def test_what_is_no_such_file(tmp_path: Path, text: str | None, why: str) -> None:
    path = tmp_path / "jaas.conf"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InvalidSetting, match=why) as raised:
        read(str(path))
    assert "hunter2" not in str(raised.value)
