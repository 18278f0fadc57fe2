"""What a listener's settings come to, and each that cannot be kept, by its name."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalite.cli.main import main
from kafkalite.config import BrokerConfig, InvalidSetting
from kafkalite.config.protections import ALLOW
from kafkalite.security.authority import der_of, pem_of
from kafkalite.security.principals import NoRule
from kafkalite.security.tls_settings import ListenerTls, openssl_name, tls_of
from tests.unit.security import keys

MAP = "listener.security.protocol.map"


def settings(**changes: str | None) -> dict[str, str]:
    issued = keys.server()
    given = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": issued.key_pem,
        "ssl.keystore.certificate.chain": issued.chain_pem,
        **{f"ssl.{name.replace('_', '.')}": value for name, value in changes.items()},
    }
    return {name: value for name, value in given.items() if value is not None}


def made(given: dict[str, str]) -> ListenerTls:
    config = BrokerConfig(given)
    found = tls_of(config, config.listeners[-1])
    assert found is not None
    return found


def test_defaults() -> None:
    tls = made(settings())
    assert tls.server.verify_mode is ssl.CERT_NONE
    assert tls.server.minimum_version is ssl.TLSVersion.TLSv1_2
    assert tls.server.maximum_version is ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("asked", "mode"),
    [("required", ssl.CERT_REQUIRED), ("requested", ssl.CERT_OPTIONAL), ("none", ssl.CERT_NONE)],
)
def test_client_certificates(asked: str, mode: ssl.VerifyMode) -> None:
    root = pem_of(keys.authority().root)
    given = settings(client_auth=asked, truststore_type="PEM", truststore_certificates=root)
    assert made(given).server.verify_mode is mode


def test_a_listeners_own_setting_counts_more() -> None:
    given = settings(client_auth="none", enabled_protocols="TLSv1.2")
    given |= {
        "listeners": "SSL://127.0.0.1:0,Other://127.0.0.1:0",
        MAP: "SSL:SSL,OTHER:SSL",
        "inter.broker.listener.name": "SSL",
        "listener.name.other.ssl.client.auth": "required",
        "listener.name.other.ssl.enabled.protocols": "TLSv1.3",
    }
    tls = made(given)
    assert tls.server.verify_mode is ssl.CERT_REQUIRED
    assert tls.server.minimum_version is ssl.TLSVersion.TLSv1_3


def test_a_listener_with_a_login_asks_for_certificates_only_on_its_own() -> None:
    given = settings(client_auth="required") | {"listeners": "SASL_SSL://127.0.0.1:0"}
    assert made(given).server.verify_mode is ssl.CERT_NONE
    given["listener.name.sasl_ssl.ssl.client.auth"] = "required"
    assert made(given).server.verify_mode is ssl.CERT_REQUIRED


def test_the_user_is_whom_the_certificate_names() -> None:
    tls = made(settings(principal_mapping_rules="RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U,DEFAULT"))
    assert tls.user(None) is None
    assert tls.user(der_of(keys.client().certificate)) == "CLIENT@PEOPLE"
    assert tls.user(der_of(keys.server().certificate)) == "CN=server,O=tests"
    with pytest.raises(NoRule):
        made(settings(principal_mapping_rules="RULE:^CN=x$/x/")).user(
            der_of(keys.client().certificate)
        )


def test_versions_and_suites() -> None:
    only_old = made(settings(cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")).server
    assert only_old.maximum_version is ssl.TLSVersion.TLSv1_2
    names = [each["name"] for each in only_old.get_ciphers() if each["protocol"] != "TLSv1.3"]
    assert names == ["ECDHE-ECDSA-AES256-GCM-SHA384"]
    suites = "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256"
    assert made(settings(cipher_suites=suites)).server.minimum_version is ssl.TLSVersion.TLSv1_3


def test_every_suite_that_has_a_name_is_known_to_openssl() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for exchange in ("ECDHE_ECDSA", "ECDHE_RSA", "DHE_RSA", "RSA"):
        for cipher in ("AES_256_GCM_SHA384", "AES_128_GCM_SHA256", "AES_128_CBC_SHA"):
            name = openssl_name(f"TLS_{exchange}_WITH_{cipher}")
            assert name is not None
            context.set_ciphers(name)
    assert openssl_name("TLS_KRB5_WITH_RC4_128_SHA") is None


REFUSED: dict[str, tuple[dict[str, str | None], str, str]] = {
    "no store": (
        {"keystore_key": None, "keystore_certificate_chain": None}, "keystore.location", "shows"
    ),
    "a key without certificates": (
        {"keystore_certificate_chain": None}, "keystore.key", "certificate chain is not specified"
    ),
    "a key and another type": ({"keystore_type": "JKS"}, "keystore.key", "only for PEM"),
    "a key and a file": ({"keystore_location": "/x"}, "keystore.location", "Both SSL key store"),
    "a password for PEM": ({"keystore_password": "x"}, "keystore.password", "only key password"),
    "an unknown type": ({"keystore_type": "BKS"}, "keystore.type", "JKS, PKCS12, PEM can"),
    "a damaged chain": (
        {"keystore_certificate_chain": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END "},
        "keystore.key", "damaged",
    ),
    "a truststore's password alone": (
        {"truststore_password": "x"}, "truststore.password", "trust store is not specified"
    ),
    "an old version": ({"enabled_protocols": "TLSv1.1"}, "enabled.protocols", "TLSv1.2, TLSv1.3"),
    "an unknown suite": ({"cipher_suites": "TLS_X"}, "cipher.suites", "TLS_X cannot be had"),
    "one suite of the new ones": (
        {"cipher_suites": "TLS_AES_256_GCM_SHA384"}, "cipher.suites", "only be offered together"
    ),
    "an engine": ({"engine_factory_class": "com.example.E"}, "engine.factory.class", "no class"),
    "a provider": ({"provider": "BCJSSE"}, "provider", "leave it out"),
    "a key manager": ({"keymanager_algorithm": "X"}, "keymanager.algorithm", "chosen by OpenSSL"),
    "names compared otherwise": (
        {"endpoint_identification_algorithm": "ldaps"}, "endpoint.identification.algorithm", "https"
    ),
    "a rule": ({"principal_mapping_rules": "RULE:(/x/"}, "principal.mapping.rules", "pattern"),
}  # fmt: skip


def test_how_names_are_compared_is_no_matter_where_nobody_is_called() -> None:
    given = settings(endpoint_identification_algorithm="none")
    given |= {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"}
    assert made(given)


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_cannot_be_kept_is_one_sentence(name: str) -> None:
    changes, setting, why = REFUSED[name]
    with pytest.raises(InvalidSetting, match=why) as raised:
        made(settings(**changes))
    assert str(raised.value).startswith(f"ssl.{setting}: ")
    assert "\n" not in str(raised.value)


def test_a_key_that_belongs_to_another_certificate() -> None:
    with pytest.raises(InvalidSetting, match=r"^ssl\.keystore\.key: .* another certificate"):
        made(settings(keystore_key=keys.client().key_pem))


def test_a_wrong_password_of_a_key_never_asks_the_terminal() -> None:
    closed = keys.closed_key_pem(keys.server(), "opens it")
    with pytest.raises(InvalidSetting, match="password") as raised:
        made(settings(keystore_key=closed, key_password="a bad guess"))
    assert "guess" not in str(raised.value)
    assert made(settings(keystore_key=closed, key_password="opens it"))


def test_somebody_may_insist_on_no_keys() -> None:
    config = BrokerConfig({"listeners": "SSL://127.0.0.1:0", ALLOW: "true"})
    assert tls_of(config, config.listeners[0]) is None


def test_config_check_says_the_same(tmp_path: Path) -> None:
    store = tmp_path / "none.jks"
    lines = f"listeners=SSL://127.0.0.1:0\nssl.keystore.location={store}\nssl.keystore.password=pw\n"
    (tmp_path / "server.properties").write_text(lines)
    said = CliRunner().invoke(main, ["config", "check", str(tmp_path / "server.properties")])
    assert said.exit_code == 1
    assert f"refused   ssl.keystore.location=  ({store}: the store cannot be read" in said.output
    started = CliRunner().invoke(main, ["serve", "--config", str(tmp_path / "server.properties")])
    assert started.exit_code == 1
    assert f"ssl.keystore.location: {store}: the store cannot be read" in started.output
