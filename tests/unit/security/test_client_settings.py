"""How a client comes to brokers, by settings in Java's words; what cannot be is one sentence."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kafkalite.config import InvalidSetting
from kafkalite.security.authority import pem_of
from kafkalite.security.client_login import OPEN, Login
from kafkalite.security.client_settings import jaas_of, security_of
from kafkalite.security.jaas import parse_entry
from tests.unit.security import keys

SECRET = "hunter2"
PLAIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": jaas_of("PLAIN", "alice", SECRET),
}
TRUSTING = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem_of(keys.server().root)}


def test_in_the_open_nothing_is_needed() -> None:
    assert security_of({}) == OPEN
    assert security_of({"security.protocol": " plaintext ", "acks": "all"}) == OPEN


def test_a_login() -> None:
    assert security_of(PLAIN).login == Login("PLAIN", "alice", SECRET)
    scram = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": jaas_of(
        "SCRAM-SHA-512", 'o"b\\', "b\n"
    )}  # fmt: skip
    assert security_of(PLAIN | scram).login == Login("SCRAM-SHA-512", 'o"b\\', "b\n")
    assert security_of(PLAIN).context is None


def test_encryption_and_both() -> None:
    context = security_of({"security.protocol": "ssl", **TRUSTING}).context
    assert context is not None
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.cert_store_stats()["x509"] == 1
    both = security_of({**PLAIN, **TRUSTING, "security.protocol": "SASL_SSL"})
    assert both.context is not None
    assert both.login is not None
    nameless = {"ssl.endpoint.identification.algorithm": ""}
    found = security_of({"security.protocol": "SSL", **TRUSTING, **nameless}).context
    assert found is not None
    assert not found.check_hostname


def test_a_certificate_of_its_own(tmp_path: Path) -> None:
    client = keys.client()
    (tmp_path / "client.pem").write_text(client.key_pem + client.chain_pem)
    own = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(tmp_path / "client.pem")}
    assert security_of({"security.protocol": "SSL", **TRUSTING, **own}).context is not None


@pytest.mark.parametrize(("given", "why"), [
    ({"security.protocol": "TLS"}, "security.protocol: TLS is none of"),
    ({**PLAIN, "sasl.mechanism": "KERBEROS"}, "sasl.mechanism: KERBEROS is not spoken here"),
    ({"security.protocol": "SASL_SSL", **TRUSTING}, "sasl.mechanism: GSSAPI is not spoken here"),
    ({**PLAIN, "sasl.jaas.config": SECRET}, "sasl.jaas.config: Login module control flag"),
    ({**PLAIN, "sasl.jaas.config": jaas_of("SCRAM-SHA-256", "a", SECRET)}, "no module of PLAIN"),
    ({**PLAIN, "sasl.jaas.config": jaas_of("PLAIN", "", SECRET)}, "username is not given"),
    ({**PLAIN, "sasl.login.class": "x.Y"}, "sasl.login.class: no class of another runtime"),
    ({name: value for name, value in PLAIN.items() if "jaas" not in name}, "is not set"),
    ({"security.protocol": "SSL", "ssl.truststore.location": "/none"}, "truststore.location: /no"),
    ({"security.protocol": "SSL", "ssl.engine.factory.class": "x"}, "ssl.engine.factory.class"),
])  # fmt: skip
def test_what_cannot_be_is_said_without_a_secret(given: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidSetting, match=why) as raised:
        security_of(given)
    assert SECRET not in str(raised.value)


def test_a_line_of_jaas_is_read_as_it_was_written() -> None:
    entry = parse_entry(jaas_of("PLAIN", "a b", 'x";y\\'))
    assert entry.options == {"username": "a b", "password": 'x";y\\'}
    assert SECRET not in repr(security_of(PLAIN))
