"""What settings say of logins: for a listener and a mechanism, and when no broker starts."""

import pytest

from kafkalite.config import BrokerConfig, InvalidSetting
from kafkalite.security.login_settings import EXAMPLE, login_settings

LISTENER = {"listeners": "SASL_PLAINTEXT://127.0.0.1:9092"}
OUT = {
    "listeners": "PLAINTEXT://127.0.0.1:9092,OUT://127.0.0.1:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUT:SASL_PLAINTEXT",
}
PLAIN_USERS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def settings_of(name="SASL_PLAINTEXT", listeners=LISTENER, **more):
    return login_settings(BrokerConfig(listeners | more))[name]


def test_a_listener_without_logins_has_no_settings_of_them():
    assert login_settings(BrokerConfig({"sasl.enabled.mechanisms": "GSSAPI"})) == {}
    config = BrokerConfig(OUT | {"sasl.enabled.mechanisms": "SCRAM-SHA-256"})
    assert list(login_settings(config)) == ["OUT"]


def test_usual_values():
    found = settings_of(**{"sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512"})
    assert found.mechanisms == ("SCRAM-SHA-256", "SCRAM-SHA-512")
    assert found.session_ms == {"SCRAM-SHA-256": 0, "SCRAM-SHA-512": 0}
    assert (found.max_frame_bytes, found.failure_delay_ms) == (524_288, 100)
    assert found.plain_users == {}


def test_what_is_said_for_a_listener_and_a_mechanism_comes_first():
    found = settings_of("OUT", OUT, **{
        "sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.out.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.out.plain.sasl.jaas.config": f'{MODULE} required user_a="x" user_b="y";',
        "connections.max.reauth.ms": "1",
        "listener.name.out.connections.max.reauth.ms": "2",
        "listener.name.out.scram-sha-512.connections.max.reauth.ms": "3",
        "listener.name.out.sasl.server.max.receive.size": "1000",
        "connection.failed.authentication.delay.ms": "5",
    })  # fmt: skip
    assert found.session_ms == {"PLAIN": 2, "SCRAM-SHA-256": 2, "SCRAM-SHA-512": 3}
    assert found.plain_users == {"a": "x", "b": "y"}
    assert (found.max_frame_bytes, found.failure_delay_ms) == (1000, 5)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({}, "sasl.enabled.mechanisms: .*GSSAPI is not served"),
        ({"sasl.enabled.mechanisms": ""}, "sasl.enabled.mechanisms: .*no mechanism is named"),
        ({"sasl.enabled.mechanisms": "SCRAM-SHA-256,GS2-KRB5"}, "GS2-KRB5 is not served"),
        ({"sasl.enabled.mechanisms": "plain"}, "plain is not served"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, f"{PLAIN_USERS}: .*has no users"),
        ({"sasl.jaas.config": EXAMPLE}, f"{PLAIN_USERS}: .*has no users"),
        ({"plain.sasl.jaas.config": EXAMPLE}, f"{PLAIN_USERS}: .*has no users"),
        ({"listener.name.out.plain.sasl.jaas.config": EXAMPLE}, f"{PLAIN_USERS}: .*has no users"),
        ({PLAIN_USERS: f"{MODULE} required;"}, f"{PLAIN_USERS}: .*has no users"),
        ({PLAIN_USERS: f'{SCRAM_MODULE} required user_a="b";'}, f"{PLAIN_USERS}: .*has no users"),
        ({PLAIN_USERS: f"{MODULE} required user_a=1;"}, f"{PLAIN_USERS}: Value not specified"),
        ({PLAIN_USERS: ""}, f"{PLAIN_USERS}: Login module not specified"),
    ],
)
def test_what_nobody_could_log_in_by_ends_the_start_with_one_sentence(given, named):
    if given and "sasl.enabled.mechanisms" not in given:
        given = given | {"sasl.enabled.mechanisms": "PLAIN"}
    with pytest.raises(InvalidSetting, match=named) as refused:
        settings_of(**given)
    assert "\n" not in str(refused.value)
    assert "kafkalite.allow.insecure=true starts without" in str(refused.value)


def test_one_may_insist():
    config = BrokerConfig(LISTENER | {"kafkalite.allow.insecure": "true"})
    assert login_settings(config) == {}


def test_no_password_is_shown():
    found = settings_of(**{"sasl.enabled.mechanisms": "PLAIN", PLAIN_USERS: EXAMPLE})
    assert found.plain_users == {"alice": "secret"}
    assert "secret" not in repr(found)
