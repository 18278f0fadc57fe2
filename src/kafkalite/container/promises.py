"""Variables of other images that ask for a protection, which this broker could only pretend to
give: the start is refused, with one sentence that names the variable.

Each is to go from here once the broker keeps what it asks for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kafkalite.config import InvalidSetting

ALLOW = "KAFKA_KAFKALITE_ALLOW_INSECURE"
_NO_USERS = "users are named by listener.name.NAME.MECHANISM.sasl.jaas.config, there are none"
_NO_KEYS = "keys are named by ssl.keystore.location or ssl.keystore.key, nothing is encrypted"

# Names, and why such a one cannot be taken.
_REFUSED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"KAFKA_(CLIENT|INTER_BROKER|CONTROLLER)_(USERS?|PASSWORDS?)"), _NO_USERS),
    (re.compile(r"KAFKA_CERTIFICATE_PASSWORD|KAFKA_TLS_\w+"), _NO_KEYS),
)


def refuse_protections(environment: Mapping[str, str]) -> None:
    """Raises InvalidSetting for the first variable that asks for what is not there."""
    if environment.get(ALLOW, "").strip().lower() == "true":
        return
    for variable in sorted(environment):
        why = _why_not(variable, environment[variable])
        if why is not None:
            raise InvalidSetting(f"{variable}: {why}; {ALLOW}=true starts without this protection")


def _why_not(variable: str, value: str) -> str | None:
    if not value.strip():
        return None
    return next((why for names, why in _REFUSED if names.fullmatch(variable)), None)
