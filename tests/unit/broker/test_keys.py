"""The keys of a running broker: files that change under it, and AlterConfigs."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from kafkalite.broker.encryption import LOOK_MS, Keys
from kafkalite.config import BrokerConfig, InvalidSetting
from kafkalite.env import manual_env
from kafkalite.env.background import QueuedBackground
from kafkalite.env.clock import ManualClock
from kafkalite.security.authority import Issued, der_of
from tests.unit.security import keys

NAMES = ("localhost", "127.0.0.1", "::1")


class Renewing:
    """Keys whose store lies in a file."""

    def __init__(self, folder: Path, **changes: str) -> None:
        self.path = folder / "server.pem"
        self.put(keys.server())
        self.clock = ManualClock()
        self.env = manual_env(clock=self.clock)
        self.jobs = self.env.background = QueuedBackground()
        self.config = BrokerConfig({
            "listeners": "SSL://127.0.0.1:0",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.path),
            **{name.replace("_", "."): text for name, text in changes.items()},
        })  # fmt: skip
        self.keys = Keys(self.env, self.config)
        self.keys.watch()

    def put(self, issued: Issued | None) -> None:
        text = "no key" if issued is None else issued.key_pem + issued.chain_pem
        stamp = self.path.stat().st_mtime_ns + 1_000_000 if self.path.exists() else 10**18
        self.path.write_text(text)
        os.utime(self.path, ns=(stamp, stamp))

    def look(self) -> None:
        self.clock.advance(LOOK_MS)
        self.jobs.run_all()

    def fault(self, changed: BrokerConfig) -> InvalidSetting | None:
        """Why the listeners could not go on with these settings, which a worker finds out."""
        self.jobs.run_all()
        answer = self.keys.check(changed)
        assert not answer.is_resolved
        self.jobs.run_all()
        return answer.value

    @property
    def shown(self) -> bytes:
        return self.keys.listeners["SSL"].leaves[0]


def other(subject: str = "CN=server,O=tests", names: tuple[str, ...] = NAMES) -> Issued:
    return keys.authority().issue(subject, names)


def test_a_store_that_changed_is_read_on_a_worker(tmp_path: Path) -> None:
    renewing, new = Renewing(tmp_path), other()
    renewing.look()
    before = renewing.keys.listeners["SSL"]
    renewing.look()
    assert renewing.keys.listeners["SSL"] is before, "nothing has changed"
    renewing.put(new)
    renewing.clock.advance(LOOK_MS)
    assert renewing.keys.listeners["SSL"] is before, "not on the loop"
    renewing.jobs.run_all()
    assert renewing.shown == der_of(new.certificate)


def test_a_bad_store_leaves_the_old_keys_and_one_line(tmp_path: Path, caplog) -> None:
    caplog.set_level(logging.INFO)
    renewing = Renewing(tmp_path)
    renewing.put(None)
    for _ in range(5):
        renewing.look()
    assert renewing.shown == der_of(keys.server().certificate)
    assert caplog.text.count("listener SSL keeps its keys") == 1
    renewing.put(other())
    renewing.look()
    assert caplog.text.count("listener SSL has new keys") == 1


@pytest.mark.parametrize(
    ("new", "allowed", "why"),
    [
        (("CN=another", NAMES), "ssl_allow_dn_changes", "DistinguishedName does not match"),
        (("CN=server,O=tests", ("localhost",)), "ssl_allow_san_changes", "lacks 2 of those"),
    ],
)
def test_another_name_has_to_be_allowed(tmp_path: Path, caplog, new, allowed, why) -> None:
    renewing = Renewing(tmp_path)
    renewing.put(other(*new))
    renewing.look()
    assert renewing.shown == der_of(keys.server().certificate)
    assert why in caplog.text
    free = Renewing(tmp_path, **{allowed: "true"})
    issued = other(*new)
    free.put(issued)
    free.look()
    assert free.shown == der_of(issued.certificate)


def test_a_setting_that_changed_is_followed_at_once(tmp_path: Path) -> None:
    renewing, new = Renewing(tmp_path), other()
    second = tmp_path / "second.pem"
    second.write_text(new.key_pem + new.chain_pem)
    layer = {"listener.name.ssl.ssl.keystore.location": str(second)}
    changed = renewing.config.with_layer(layer, is_per_broker=True)
    assert renewing.fault(changed) is None
    renewing.config.set_dynamic({}, layer)
    renewing.keys.settings_changed()
    renewing.jobs.run_all()
    assert renewing.shown == der_of(new.certificate)


def test_a_change_to_a_store_that_is_no_good_is_refused(tmp_path: Path) -> None:
    renewing = Renewing(tmp_path)
    layer = {"listener.name.ssl.ssl.keystore.location": str(tmp_path / "none.pem")}
    why = renewing.fault(renewing.config.with_layer(layer, is_per_broker=True))
    assert isinstance(why, InvalidSetting)
    assert "none.pem: the store cannot be read" in str(why)
    assert len(renewing.jobs) == 0


def test_settings_that_say_nothing_are_refused_unread(tmp_path: Path) -> None:
    renewing = Renewing(tmp_path)
    layer = {"listener.name.ssl.ssl.keystore.type": "STONE"}
    answer = renewing.keys.check(renewing.config.with_layer(layer, is_per_broker=True))
    assert isinstance(answer.value, InvalidSetting)
    assert renewing.keys.check(renewing.config).value is None


def test_nothing_is_taken_after_the_stop(tmp_path: Path) -> None:
    renewing = Renewing(tmp_path)
    renewing.put(other())
    renewing.clock.advance(LOOK_MS)
    renewing.keys.stop()
    renewing.jobs.run_all()
    assert renewing.shown == der_of(keys.server().certificate)
    renewing.clock.advance(10 * LOOK_MS)
    assert len(renewing.jobs) == 0


def test_a_list_of_what_was_taken_back_is_read_again_when_it_changes(tmp_path: Path) -> None:
    lists = tmp_path / "lists.pem"
    lists.write_text(keys.taken_back())
    renewing = Renewing(tmp_path, kafkalite_ssl_crl_location=str(lists))
    before = renewing.keys.listeners["SSL"].server
    renewing.look()
    assert renewing.keys.listeners["SSL"].server is before
    lists.write_text(keys.taken_back(keys.client()))
    renewing.look()
    assert renewing.keys.listeners["SSL"].server is not before


@pytest.mark.parametrize("text", ["", "no list", keys.server().chain_pem])
def test_a_file_without_a_list_ends_the_start(tmp_path: Path, text: str) -> None:
    lists = tmp_path / "lists.pem"
    lists.write_text(text)
    with pytest.raises(InvalidSetting, match=r"kafkalite.ssl.crl.location: .* no X509 CRL"):
        Renewing(tmp_path, kafkalite_ssl_crl_location=str(lists))


DAMAGED = "-----BEGIN X509 CRL-----\nMIIBA\n-----END X509 CRL-----\n"


def test_a_damaged_list_ends_the_start_and_is_told_of_once_while_running(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lists = tmp_path / "lists.pem"
    lists.write_text(keys.taken_back())
    renewing = Renewing(tmp_path, kafkalite_ssl_crl_location=str(lists))
    before = renewing.keys.listeners["SSL"].server
    lists.write_text(DAMAGED)
    renewing.look()
    renewing.look()
    assert caplog.text.count("an X509 CRL in this file is damaged") == 1
    assert renewing.keys.listeners["SSL"].server is before
    with pytest.raises(InvalidSetting, match=r"kafkalite.ssl.crl.location: .* is damaged"):
        Renewing(tmp_path, kafkalite_ssl_crl_location=str(lists))


def test_a_certificate_beside_a_list_is_not_trusted_for_that(tmp_path: Path) -> None:
    lists = tmp_path / "lists.pem"
    lists.write_text(keys.taken_back() + keys.stranger().chain_pem)
    renewing = Renewing(tmp_path, kafkalite_ssl_crl_location=str(lists),
                        ssl_client_auth="required")
    trusted = renewing.keys.listeners["SSL"].server.get_ca_certs(binary_form=True)
    assert der_of(keys.stranger().root) not in trusted
