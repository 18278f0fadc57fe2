"""What settings say of OAUTHBEARER, and what no broker starts with."""

import os

import pytest

from kafkalite.config import BrokerConfig, InvalidSetting, RefusedSettings, broker_config
from kafkalite.config.protections import SIGNED_CHECK, UNSECURED_CHECK
from kafkalite.security import oauth_settings
from kafkalite.security.login_settings import login_settings
from kafkalite.security.oauth_settings import SignedSettings
from kafkalite.security.signed_tokens import SignedRules
from kafkalite.security.unsecured_tokens import UnsecuredRules

PREFIX = "listener.name.out"
OWN = f"{PREFIX}.oauthbearer"
CHECK = f"{OWN}.sasl.server.callback.handler.class"
JAAS = f"{OWN}.sasl.jaas.config"
URL = "sasl.oauthbearer.jwks.endpoint.url"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
BASE = {
    "listeners": "PLAINTEXT://127.0.0.1:9092,OUT://127.0.0.1:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
}
HTTP = "http://127.0.0.1:1/keys"


def found(**more):
    config, _ = broker_config({**BASE, **more})
    return login_settings(config)["OUT"].oauth


def signed(**more):
    settings = found(**{CHECK: SIGNED_CHECK, URL: HTTP, **more})
    assert isinstance(settings, SignedSettings)
    return settings


def test_usual_values():
    settings = signed()
    assert (settings.source.url, settings.rules) == (HTTP, SignedRules(skew_s=30))
    times = (settings.refresh_ms, settings.backoff_ms, settings.most_backoff_ms)
    assert times == (3_600_000, 100, 10_000)


def test_all_of_them_for_one_listener_and_for_the_mechanism():
    name = "sasl.oauthbearer"
    settings = signed(**{
        f"{OWN}.{URL}": "https://one/keys", f"{PREFIX}.{URL}": "https://two/keys",
        f"{PREFIX}.{name}.expected.audience": "a,b", f"{name}.expected.issuer": "me",
        f"{name}.clock.skew.seconds": "5", f"{OWN}.{name}.scope.claim.name": "scp",
        f"{name}.sub.claim.name": "upn", f"{name}.jwks.endpoint.refresh.ms": "7",
        f"{name}.jwks.endpoint.retry.backoff.ms": "8",
        f"{name}.jwks.endpoint.retry.backoff.max.ms": "9",
        f"{name}.jwt.validator.class":
            "org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator",
    })  # fmt: skip
    assert settings.source.url == "https://one/keys"
    assert settings.rules == SignedRules(("a", "b"), "me", 5, "scp", "upn")
    assert (settings.refresh_ms, settings.backoff_ms, settings.most_backoff_ms) == (7, 8, 9)


def test_whom_an_address_is_trusted_by(tmp_path):
    options = 'ssl.truststore.type="PEM" ssl.truststore.location="/ca.pem"'
    settings = signed(**{JAAS: f"{MODULE} {options};"})
    assert settings.source.trusted is not None
    assert (settings.source.trusted.kind, settings.source.trusted.location) == ("PEM", "/ca.pem")
    assert settings.source.checks_name
    options = 'ssl.endpoint.identification.algorithm=""'
    assert not signed(**{JAAS: f"{MODULE} {options};"}).source.checks_name


def test_a_file_of_keys(tmp_path):
    path = tmp_path / "my keys.json"
    path.write_text("{}")
    assert signed(**{URL: path.as_uri()}).source.read() == b"{}"


def test_a_pipe_of_keys_is_not_waited_for(tmp_path):
    path = tmp_path / "keys.json"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)  # else nothing but a refusal would end this
    try:
        with pytest.raises(InvalidSetting, match="it is no file"):
            signed(**{URL: path.as_uri()})
    finally:
        os.close(writer)


def test_unsecured_tokens_are_taken_when_somebody_says_so():
    options = 'unsecuredLoginStringClaim_sub="admin"'
    assert found(**{JAAS: f"{MODULE} {options};"}) == UnsecuredRules()
    assert found(**{CHECK: UNSECURED_CHECK}) == UnsecuredRules()
    options = (
        'unsecuredValidatorPrincipalClaimName="upn" unsecuredValidatorScopeClaimName="scp" '
        'unsecuredValidatorRequiredScope=" a b" unsecuredValidatorAllowableClockSkewMs="3000"'
    )
    expected = UnsecuredRules("upn", "scp", ("a", "b"), 3_000)
    assert found(**{JAAS: f"{MODULE} {options};"}) == expected


def test_the_class_that_checks_signatures_counts_more():
    options = 'unsecuredLoginStringClaim_sub="admin"'
    assert isinstance(signed(**{JAAS: f"{MODULE} {options};"}), SignedSettings)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, "nothing says how tokens of OAUTHBEARER are checked"),
        ({JAAS: f"{MODULE};"}, "nothing says how tokens of OAUTHBEARER are checked"),
        ({JAAS: "org.x.Module required;"}, f"{JAAS}: expected org.apache"),
        ({CHECK: SIGNED_CHECK}, f"{URL}: .*there are no keys"),
        ({CHECK: SIGNED_CHECK, URL: "ftp://x/y"}, f"{URL}: expected an address of http"),
        ({CHECK: SIGNED_CHECK, URL: "keys.json"}, f"{URL}: expected an address"),
        ({CHECK: SIGNED_CHECK, URL: "http://"}, f"{URL}: expected an address"),
        ({CHECK: SIGNED_CHECK, URL: "http://h:x/"}, f"{URL}: expected an address"),
        ({CHECK: SIGNED_CHECK, URL: "file:///no/such/file"}, f"{URL}: /no/such/file: No such"),
        ({CHECK: SIGNED_CHECK, URL: HTTP, "sasl.oauthbearer.jwt.validator.class": "com.x.Y"},
         "no class of another runtime checks tokens"),
        ({CHECK: SIGNED_CHECK, URL: HTTP, "sasl.oauthbearer.sub.claim.name": " "},
         "sasl.oauthbearer.sub.claim.name: expected"),
        ({CHECK: SIGNED_CHECK, URL: HTTP, "sasl.oauthbearer.jwks.endpoint.refresh.ms": "0"},
         "refresh.ms: expected more than 0"),
        ({CHECK: SIGNED_CHECK, URL: HTTP, JAAS: f'{MODULE} ssl.keystore.location="x";'},
         "ssl.keystore.location cannot be had"),
        ({JAAS: f'{MODULE} unsecuredValidatorAllowableClockSkewMs="-1";'}, "a number, 0 or more"),
        ({JAAS: f'{MODULE} unsecuredValidatorRequiredScope="a\\\\b";'}, "expected words"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_ends_the_start_with_one_sentence(more, why):
    with pytest.raises(InvalidSetting, match=why) as refused:
        found(**more)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "key",
    ["sasl.server.callback.handler.class", f"{PREFIX}.sasl.server.callback.handler.class",
     f"{PREFIX}.plain.sasl.server.callback.handler.class"],
)  # fmt: skip
def test_a_check_in_another_place_would_not_be_made(key):
    with pytest.raises(RefusedSettings, match="no class of another runtime checks who logs in"):
        broker_config({**BASE, key: SIGNED_CHECK})


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(oauth_settings, "find_spec", lambda name: None)
    with pytest.raises(InvalidSetting, match=r"pip install 'kafkalite\[security\]'"):
        signed()


def test_no_other_mechanism_asks_for_any_of_that():
    config = BrokerConfig({**BASE, "sasl.enabled.mechanisms": "SCRAM-SHA-256"})
    assert login_settings(config)["OUT"].oauth is None
