"""What is called honoured is read somewhere, and what is called ignored is not acted upon.

A setting counts as read when its name stands in the program, or when it is a field of what a log is
told. This cannot prove an effect; it catches a row that nobody ever looked at.
"""

from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

import kafkalite
from kafkalite.config import broker_settings, topic_settings
from kafkalite.config.group import KINDS
from kafkalite.config.topic import STAND_IN
from kafkalite.coordinators.cluster.internal_topics import PREFIXES
from kafkalite.log.config import LogConfig, LogSettings

LOG_FIELDS = {
    field.name.replace("_", ".") for of in (LogConfig, LogSettings) for field in fields(of)
}
# Settings whose names are put together from parts.
COMPOSED = (
    *(f"{prefix}." for prefix in PREFIXES.values()),
    *(f"group.{kind}.{edge}." for kind in KINDS for edge in ("min", "max")),
)


@cache
def program() -> str:
    root = Path(kafkalite.__file__).parent
    return "\n".join(path.read_text() for path in sorted(root.rglob("*.py")))


def is_read(name: str) -> bool:
    stands_in = {each for key, names in STAND_IN.items() if key in LOG_FIELDS for each in names}
    return (
        f'"{name}"' in program()
        or name in LOG_FIELDS
        or name in stands_in
        or name.startswith(COMPOSED)
        # What holds for a group that has no setting of its own (`config.group_value`).
        or (name.startswith("group.share.") and f'"{name.removeprefix("group.")}"' in program())
    )


@pytest.mark.parametrize(
    "name", [each.name for each in broker_settings().values() if each.ignored is None]
)
def test_an_honoured_broker_setting_is_read(name):
    assert is_read(name)


@pytest.mark.parametrize(
    "name", [each.name for each in topic_settings().values() if each.ignored is None]
)
def test_an_honoured_topic_setting_is_read(name):
    assert name in LOG_FIELDS or f'"{name}"' in program()
