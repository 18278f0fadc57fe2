"""Settings of client metrics subscriptions (KIP-714): which are accepted.

Owns Kafka's rules and sentences for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kafkalite.config import InvalidSetting, client_metrics_settings
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError

# What Python says of text that is none, or counts too far, or is nested too deep.
NO_EXPRESSION = (re.error, OverflowError, RecursionError, ValueError)
MAX_LENGTH = 4_096  # of an expression: it is read in one turn of the loop
MIN_INTERVAL_MS = 100
MAX_INTERVAL_MS = 3_600_000
SELECTORS = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def check_client_metrics(name: str, settings: Mapping[str, str]) -> Steps[None]:
    """Raises unless a subscription may have this name and these settings."""
    if not name:
        raise KafkaError(Error.INVALID_REQUEST, "Subscription name can't be empty")
    table = client_metrics_settings()
    for each in settings:
        if each not in table:
            raise KafkaError(Error.INVALID_REQUEST, f"Unknown client metrics configuration: {each}")
    parsed = {each: table[each].parse(text) for each, text in settings.items()}
    interval_ms, patterns = parsed.get("interval.ms"), parsed.get("match")
    if isinstance(interval_ms, int):
        _check_interval(interval_ms)
    if isinstance(patterns, list):
        for pattern in patterns:
            _check_pattern(pattern)
            yield


def _check_interval(interval_ms: int) -> None:
    if not MIN_INTERVAL_MS <= interval_ms <= MAX_INTERVAL_MS:
        why = (
            f"Invalid value {interval_ms} for interval.ms, interval must be between "
            f"{MIN_INTERVAL_MS} and {MAX_INTERVAL_MS} (1 hour)"
        )
        raise KafkaError(Error.INVALID_REQUEST, why)


def _check_pattern(pattern: str) -> None:
    selector, _, expression = pattern.rstrip("=").partition("=")
    try:
        if len(expression) > MAX_LENGTH:
            raise re.error("it is too long")
        re.compile(expression.strip())
    except NO_EXPRESSION:
        expression = ""
    if selector.strip() not in SELECTORS or not expression or "=" in expression:
        raise InvalidSetting(f"Illegal client matching pattern: {pattern}")
