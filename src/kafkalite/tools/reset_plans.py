"""Where a group is to go on, as people write it: a moment, a duration, a file of offsets."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone

from kafkalite.tools.failures import Failure, illegal_argument, runtime, wrapped
from kafkalite.tools.files import read_text
from kafkalite.tools.java_maps import TopicPartition
from kafkalite.tools.java_numbers import INT, LONG, whole
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
_UNREADABLE = "com.fasterxml.jackson.dataformat.csv.CsvReadException"
_UNITS = ("days", "hours", "minutes", "seconds")
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
    parts = [found[number] or "0" for number in (2, 3, 4)]
    for name, part in zip(_UNITS, [*parts, re.split("[.,]", found[5] or "0")[0]], strict=True):
        _check_fits(part, name)
    days, hours, minutes = map(int, parts)
    seconds = float((found[5] or "0").replace(",", "."))
    value = 1000 * (86_400 * days + 3_600 * hours + 60 * minutes) + round(1000 * seconds)
    _check_fits(str(value), "overflow")
    return -value if found[1] == "-" else value


def _check_fits(number: str, name: str) -> None:
    try:
        whole(number, LONG)
    except ValueError:
        message = f"Text cannot be parsed to a Duration: {name}"
        raise Failure("java.time.format.DateTimeParseException", message) from None


def of_file(given: Given) -> dict[str, dict[TopicPartition, int]]:
    """The offsets of each group: lines of a topic, a partition and an offset, with a group before
    them when there is more than one."""
    groups, path = given.all("group"), given.all("from-file")[0]
    rows = _rows(_text(path))
    has_groups = not _is_without_groups(rows[0]) or len(groups) != 1
    found: dict[str, dict[TopicPartition, int]] = {}
    for row in rows:
        if not row:
            raise runtime(_empty())
        _check_length(row, 4 if has_groups else 3)
        group, topic, partition, offset = [*(row if has_groups else [groups[0], *row]), *"000"][:4]
        place = topic, _number(partition)
        found.setdefault(group, {})[place] = _offset(offset)
    return found


def _rows(text: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    except csv.Error as error:
        raise runtime(Failure(_UNREADABLE, str(error))) from None


def _check_length(row: Sequence[str], most: int) -> None:
    if len(row) > most:
        message = (
            f"Too many entries: expected at most {most} (value #{most} ({len(row[most])} chars) "
            f'"{row[most]}")'
        )
        raise runtime(Failure(_UNREADABLE, message))


def _offset(text: str) -> int:
    found = _number(text, LONG)
    if found < 0:
        raise illegal_argument("Invalid negative offset")
    return found


def _is_without_groups(row: Sequence[str]) -> bool:
    """Says so, as Apache Kafka's tool does each of the two times that it reads the file."""
    try:
        if not row:
            raise _empty()
        for text, bits in zip(row[1:3], (INT, LONG), strict=False):
            _number(text, bits)
    except Failure as failure:
        told = failure.cause or failure
        for _ in range(2 if row else 1):
            tell(told.stack().removesuffix("\n"))
        return False
    return len(row) <= len(("topic", "partition", "offset"))


def _text(path: str) -> str:
    with wrapped(runtime):
        return read_text(path)


def _number(text: str, bits: int = INT) -> int:
    try:
        return whole(text.strip(), bits)
    except ValueError:
        kind = "int" if bits == INT else "long"
        message = (
            f'Cannot deserialize value of type `{kind}` from String "{text}": not a valid '
            f"`{kind}` value"
        )
        raise runtime(Failure(f"{_JACKSON}InvalidFormatException", message)) from None


def _empty() -> Failure:
    message = "No content to map due to end-of-input"
    return Failure(f"{_JACKSON}MismatchedInputException", message)
