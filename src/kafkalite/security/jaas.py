"""JAAS as a setting holds it: a login module, a flag, and options in quotes, up to a semicolon; or
a file, in sections with names.

Owns that syntax, read as Java's StreamTokenizer reads it with Kafka's choice of characters: a word
that begins with a digit is a number there and no value, a slash begins a comment, and a quoted
text ends with its line. No sentence here quotes what it read, which may be a secret.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalite.env.dataclasses import dataclass, field

FLAGS = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")
QUOTES = "\"'"
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$")
DIGITS = frozenset("0123456789.-")
OCTAL = "01234567"
ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"
}  # fmt: skip


class MalformedJaas(ValueError):
    """What cannot be read as a line of JAAS."""


@dataclass(slots=True, frozen=True)
class Entry:
    """A login module with its options."""

    module: str
    options: dict[str, str] = field(repr=False)


@dataclass(slots=True, frozen=True)
class _Token:
    """A word or a quoted text; or else one character that stands for itself, or a number."""

    text: str | None
    sign: str = ""


def parse_entry(text: str) -> Entry:
    """The one login module of a setting; raises MalformedJaas."""
    entries = list(_entries(_tokens(text)))
    if not entries:
        raise MalformedJaas("Login module not specified in JAAS config")
    if len(entries) != 1:
        raise MalformedJaas(
            f"JAAS config property contains {len(entries)} login modules, should be 1 module"
        )
    return entries[0]


def parse_file(text: str) -> dict[str, list[Entry]]:
    """The login modules of a file's sections, `NAME { module; module; };`; raises
    MalformedJaas."""
    tokens, found = _tokens(text), {}
    for number, name in enumerate(tokens, 1):
        opening = next(tokens, None)
        if name.text is None or opening is None or opening.sign != "{":
            raise MalformedJaas(f"section {number} does not begin with its name and {{")
        if name.text in found:
            raise MalformedJaas(f"section {number} has the name of one before it")
        found[name.text] = list(_entries(_until_brace(tokens, number)))
        closing = next(tokens, None)
        if closing is None or closing.sign != ";":
            raise MalformedJaas(f"section {number} does not end with }};")
    return found


def _until_brace(tokens: Iterator[_Token], number: int) -> Iterator[_Token]:
    for token in tokens:
        if token.sign == "}":
            return
        if token.text is not None and "${" in token.text:
            raise MalformedJaas(f"section {number} names a property of Java's, which is not here")
        yield token
    raise MalformedJaas(f"section {number} does not end with }};")


def _entries(tokens: Iterator[_Token]) -> Iterator[Entry]:
    for module in tokens:
        flag = next(tokens, None)
        if flag is None:
            raise MalformedJaas("Login module control flag not specified in JAAS config")
        if flag.text is None:
            raise MalformedJaas("Login module control flag is not available in the JAAS config")
        if flag.text.upper() not in FLAGS:
            raise MalformedJaas("Invalid login module control flag in JAAS config")
        yield Entry(module.text or "", dict(_options(tokens)))


def _options(tokens: Iterator[_Token]) -> Iterator[tuple[str, str]]:
    for number, key in enumerate(tokens, 1):
        if key.sign == ";":
            return
        equals, value = next(tokens, None), next(tokens, None)
        if equals is None or equals.sign != "=" or value is None or value.text is None:
            raise MalformedJaas(
                f"Value not specified for option {number} in JAAS config: put it in double quotes"
            )
        yield key.text or "", value.text
    raise MalformedJaas("JAAS config entry not terminated by semi-colon")


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        character = text[position]
        if character <= " ":
            position += 1
        elif character == "/":
            position = _behind_comment(text, position)
        elif character in QUOTES:
            quoted, position = _quoted(text, position)
            yield _Token(quoted)
        elif _is_letter(character):
            start = position
            while position < len(text) and (
                _is_letter(text[position]) or text[position] in DIGITS
            ):
                position += 1
            yield _Token(text[start:position])
        elif character in DIGITS:
            position = _behind_number(text, position)
            yield _Token(None, "0")
        else:
            position += 1
            yield _Token(None, character)


def _is_letter(character: str) -> bool:
    return character in LETTERS or character >= "\xa0"


def _behind_number(text: str, position: int) -> int:
    while position < len(text) and text[position] in DIGITS:
        position += 1
    return position


def _behind_comment(text: str, position: int) -> int:
    if text.startswith("/*", position):
        end = text.find("*/", position + 2)
        return len(text) if end < 0 else end + 2
    while position < len(text) and text[position] not in "\r\n":
        position += 1
    return position


def _quoted(text: str, position: int) -> tuple[str, int]:
    quote, position = text[position], position + 1
    found = []
    while position < len(text) and text[position] not in (quote, "\n", "\r"):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            character, position = _escaped(text, position)
        found.append(character)
    if position < len(text) and text[position] == quote:
        position += 1
    return "".join(found), position


def _escaped(text: str, position: int) -> tuple[str, int]:
    """What stands behind a backslash: three octal digits at most, two if it is above 377."""
    if text[position] not in OCTAL:
        return ESCAPES.get(text[position], text[position]), position + 1
    most = 3 if text[position] <= "3" else 2
    end = position + 1
    while end < len(text) and end - position < most and text[end] in OCTAL:
        end += 1
    return chr(int(text[position:end], 8)), end
