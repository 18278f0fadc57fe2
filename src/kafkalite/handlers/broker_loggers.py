"""The broker's own loggers, as resources whose settings are levels (KIP-412).

Owns the way between Kafka's names of levels and ours. Nothing of it lasts: levels are those of this
process. Only loggers of kafkalite and the root can be seen and set.
"""

from __future__ import annotations

import logging

from kafkalite.coordinators.cluster.configs import Operation, Step
from kafkalite.protocol.errors import Error, KafkaError

ROOT = "root"
PACKAGE = "kafkalite"
LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG - 5,
}


def levels() -> dict[str, str]:
    """The level that holds for each logger."""
    return {name: _name_of(_logger(name).getEffectiveLevel()) for name in sorted(_names())}


def check_levels(steps: list[Step]) -> None:
    """Raises unless all of these steps could be made."""
    for step in steps:
        if step.operation not in (Operation.SET, Operation.DELETE):
            verb = Operation(step.operation).name
            why = f"{verb} operation is not allowed for the BROKER_LOGGER resource"
            raise KafkaError(Error.INVALID_REQUEST, why)
        if step.name not in _names():
            raise KafkaError(Error.INVALID_CONFIG, f"Logger {step.name} does not exist!")
        if step.operation == Operation.DELETE and step.name == ROOT:
            why = f"Removing the log level of the {ROOT} logger is not allowed"
            raise KafkaError(Error.INVALID_REQUEST, why)
        if step.operation == Operation.SET and step.value not in LEVELS:
            why = (
                f"Cannot set the log level of {step.name} to {step.value} as it is not a supported "
                f"log level. Valid log levels are {', '.join(sorted(LEVELS))}"
            )
            raise KafkaError(Error.INVALID_CONFIG, why)


def set_levels(steps: list[Step]) -> None:
    """Gives loggers their levels, or with DELETE those of their parents again."""
    for step in steps:
        level = LEVELS[step.value or ""] if step.operation == Operation.SET else logging.NOTSET
        _logger(step.name).setLevel(level)


def _names() -> set[str]:
    known = logging.root.manager.loggerDict
    ours = {name for name in known if name == PACKAGE or name.startswith(f"{PACKAGE}.")}
    return ours | {ROOT}


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _name_of(level: int) -> str:
    """Kafka's name of a level, or of the next coarser one."""
    return next((name for name, value in LEVELS.items() if value <= level), "TRACE")
