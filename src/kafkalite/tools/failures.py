"""How a tool ends when it cannot do what it is to do: Java's exceptions by their names.

Apache Kafka's tools print them with the lines of a Java stack (`at …`); there is none here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafkalite.protocol.errors import Error

ERRORS = "org.apache.kafka.common.errors."
# Exceptions that are not called as their error codes are.
_IRREGULAR = {
    "CORRUPT_MESSAGE": "CorruptRecordException",
    "DELEGATION_TOKEN_AUTH_DISABLED": "DelegationTokenDisabledException",
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": "UnsupportedByAuthenticationException",
    "DUPLICATE_SEQUENCE_NUMBER": "DuplicateSequenceException",
    "INVALID_CONFIG": "InvalidConfigurationException",
    "INVALID_PRODUCER_ID_MAPPING": "InvalidPidMappingException",
    "INVALID_REGULAR_EXPRESSION": "InvalidRegularExpression",
    "INVALID_TRANSACTION_TIMEOUT": "InvalidTxnTimeoutException",
    "MESSAGE_TOO_LARGE": "RecordTooLargeException",
    "NON_EMPTY_GROUP": "GroupNotEmptyException",
    "OFFSET_METADATA_TOO_LARGE": "OffsetMetadataTooLarge",
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "OutOfOrderSequenceException",
    "PRINCIPAL_DESERIALIZATION_FAILURE": "PrincipalDeserializationException",
    "RECORD_LIST_TOO_LARGE": "RecordBatchTooLargeException",
    "REQUEST_TIMED_OUT": "TimeoutException",
    "STALE_CONTROLLER_EPOCH": "ControllerMovedException",
    "TOPIC_ALREADY_EXISTS": "TopicExistsException",
}
_ELSEWHERE = {"INVALID_RECORD": "org.apache.kafka.common."}  # not among the others
_NOT_SAID = ("_FAILED", "_ERROR", "_EXCEPTION")


class Failure(Exception):
    """A Java exception: its class, what it says, and its cause."""

    def __init__(self, java: str, message: str, cause: Failure | None = None) -> None:
        super().__init__(message)
        self.java, self.message, self.cause = java, message, cause
        self.suppressed: list[Failure] = []

    def stack(self) -> str:
        """As Java prints it, without the places in its source."""
        lines, each = [], self
        lines.append(f"{each.java}: {each.message}")
        lines += [f"\tSuppressed: {other.java}: {other.message}" for other in self.suppressed]
        while (each := each.cause) is not None:  # type: ignore[assignment]
            lines.append(f"Caused by: {each.java}: {each.message}")
        return "\n".join(lines) + "\n"


class WrongUse(Exception):
    """Words that do not go together: its message and the help are printed."""


class TerseFailure(Exception):
    """What a tool says in one sentence, and no stack."""


def kafka(message: str, cause: Failure | None = None) -> Failure:
    return Failure("org.apache.kafka.common.KafkaException", message, cause)


def wrong_setting(message: str) -> Failure:
    return Failure("org.apache.kafka.common.config.ConfigException", message)


def timeout(message: str) -> Failure:
    return Failure(f"{ERRORS}TimeoutException", message)


def serialization(message: str) -> Failure:
    return Failure(f"{ERRORS}SerializationException", message)


def illegal_argument(message: str) -> Failure:
    return Failure("java.lang.IllegalArgumentException", message)


def no_number(text: str) -> Failure:
    return Failure("java.lang.NumberFormatException", f'For input string: "{text}"')


def execution(cause: Failure) -> Failure:
    """What a future of Apache Kafka's admin client raises; tools tell its cause's message."""
    message = f"{cause.java}: {cause.message}"
    return Failure("java.util.concurrent.ExecutionException", message, cause)


def runtime(cause: Failure) -> Failure:
    """What a tool makes of an exception that it does not declare."""
    return Failure("java.lang.RuntimeException", f"{cause.java}: {cause.message}", cause)


@contextmanager
def wrapped(*wraps: Callable[[Failure], Failure]) -> Iterator[None]:
    """A failure within comes out as the cause of others, the first of them innermost."""
    try:
        yield
    except Failure as failure:
        for wrap in wraps:
            failure = wrap(failure)
        raise failure from None


def refused(code: int, message: str | None = None) -> Failure:
    """What a broker answered: an error code, and perhaps what it says of it."""
    error = Error(code)
    if message is None:
        message = _messages()[error.name]
    package = _ELSEWHERE.get(error.name, ERRORS)
    return Failure(package + exception_of(error.name), message)


def _messages() -> dict[str, str]:
    """What Apache Kafka's clients say of each error code."""
    from pathlib import Path

    lines = Path(__file__).with_name("error_messages.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines if not line.startswith("#"))


def code_of(failure: Failure) -> str:
    """The error code whose exception it is, by name."""
    names = (code.name for code in Error if failure.java == ERRORS + exception_of(code.name))
    return next(names, Error.UNKNOWN_SERVER_ERROR.name)


def exception_of(code: str) -> str:
    """The name of the exception of an error code."""
    if code in _IRREGULAR:
        return _IRREGULAR[code]
    for ending in _NOT_SAID:
        code = code.removesuffix(ending)
    return "".join(part.capitalize() for part in code.split("_")) + "Exception"


def timed_out(call: str) -> Failure:
    """Nobody answered a call of the admin client in time."""
    return timeout(f"Timed out waiting for a node assignment. Call: {call}")
