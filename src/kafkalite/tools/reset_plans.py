"""Where a group is to go on, as people write it: a moment, a duration, a file of offsets."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from kafkalite.tools.failures import Failure, runtime
from kafkalite.tools.java_maps import TopicPartition
from kafkalite.tools.options import Given
from kafkalite.tools.running import tell

_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(?:T(?=[-+\d])(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?"
    r"(?:([-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE,
)
_MOMENT = re.compile(
    r"(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d+)(?:Z|([-+])(\d\d)(?::?(\d\d))?)"
)
_JACKSON = "com.fasterxml.jackson.databind.exc."


def moment_ms(text: str) -> int:
    """Milliseconds since 1970 of a date with its time, in UTC where no zone is said."""
    _, mark, clock = text.partition("T")
    if not mark or not clock:
        message = (
            "Error parsing timestamp. It does not contain a 'T' according to ISO8601 format"
        )
        raise Failure("java.text.ParseException", message)
    if not any(sign in clock for sign in "+-Z"):
        text += "Z"
    found = _MOMENT.match(text)
    unreadable = Failure("java.text.ParseException", f'Unparseable date: "{text}"')
    if found is None:
        raise unreadable
    year, month, day, hour, minute, second, millis = map(int, found.group(*range(1, 8)))
    away = timedelta(hours=int(found[9] or 0), minutes=int(found[10] or 0))
    try:
        zone = timezone(-away if found[8] == "-" else away)
        moment = datetime(year, month, day, hour, minute, second, tzinfo=zone)
    except ValueError:
        raise unreadable from None
    if millis > 999:
        raise unreadable
    return round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1000 + millis


def duration_ms(text: str) -> int:
    """Of days, hours, minutes and seconds as ISO 8601 writes them."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()[1:]):
        message = "Text cannot be parsed to a Duration"
        raise Failure("java.time.format.DateTimeParseException", message)
    days, hours, minutes = (int(found[number] or 0) for number in (2, 3, 4))
    seconds = float((found[5] or "0").replace(",", "."))
    value = 1000 * (86_400 * days + 3_600 * hours + 60 * minutes) + round(1000 * seconds)
    return -value if found[1] == "-" else value


def of_file(given: Given) -> dict[str, dict[TopicPartition, int]]:
    """The offsets of each group: lines of a topic, a partition and an offset, with a group before
    them when there is more than one."""
    groups, path = given.all("group"), given.all("from-file")[0]
    rows = list(csv.reader(_text(path).removesuffix("\n").split("\n")))
    has_groups = not _is_without_groups(rows[0]) or len(groups) != 1
    found: dict[str, dict[TopicPartition, int]] = {}
    for row in rows:
        if not row:
            raise runtime(_empty())
        group, topic, partition, offset = [*(row if has_groups else [groups[0], *row]), *"000"][:4]
        found.setdefault(group, {})[topic, _number(partition)] = _number(offset)
    return found


def _is_without_groups(row: Sequence[str]) -> bool:
    """Says so, as Apache Kafka's tool does each of the two times that it reads the file."""
    try:
        if not row:
            raise _empty()
        for text in row[1:3]:
            _number(text)
    except Failure as failure:
        told = failure.cause or failure
        for _ in range(2 if row else 1):
            tell(told.stack().removesuffix("\n"))
        return False
    return len(row) <= len(("topic", "partition", "offset"))


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        cause = Failure("java.nio.file.NoSuchFileException", path)
    except OSError as error:
        cause = Failure("java.nio.file.FileSystemException", f"{path}: {error.strerror}")
    raise runtime(Failure("java.io.IOException", f"Unable to read file {path}", cause))


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        message = (
            f'Cannot deserialize value of type `int` from String "{text}": not a valid `int` value'
        )
        raise runtime(Failure(f"{_JACKSON}InvalidFormatException", message)) from None


def _empty() -> Failure:
    message = "No content to map due to end-of-input"
    return Failure(f"{_JACKSON}MismatchedInputException", message)
