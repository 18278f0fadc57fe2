"""A refusal in words: who was refused what, and the command that allows it.

Owns the words of that line. Invariant: it is one line, whatever the names are.
"""

from __future__ import annotations

import shlex

from kafkalite.security.acl import (
    CLUSTER,
    DELEGATION_TOKEN,
    GROUP,
    KINDS,
    OPERATIONS,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
)

_OPTIONS = {
    TOPIC: "--topic", GROUP: "--group", TRANSACTIONAL_ID: "--transactional-id",
    DELEGATION_TOKEN: "--delegation-token", USER: "--user-principal",
}  # fmt: skip
LONGEST_NAME = 300


def described(principal: str, host: str, operation: int, kind: int, name: str) -> str:
    shown = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
    what = KINDS[kind].lower().replace("_", " ")
    of = "the cluster" if kind == CLUSTER else f"{what} {shown}"
    resource = "--cluster" if kind == CLUSTER else f"{_OPTIONS[kind]} {shlex.quote(shown)}"
    words = OPERATIONS[operation].title().replace("_", "")
    line = (
        f"{principal} at {host} may not {OPERATIONS[operation]} {of}; kafka-acls --add "
        f"--allow-principal {shlex.quote(principal)} --operation {words} {resource} would allow it"
    )
    return line if line.isprintable() else "".join(map(_printable, line))


def _printable(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode()
