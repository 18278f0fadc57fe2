"""Settings of librdkafka's clients, as Java's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalite.config import InvalidSetting
from kafkalite.security.client_settings import jaas_of
from kafkalite.security.librdkafka_settings import as_java


def test_javas_own_stay() -> None:
    given = {"bootstrap.servers": "a:1", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "x"}
    assert as_java(given) == given


def test_logins() -> None:
    given = {
        "metadata.broker.list": "a:1", "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "me", "sasl.password": 'a "b" \\',
    }  # fmt: skip
    assert as_java(given) == {
        "bootstrap.servers": "a:1", "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": jaas_of("SCRAM-SHA-256", "me", 'a "b" \\'),
    }  # fmt: skip
    with pytest.raises(InvalidSetting, match=r"sasl\.password is not set"):
        as_java({"sasl.username": "me"})


def test_keys_and_certificates(tmp_path: Path) -> None:
    for name in ("ca", "certificate", "key"):
        (tmp_path / name).write_text(f"PEM of {name}\n")
    given = {
        "ssl.ca.location": str(tmp_path / "ca"), "ssl.key.password": "x",
        "ssl.certificate.location": str(tmp_path / "certificate"),
        "ssl.key.location": str(tmp_path / "key"), "ssl.cipher.suites": "A:B",
        "ssl.endpoint.identification.algorithm": "none",
    }  # fmt: skip
    assert as_java(given) == {
        "ssl.truststore.type": "PEM", "ssl.truststore.certificates": "PEM of ca\n",
        "ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": "PEM of certificate\n",
        "ssl.keystore.key": "PEM of key\n", "ssl.key.password": "x", "ssl.cipher.suites": "A,B",
        "ssl.endpoint.identification.algorithm": "",
    }  # fmt: skip
    assert as_java({"ssl.ca.location": "probe"}) == {}
    assert as_java({"ssl.ca.pem": "P"})["ssl.truststore.certificates"] == "P"


@pytest.mark.parametrize(("name", "value", "said"), [
    ("ssl.ca.location", "/missing", "ssl.ca.location: /missing: No such file"),
    ("ssl.key.location", "/", "Is a directory"),
    ("enable.ssl.certificate.verification", "false", "certificates are always checked"),
])  # fmt: skip
def test_what_cannot_be_kept_is_refused(name: str, value: str, said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        as_java({name: value})
