"""What sslscan finds at a listener with TLS and default settings: nothing weak.

The program is Debian's: `apt-get install sslscan`. Where there is none nothing is asked. What it
printed of both brokers is a table in docs/security.md.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.compat import brokers
from tests.compat.brokers import APACHE_KAFKA, KAFKALITE
from tests.compat.every_listener import Place, every_listener

PROGRAM = shutil.which("sslscan")
GOOD = {"strong", "acceptable"}
SERVED = {"tls 1.2", "tls 1.3"}
SLOW_GROUPS = {"ffdhe4096", "ffdhe6144", "ffdhe8192"}

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="there is no sslscan: apt-get install sslscan"),
    pytest.mark.timeout(300),
]


@dataclass(frozen=True)
class Scan:
    """What it says of one listener."""

    protocols: set[str]
    ciphers: dict[tuple[str, str], str]
    groups: set[str]
    vulnerable: list[str]


def scan(port: int) -> Scan:
    assert PROGRAM is not None
    said = subprocess.run(
        [PROGRAM, "--xml=-", "--no-colour", f"127.0.0.1:{port}"],
        capture_output=True, text=True, check=True, timeout=250,
    ).stdout  # fmt: skip
    found = ElementTree.fromstring(said).find("ssltest")
    assert found is not None, said
    renegotiation = found.find("renegotiation")
    assert renegotiation is not None
    weak = [f"heartbleed {each.get('sslversion')}" for each in found.iter("heartbleed")
            if each.get("vulnerable") != "0"]  # fmt: skip
    if renegotiation.get("supported") == "1" and renegotiation.get("secure") != "1":
        weak.append("renegotiation")
    return Scan(
        {f"{each.get('type')} {each.get('version')}" for each in found.iter("protocol")
         if each.get("enabled") == "1"},
        {(str(each.get("sslversion")), str(each.get("cipher"))): str(each.get("strength"))
         for each in found.iter("cipher")},
        {str(each.get("name")) for each in found.iter("group")},
        weak,
    )  # fmt: skip


@pytest.fixture(
    params=[KAFKALITE, pytest.param(APACHE_KAFKA, marks=pytest.mark.full)], scope="module"
)
def place(request: pytest.FixtureRequest, tmp_path_factory) -> Iterator[Place]:
    folder: Path = tmp_path_factory.mktemp("scanned")
    with every_listener(request.param, folder) as place:
        yield place


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_sslscan_finds_nothing_weak(place: Place, protocol: str) -> None:
    found = scan(place.ports[protocol])
    assert found.protocols == SERVED
    assert {version for version, _ in found.ciphers} == {"TLSv1.2", "TLSv1.3"}
    assert set(found.ciphers.values()) <= GOOD, found.ciphers
    assert not any(name.endswith("-SHA") for _, name in found.ciphers) or (
        place.broker.kind != brokers.KAFKALITE
    )
    assert not found.vulnerable
    has_slow = bool(found.groups & SLOW_GROUPS)
    assert has_slow is (place.broker.kind != brokers.KAFKALITE)
