"""What becomes of metrics that clients push."""

from __future__ import annotations

from kafkalite.config import BrokerConfig, InvalidSetting
from kafkalite.env import Env
from kafkalite.server.limits import LimitedLog
from kafkalite.telemetry.forwarding import URL, Forwarding, check_url
from kafkalite.telemetry.payload import LIBRARY, can_read
from kafkalite.telemetry.receiver import Receiver
from kafkalite.telemetry.series import Series

NEEDED = f"that needs {LIBRARY}: pip install 'kafkalite[telemetry]'"


def receiver_of(env: Env, config: BrokerConfig, log: LimitedLog, *, is_told: bool) -> Receiver:
    """With series where they are told and can be read; raises InvalidSetting for an address that
    cannot be sent to."""
    url = config.get_optional_str(URL)
    forwarding = None
    if url:
        check_url(url)
        if not can_read():
            raise InvalidSetting(f"{URL}: {NEEDED}")
        forwarding = Forwarding(url, env.clock, env.background, log.warn)
    series = None
    if is_told and can_read():
        series = Series()
    elif is_told:
        log.warn("telemetry", f"what clients push is not told: {NEEDED}")
    return Receiver(env, config.get_int("telemetry.max.bytes"), series, forwarding)
