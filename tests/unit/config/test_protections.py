"""A setting that promises a protection is kept, or ends the start with one sentence naming it."""

import pytest

from kafkalite.config import RefusedSettings, Verdict, broker_config, broker_settings, judge
from kafkalite.config.protections import ALLOW, PROMISES

PROMISING = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "principal.builder.class": "com.example.Builder",
    "sasl.server.callback.handler.class": "com.example.Callback",
    "create.topic.policy.class.name": "com.example.Policy",
    "alter.config.policy.class.name": "com.example.Policy",
    "client.quota.callback.class": "com.example.Callback",
}
# They say how a protection works, and no listener uses them: Kafka ignores them then, too.
ONLY_SAY_HOW = (
    "sasl.",
    "ssl.",
    "delegation.token.",
    "security.providers",
    "security.inter.broker.protocol",
    "connections.max.reauth.ms",
    "kafkalite.audit.log",
    "kafkalite.ssl.",
    "connection.failed.authentication.delay.ms",
)
# A name with one of these in it promises something.
WORDS = ("authorizer", "policy.class", "callback.class", "principal.builder")
PROTECTING = ("SASL", "TLS", "Authorization")


@pytest.mark.parametrize("name", list(PROMISING))
def test_a_promise_that_cannot_be_kept_ends_the_start(name):
    with pytest.raises(RefusedSettings) as refused:
        broker_config({name: PROMISING[name]})
    assert str(refused.value).startswith(f"{name}: ")
    (judgement,) = judge({name: PROMISING[name]})
    assert (judgement.key, judgement.verdict) == (name, Verdict.REFUSED), "config check says so"


def test_the_one_authorizer_there_is_is_kept_with_its_settings():
    named = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:root;User:ops",
        "allow.everyone.if.no.acl.found": "true",
    }
    assert {each.verdict for each in judge(named)} == {Verdict.HONOURED}
    with pytest.raises(RefusedSettings, match=r"super.users: expected .* but got root"):
        broker_config({**named, "super.users": "root"})


@pytest.mark.parametrize("name", list(PROMISING))
def test_one_may_insist(name):
    broker_config({name: PROMISING[name], ALLOW: "true"})


def test_a_promise_to_one_listener_is_one():
    with pytest.raises(RefusedSettings, match="no class of another runtime names the user"):
        broker_config({"listener.name.plaintext.principal.builder.class": "com.example.Builder"})


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_listener_that_is_secured_is_a_promise_that_is_kept(protocol):
    broker_config({
        "listeners": f"{protocol}://:9092", "security.inter.broker.protocol": protocol,
        "ssl.client.auth": "required",
    })  # fmt: skip


def test_what_promises_nothing_starts():
    broker_config({"authorizer.class.name": "", "ssl.client.auth": "none"})
    broker_config({"security.inter.broker.protocol": "PLAINTEXT"})
    _, ignored = broker_config(
        {"ssl.keystore.location": "/etc/keys", "sasl.kerberos.service.name": "kafka"}
    )
    assert [each.key for each in ignored] == ["sasl.kerberos.service.name"]


def test_a_class_that_checks_logins_is_refused():
    with pytest.raises(RefusedSettings, match="checks who logs in"):
        broker_config({"listener.name.x.plain.sasl.server.callback.handler.class": "com.example.X"})


def test_every_setting_about_protection_is_one_or_the_other():
    """Also those that a new release of Kafka adds to these sections."""
    for setting in broker_settings().values():
        if setting.section in PROTECTING and setting.name != ALLOW:
            assert setting.name in PROMISES or setting.name.startswith(ONLY_SAY_HOW), setting.name
        if any(word in setting.name for word in WORDS) and not setting.name.startswith("sasl."):
            assert setting.name in PROMISES, setting.name


def test_every_promise_is_tried():
    assert set(PROMISES) == set(PROMISING)
