"""Crowds before their login: bounded memory, others are served, and whoever means well comes in.

At full size 10,000 at a time, beside a client whose p99 is held to 20 ms:
    KAFKALITE_HOSTILE=full python -m pytest tests/hostile/test_strangers.py -s
"""

import pytest

from kafkalite.cli.serve import WAITS_LEFT, WATCH_WAITS
from tests.compat.brokers import KAFKALITE
from tests.compat.every_listener import every_listener
from tests.hostile.peers import IS_FULL, allow_open_files
from tests.hostile.strangers import MECHANISMS, WAYS, Attack, tell
from tests.unit.security.signing import key_set, public, rsa_key

COUNT = 10_000 if IS_FULL else 1_000
GROWN_MB = 64 if IS_FULL else 24  # of which 2 are the handlers that a broker makes ready meanwhile
FLOOD_MB = 64 if IS_FULL else 32
HEALTHY_P99_MS = 20.0
# Each of them shakes hands first, in the test's own process.
SHAKEN = COUNT if IS_FULL else 200


@pytest.fixture
def place(tmp_path, monkeypatch):
    allow_open_files(COUNT + 10_000)
    monkeypatch.setenv(WATCH_WAITS, "1")
    with every_listener(KAFKALITE, tmp_path) as place:
        yield place
    assert WAITS_LEFT not in place.broker.log()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("protocol", "ways"),
    [
        ("SSL", ("stalls",)),
        ("SSL", WAYS),
        ("SASL_PLAINTEXT", WAYS),
        ("SASL_PLAINTEXT", ("halves",)),
        ("SASL_SSL", WAYS),
    ],
)
def test_a_crowd_before_its_login_costs_little_and_disturbs_nobody(place, protocol, ways):
    attack = Attack(place, protocol, SHAKEN if protocol == "SASL_SSL" else COUNT)
    found = attack.run(*ways)
    tell(attack, ways, found)
    assert found.grown_mb <= GROWN_MB
    assert found.let_in_s
    assert not found.kept_out
    assert not IS_FULL or found.p99_ms <= HEALTHY_P99_MS


FLOOD = 400 if IS_FULL else 100
OAUTH = "listener.name.sasl_plaintext.oauthbearer.sasl"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
CHECKS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"


@pytest.mark.timeout(300)
def test_a_flood_of_large_logins_costs_little_and_disturbs_nobody(tmp_path, monkeypatch):
    """Half a megabyte each, by three mechanisms, again and again."""
    monkeypatch.setenv(WATCH_WAITS, "1")
    keys = tmp_path / "keys.json"
    keys.write_bytes(key_set(public(rsa_key("one"), "one")))
    settings = {
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} required user_eve="e";',
        f"{OAUTH}.server.callback.handler.class": CHECKS,
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "connection.failed.authentication.delay.ms": "3000",
    }
    with every_listener(KAFKALITE, tmp_path / "broker", settings) as place:
        attack = Attack(place, "SASL_PLAINTEXT", FLOOD)
        found, through = attack.flood(rounds=4, round_s=2.0)
        tell(attack, (f"flood:{through}",), found)
        assert WAITS_LEFT not in place.broker.log()
    assert through >= FLOOD / 2
    assert found.grown_mb <= FLOOD_MB
    assert found.let_in_s
    assert not found.kept_out
    assert not IS_FULL or found.p99_ms <= HEALTHY_P99_MS
