"""An access rule, and the filters that find rules: what they are, in words and in numbers.

Owns the numbers that the protocol and the metadata log have for kinds of resources, patterns,
operations and permissions, and which rules a filter means. Decides nothing about anybody.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kafkalite.env.dataclasses import dataclass

UNKNOWN, ANY = 0, 1
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = 2, 3, 4, 5, 6, 7
MATCH, LITERAL, PREFIXED = 2, 3, 4
DENY, ALLOW = 2, 3
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = 2, 3, 4, 5, 6, 7, 8, 9
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 10, 11, 12
CREATE_TOKENS, DESCRIBE_TOKENS = 13, 14

KINDS: Final = dict(
    enumerate("UNKNOWN ANY TOPIC GROUP CLUSTER TRANSACTIONAL_ID DELEGATION_TOKEN USER".split())
)
PATTERNS: Final = dict(enumerate("UNKNOWN ANY MATCH LITERAL PREFIXED".split()))
PERMISSIONS: Final = dict(enumerate("UNKNOWN ANY DENY ALLOW".split()))
OPERATIONS: Final = dict(
    enumerate(
        "UNKNOWN ANY ALL READ WRITE CREATE DELETE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS"
        " ALTER_CONFIGS IDEMPOTENT_WRITE CREATE_TOKENS DESCRIBE_TOKENS TWO_PHASE_COMMIT".split()
    )
)
# By which rules name the one cluster.
CLUSTER_NAME: Final = "kafka-cluster"
# Any name, host or user.
WILDCARD: Final = "*"
EVERYBODY: Final = "User:*"


class Acl(NamedTuple):
    """A rule: who may do what with which resources, or may not."""

    kind: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


def known(names: dict[int, str], number: int) -> int:
    """The number, or UNKNOWN for one without a name."""
    return number if number in names else UNKNOWN


@dataclass(slots=True, frozen=True)
class AclFilter:
    """Which rules are meant; None and ANY mean all. UNKNOWN is like nothing else."""

    kind: int = ANY
    name: str | None = None
    pattern: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission: int = ANY

    def matches(self, acl: Acl) -> bool:
        return (
            self.kind in (ANY, acl.kind)
            and self.operation in (ANY, acl.operation)
            and self.permission in (ANY, acl.permission)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self._matches_name(acl)
        )

    def _matches_name(self, acl: Acl) -> bool:
        """MATCH means the rules that concern what has this name."""
        if self.pattern not in (ANY, MATCH, acl.pattern):
            return False
        if self.name is None or self.name == acl.name:
            return True
        if self.pattern != MATCH:
            return False
        if acl.pattern == PREFIXED:
            return self.name.startswith(acl.name)
        return acl.name == WILDCARD


class InvalidAcl(ValueError):
    """A text that is no rule."""


# What has spaces in it stands in quotes, and there \" \\ \* and \uXXXX are one character each.
_WORD = r"[^ \"][^ ]*|\"(?:[^\"\\]|\\.)+\""
_TEXT = re.compile(
    rf"(?:(?P<permission>allow|deny) +)?(?P<principal>{_WORD})"
    rf" +(?P<operation>\w+) +(?P<kind>\w+)"
    rf"(?: +(?P<name>{_WORD}))?(?: +from +(?P<host>{_WORD}))?",
    re.IGNORECASE,
)
_PRINCIPAL = re.compile("[^:]+:.+", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\"\\*]))")
_BASIC_PLANE = 0x10000


def acl_of(text: str) -> Acl:
    """A rule as people write it: `User:alice read topic orders-*`, `deny User:* write topic x from
    10.0.0.7`, `User:ops alter cluster`. A name that ends in * means all that begin so; what has
    spaces in it stands in double quotes, where `\\*` is a * that means itself."""
    found = _TEXT.fullmatch(text.strip())
    principal, _ = _unquoted(found["principal"] if found else "")
    if found is None or not _PRINCIPAL.fullmatch(principal):
        raise InvalidAcl(
            f"{text!r} is no access rule: write e.g. 'User:alice read topic orders-*', with 'deny' "
            "before it to forbid, and 'from HOST' behind it"
        )
    kind = _number(text, KINDS, found["kind"])
    name, is_prefix = _unquoted(found["name"] or (CLUSTER_NAME if kind == CLUSTER else ""))
    if not name:
        raise InvalidAcl(f"{text!r} names no {found['kind']}: * means all of them")
    is_prefix = is_prefix and name != WILDCARD
    host, _ = _unquoted(found["host"] or WILDCARD)
    return Acl(
        kind,
        name.removesuffix(WILDCARD) if is_prefix else name,
        PREFIXED if is_prefix else LITERAL,
        principal,
        host,
        _number(text, OPERATIONS, found["operation"]),
        _number(text, PERMISSIONS, found["permission"] or "allow"),
    )


def text_of(acl: Acl) -> str:
    """The rule as `acl_of` reads it."""
    words = [
        PERMISSIONS.get(acl.permission, "UNKNOWN").lower(),
        _quoted(acl.principal),
        OPERATIONS.get(acl.operation, "UNKNOWN").lower(),
        KINDS.get(acl.kind, "UNKNOWN").lower(),
    ]
    if (acl.kind, acl.name, acl.pattern) != (CLUSTER, CLUSTER_NAME, LITERAL):
        words.append(_name(acl.name, acl.pattern == PREFIXED))
    if acl.host != WILDCARD:
        words += ["from", _quoted(acl.host)]
    return " ".join(words)


def _name(name: str, is_prefix: bool) -> str:
    """A * that means itself is told from one that means all that begin so."""
    if is_prefix:
        return _quoted(name, WILDCARD)
    if name.endswith(WILDCARD) and name != WILDCARD:
        return f'"{_escaped(name[:-1])}\\*"'
    return _quoted(name)


def _quoted(text: str, behind: str = "") -> str:
    if text.isprintable() and " " not in text and not text.startswith('"'):
        return text + behind
    return f'"{_escaped(text)}{behind}"'


def _escaped(text: str) -> str:
    return "".join(
        f"\\{each}" if each in '"\\' else
        each if each.isprintable() or ord(each) >= _BASIC_PLANE else f"\\u{ord(each):04x}"
        for each in text
    )  # fmt: skip


def _unquoted(word: str) -> tuple[str, bool]:
    """What a word stands for, and whether it ends in a * that does not mean itself."""
    if not word.startswith('"'):
        return word, word.endswith(WILDCARD)
    inner = word[1:-1]
    plain = _ESCAPED.sub(lambda each: chr(int(each[1], 16)) if each[1] else each[2], inner)
    return plain, _ESCAPED.sub("-", inner).endswith(WILDCARD)


def _number(text: str, names: dict[int, str], word: str) -> int:
    """Of a word in any case, with or without its underscores; `transactional` is an id's."""
    plain = word.replace("_", "").upper()
    for number, name in names.items():
        if number > ANY and plain in (name.replace("_", ""), name.removesuffix("_ID")):
            return number
    choices = ", ".join(name.lower() for number, name in names.items() if number > ANY)
    raise InvalidAcl(f"{text!r} has {word!r} where one of {choices} belongs")
