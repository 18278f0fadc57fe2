"""From the name in a certificate to the user: ssl.principal.mapping.rules.

Owns the syntax of these rules (`RULE:pattern/replacement/[LU]`, `DEFAULT`) and what they make of a
name, as Apache Kafka has it. Patterns are Java's; what Python's expressions have no word for is
refused when the rules are read, never when somebody connects. A name that they would take too long
over stands for nobody.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkalite.config.setting import InvalidSetting
from kafkalite.env.dataclasses import dataclass

if TYPE_CHECKING:
    from kafkalite.security.expressions import Expression, Found, Steps

SETTING = "ssl.principal.mapping.rules"
_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(?:.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*([,\n]|$)")
_PARSER = re.compile(_RULE)
_REFERENCE = re.compile(r"\\(.)|\$(?:([0-9]+)|\{([a-zA-Z][a-zA-Z0-9]*)\})|(\$)|(\\)$", re.DOTALL)
_DOT = r"[^\n\r\u0085\u2028\u2029]"  # what ends a line is more with Java
# Classes of characters that Java has a word for, in ASCII as there.
_CLASSES = {
    "Lower": "a-z", "Upper": "A-Z", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~", "XDigit": "0-9a-fA-F", "Space": r" \t\n\x0b\f\r", "Blank": r" \t",
    "ASCII": r"\x00-\x7f", "Graph": "!-~", "Print": " -~", "Cntrl": r"\x00-\x1f\x7f",
}  # fmt: skip


LONGEST_NAME_TOLD = 300
# Of an expression, for all rules together: some eight milliseconds.
MOST_STEPS = 25_000


class NoRule(ValueError):
    """No rule says which user a name stands for."""


@dataclass(slots=True, frozen=True)
class _Rule:
    """Without a pattern it takes every name as it is."""

    pattern: Expression | None = None
    replacement: str = ""
    case: Callable[[str], str] = str

    def apply(self, name: str, steps: Steps) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name, steps) is None:
            return None
        return self.case(self.pattern.replaced(name, self._replaced, steps))

    def _replaced(self, match: Found) -> str:
        return _REFERENCE.sub(lambda reference: _referred(reference, match), self.replacement)


class PrincipalMapper:
    """Rules in their order: the first that fits counts."""

    def __init__(self, text: str) -> None:
        """Raises InvalidSetting for rules that are none."""
        self._text = text
        self._rules = _parsed(text)

    def user(self, name: str) -> str:
        steps = iter(range(MOST_STEPS))
        for rule in self._rules:
            try:
                user = rule.apply(name, steps)
            except ValueError as error:
                shown = name[:LONGEST_NAME_TOLD]
                raise NoRule(f"{shown} cannot be matched, {error}: rules {self._text}") from None
            if user is not None:
                return user
        raise NoRule(f"No rules apply to {name}, rules {self._text}")


def _parsed(text: str) -> list[_Rule]:
    rules = []
    for split in _SPLITTER.finditer(text.strip()):
        rule = split[1]
        match = _PARSER.match(rule)
        if match is None or match.end() != len(rule):
            rest = rule if match is None else rule[match.end() :]
            raise InvalidSetting(
                f"{SETTING}: Invalid rule: `{rule}`, unmatched substring: `{rest}`"
            )
        if match[1] is not None:
            rules.append(_Rule())
        elif match[2] is not None:
            rules.append(_rule(match[2], match[3], match[4]))
    return rules


def _rule(pattern: str, replacement: str, case: str) -> _Rule:
    from kafkalite.security.expressions import Expression  # which few brokers need

    try:
        compiled = Expression(python_pattern(pattern), re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        why = f"the pattern {pattern} cannot be taken: {error}"
        raise InvalidSetting(f"{SETTING}: {why}") from None
    for reference in _REFERENCE.finditer(replacement):
        if reference[4] is not None or reference[5] is not None:
            why = f"the replacement {replacement} refers to no group with its last sign"
            raise InvalidSetting(f"{SETTING}: {why}")
        if reference[3] is not None and reference[3] not in compiled.names:
            raise InvalidSetting(f"{SETTING}: there is no group {reference[3]} in {pattern}")
        if reference[2] is not None and compiled.groups == 0 and reference[2][0] != "0":
            raise InvalidSetting(f"{SETTING}: there is no group {reference[2]} in {pattern}")
    return _Rule(compiled, replacement, {"L": str.lower, "U": str.upper}.get(case, str))


def _referred(reference: re.Match[str], match: Found) -> str:
    """What a sign of the replacement stands for: as many digits count as there are groups for."""
    if reference[1] is not None:
        return reference[1]
    if reference[3] is not None:
        return match[reference[3]] or ""
    digits, groups = reference[2], match.expression.groups
    if int(digits[0]) > groups:
        return f"${digits}"  # no such group: the text itself
    end = 1
    while end < len(digits) and int(digits[: end + 1]) <= groups:
        end += 1
    return (match[int(digits[:end])] or "") + digits[end:]


def python_pattern(pattern: str) -> str:
    """A pattern of Java's as one of Python's; raises re.error for what there is no word for."""
    made, position, depth = [], 0, 0
    while position < len(pattern):
        token, text, depth = _token(pattern, position, depth)
        made.append(text)
        position += len(token)
    return "".join(made)


def _token(pattern: str, position: int, depth: int) -> tuple[str, str, int]:
    """What stands at a place, what it is in Python, and in how many classes what follows is."""
    rest = pattern[position:]
    if rest.startswith(r"\Q"):
        end = rest.find(r"\E")
        quoted = rest[2:] if end < 0 else rest[2:end]
        return (rest if end < 0 else rest[: end + 2]), re.escape(quoted), depth
    if rest[0] == "\\":
        return *_escape(rest, depth), depth
    if depth:
        if rest[0] == "[" or rest.startswith("&&"):
            raise re.error("a class within a class is not served")
        return rest[0], rest[0], depth - (rest[0] == "]")
    if rest[0] == "[":
        token = re.match(r"\[\^?\]?", rest)
        assert token is not None
        if token[0].endswith("]"):
            raise re.error("a class must not begin with ]; write \\]")
        return token[0], token[0], 1
    if rest[0] == ".":
        return ".", _DOT, depth
    if rest.startswith("(?<") and rest[3:4] not in ("=", "!"):
        return "(?<", "(?P<", depth
    return rest[0], rest[0], depth


def _escape(rest: str, depth: int) -> tuple[str, str]:
    named = re.match(r"\\([pP])(?:\{(\w+)\}|(\w))", rest)
    if named is not None:
        inner = _CLASSES.get((named[2] or named[3]).removeprefix("Is"))
        if inner is None or (depth and named[1] == "P"):
            raise re.error(f"{named[0]} is not served")
        negation = "^" if named[1] == "P" else ""
        return named[0], inner if depth else f"[{negation}{inner}]"
    group = re.match(r"\\k<(\w+)>", rest)
    if group is not None:
        return group[0], f"(?P={group[1]})"
    if rest[1:2] == "z":
        return r"\z", r"\Z"
    if rest[1:2] == "e":
        return r"\e", r"\x1b"
    if re.match(r"\\[a-zA-Z]", rest) and rest[1] not in "dDsSwWbBtnrfaAux":
        raise re.error(f"{rest[:2]} is not served")
    return rest[:2], rest[:2]
