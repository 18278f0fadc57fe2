"""The settings of librdkafka's clients, said as Java's have them.

Owns which of librdkafka's names mean what; names that both have, and all others, stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kafkalite.config.setting import InvalidSetting
from kafkalite.security.client_settings import JAAS, MECHANISM, jaas_of

BOOTSTRAP = "bootstrap.servers"
_OTHER_NAMES = {"metadata.broker.list": BOOTSTRAP, "sasl.mechanisms": MECHANISM}
_USER, _PASSWORD = "sasl.username", "sasl.password"
_CHECKS = "enable.ssl.certificate.verification"
_NAMES_CHECK = "ssl.endpoint.identification.algorithm"
_CIPHERS = "ssl.cipher.suites"
# Files in PEM, and the same as text: what each is, as Java has it.
_PEM = {
    "ssl.ca": "ssl.truststore.certificates",
    "ssl.certificate": "ssl.keystore.certificate.chain",
    "ssl.key": "ssl.keystore.key",
}
_SYSTEMS = "probe"  # of ssl.ca.location: what the system trusts


def as_java(given: Mapping[str, str]) -> dict[str, str]:
    """Raises InvalidSetting for what cannot be kept. Reads the files that it names."""
    found = {_OTHER_NAMES.get(name, name): value for name, value in given.items()}
    for stem, name in _PEM.items():
        _take_pem(found, stem, name)
    _take_login(found)
    if found.pop(_CHECKS, "true").strip().lower() != "true":
        raise InvalidSetting(f"{_CHECKS}: certificates are always checked here; leave it out")
    if found.get(_NAMES_CHECK) == "none":
        found[_NAMES_CHECK] = ""
    if _CIPHERS in found:
        found[_CIPHERS] = found[_CIPHERS].replace(":", ",")
    return found


def _take_pem(found: dict[str, str], stem: str, name: str) -> None:
    place, text = found.pop(f"{stem}.location", None), found.pop(f"{stem}.pem", None)
    if place is not None and not (stem == "ssl.ca" and place == _SYSTEMS):
        try:
            text = Path(place).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "this is no PEM"
            raise InvalidSetting(f"{stem}.location: {place}: {why}") from None
    if text is not None:
        store, _, _ = name.partition("store.")
        found[f"{store}store.type"], found[name] = "PEM", text


def _take_login(found: dict[str, str]) -> None:
    user, password = found.pop(_USER, None), found.pop(_PASSWORD, None)
    if user is None and password is None:
        return
    if user is None or password is None:
        missing = _USER if user is None else _PASSWORD
        raise InvalidSetting(f"{missing} is not set: a login has both {_USER} and {_PASSWORD}")
    if JAAS not in found:
        found[JAAS] = jaas_of(found.get(MECHANISM, ""), user, password)
