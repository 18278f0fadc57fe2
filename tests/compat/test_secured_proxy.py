"""`kafkalite proxy` and `replay` before both brokers, where these want TLS and logins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.testing.keys import Keys
from kafkalite.testing.recording.recorder import Recorder
from kafkalite.testing.recording.trace import to_json
from tests.compat.secured_broker import SecuredBroker, secured_broker
from tests.unit.cli.test_proxy import proxying
from tests.unit.cli.test_secured_proxy import (
    USERS,
    apis,
    application,
    listening,
    replay_of,
    shown,
    written,
)

__all__ = ["shown"]

WAYS = {
    "mutual": ("SSL", "", True),
    "plain": ("SASL_SSL", "PLAIN", False),
    "scram": ("SASL_PLAINTEXT", "SCRAM-SHA-512", False),
}
pytestmark = [pytest.mark.xdist_group("tls"), pytest.mark.theirs_in_full]


@pytest.fixture(scope="module", params=list(WAYS))
def secured(request, broker_kind: str, tmp_path_factory) -> Iterator[SecuredBroker]:
    protocol, mechanism, is_mutual = WAYS[request.param]
    folder = tmp_path_factory.mktemp("secured")
    with secured_broker(broker_kind, folder, protocol, mechanism, is_mutual=is_mutual) as found:
        yield found


def let_in(secured: SecuredBroker, folder: Path) -> str:
    return written(folder / "client.properties", secured.client_config("java"))


def test_clients_in_the_open_go_by_the_proxys_login(
    secured: SecuredBroker, topic: str, tmp_path: Path
) -> None:
    trace, to = tmp_path / "trace.jsonl", let_in(secured, tmp_path)
    options = ("--save", str(trace), "--command-config", to)
    with proxying(secured.bootstrap, tmp_path, *options) as (port, process):
        application({"bootstrap.servers": f"127.0.0.1:{port}"}, topic)
    assert process.returncode == 0
    assert {"Produce", "Fetch", "JoinGroup"} <= apis(trace)
    assert "SaslHandshake" not in apis(trace)


def test_a_trace_of_an_open_broker_is_replayed_to_it(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    """And to one of another kind of login, which answers as it does."""
    with EmbeddedKafka() as recorded, Recorder(recorded.bootstrap_servers) as recorder:
        application({"bootstrap.servers": recorder.bootstrap_servers}, "replayed")
    trace, to = tmp_path / "trace.jsonl", let_in(secured, tmp_path)
    trace.write_text("".join(f"{to_json(each)}\n" for each in recorder.said), encoding="utf-8")
    with EmbeddedKafka(security="sasl_ssl", mechanism="SCRAM-SHA-256", users=USERS) as ours:
        own = written(tmp_path / "own.properties", ours.client_config("java"))
        done = replay_of(trace, (ours.bootstrap_servers, own), (secured.bootstrap, to))
    assert done.exit_code == 0, done.output
    assert " 0 answered differently" in done.output


def test_a_client_with_a_login_of_its_own_comes_through(
    secured: SecuredBroker, shown: Keys, topic: str, tmp_path: Path
) -> None:
    """Its tokens go to the broker as they are, and are not written down."""
    if not secured.secured.mechanism:
        pytest.skip("nobody logs in here")
    told = secured.client_config("confluent")
    client = {name: each for name, each in told.items() if not name.startswith("ssl.")}
    client |= {"security.protocol": "SASL_SSL", "ssl.ca.location": shown.ca}
    to = dict(secured.client_config("java"))
    to["security.protocol"] = to["security.protocol"].replace("SASL_SSL", "SSL")
    to["security.protocol"] = to["security.protocol"].replace("SASL_PLAINTEXT", "PLAINTEXT")
    trace = tmp_path / "trace.jsonl"
    options = (
        "--save", str(trace), "--command-config", written(tmp_path / "to.properties", to),
        "--listen-config", listening(shown, tmp_path),
    )  # fmt: skip
    with proxying(secured.bootstrap, tmp_path, *options) as (port, process):
        application({**client, "bootstrap.servers": f"127.0.0.1:{port}"}, topic)
    assert process.returncode == 0
    assert {"SaslHandshake", "SaslAuthenticate", "Produce", "Fetch"} <= apis(trace)
    assert USERS["alice"] not in trace.read_text()
