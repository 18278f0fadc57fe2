"""Who may do what, by the access rules that there are: StandardAuthorizer's answers.

Owns the rules as questions need them, by whom they concern, and the answers that were given since
the rules last changed. A rule that forbids counts before any that allows; what nobody made a rule
for is forbidden to all but super users, or allowed where the settings say so. Knows no request and
no file. Invariants: an answer is that of all rules that are there; memory for answers is bounded;
what a question costs does not grow with the rules, nor with how many beginnings of names they have.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from kafkalite.env.slicing import Steps, finish
from kafkalite.security.acl import (
    ALL,
    ALLOW,
    ALTER,
    ALTER_CONFIGS,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    EVERYBODY,
    PREFIXED,
    READ,
    WILDCARD,
    WRITE,
    Acl,
)
from kafkalite.security.beginnings import Beginnings, Change

# What a rule that allows one operation allows besides, by what is asked for.
ALLOWED_BY: Final = {
    DESCRIBE: (DESCRIBE, READ, WRITE, DELETE, ALTER, ALL),
    DESCRIBE_CONFIGS: (DESCRIBE_CONFIGS, ALTER_CONFIGS, ALL),
}
MOST_ANSWERS = 10_000  # letting go of them is part of a turn
LONGEST_NAME_KEPT = 255
NAMES_PER_STEP = 32
# That stands for all resources of a kind where it is asked about any of them.
_ANY_NAME = "hardcode"

Question = tuple[str, str, int, int, str | None]
# Told of a refusal: user, host, operation, kind, name.
Denied = Callable[[str, str, int, int, str], None]
Holder = tuple[str, str]


class _Named:
    """What some rules name: resources, or beginnings of their names."""

    __slots__ = ("beginnings", "names")

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.beginnings = Beginnings()

    def __bool__(self) -> bool:
        return bool(self.names or self.beginnings.shortest)

    def lists(self, pattern: int, name: str) -> bool:
        return name in (self.beginnings if pattern == PREFIXED else self.names)

    def changing(self, pattern: int, name: str, *, is_there: bool) -> Steps[Change]:
        """What has them name it, which they do not, or the opposite."""
        if pattern == PREFIXED:
            change = self.beginnings.adding if is_there else self.beginnings.removing
            return (yield from change(name))
        if is_there:
            return partial(self.names.__setitem__, name, None)
        return partial(self.names.__delitem__, name)

    def concern(self, name: str) -> bool:
        """Whether they concern what has this name."""
        return WILDCARD in self.names or name in self.names or self.beginnings.begin(name)


# Those that forbid and those that allow.
Rules = tuple[tuple[_Named, ...], tuple[_Named, ...]]


class Authorizer:
    """All rules of a cluster, and who is above them."""

    __slots__ = (
        "_allows_without_rules", "_answers", "_counts", "_named", "_of_kind", "_rules",
        "_super_users", "changes", "on_denied", "on_each_denied",
    )  # fmt: skip

    def __init__(
        self, super_users: Iterable[str] = (), *, allows_without_rules: bool = False
    ) -> None:
        self._super_users = frozenset(super_users)
        self._allows_without_rules = allows_without_rules
        self.on_denied: Denied | None = None  # the first time since the rules changed
        self.on_each_denied: Denied | None = None
        self.changes = 0  # how often the rules were not the same any more
        # By kind, holder, operation and permission.
        self._named: dict[tuple[int, Holder, int, int], _Named] = {}
        # Where it counts whether there are any: what all rules of a kind name, and how many do.
        self._of_kind: dict[int, _Named] = {}
        self._counts: dict[tuple[int, int, str], int] = {}
        # Both since the rules last changed. By user, host, operation and kind:
        self._rules: dict[tuple[str, str, int, int], Rules] = {}
        # True, False, or None: refused, and nobody was told yet.
        self._answers: dict[Question, bool | None] = {}

    # --- rules ------------------------------------------------------------------------------------

    def add(self, acl: Acl) -> None:
        finish(self.changing(acl, is_there=True))

    def remove(self, acl: Acl) -> None:
        finish(self.changing(acl, is_there=False))

    def changing(self, acl: Acl, *, is_there: bool) -> Steps[None]:
        """Has a rule be there, or not: seen at once, when what follows from it is worked out.
        Nothing else may be changed between its steps."""
        kind, name, pattern, principal, host, operation, permission = acl
        key = kind, (principal, host), operation, permission
        named = self._named.get(key) or _Named()
        if named.lists(pattern, name) is is_there:
            return
        change = yield from named.changing(pattern, name, is_there=is_there)
        count: Change | None = None
        if self._allows_without_rules:
            count = yield from self._counting(kind, pattern, name, is_there=is_there)
        self._changed()
        change()
        if count is not None:
            count()
        if named:
            self._named[key] = named
        else:
            del self._named[key]

    def _counting(self, kind: int, pattern: int, name: str, *, is_there: bool) -> Steps[Change]:
        """What counts one rule more that names it, or one less."""
        before = self._counts.get((kind, pattern, name), 0)
        after = before + (1 if is_there else -1)
        change: Change | None = None
        if not before or not after:
            of_kind = self._of_kind.setdefault(kind, _Named())
            change = yield from of_kind.changing(pattern, name, is_there=is_there)

        def count() -> None:
            self._counts[kind, pattern, name] = after
            if not after:
                del self._counts[kind, pattern, name]
            if change is not None:
                change()

        return count

    def _changed(self) -> None:
        self.changes += 1
        self._answers.clear()
        self._rules.clear()

    # --- questions --------------------------------------------------------------------------------

    def may(
        self,
        principal: str,
        host: str,
        operation: int,
        kind: int,
        name: str,
        *,
        is_quiet: bool = False,
    ) -> bool:
        """Whether this user may do this with what has this name; who asks quietly, just to choose
        what to show, has nobody told of a refusal."""
        question = principal, host, operation, kind, name
        answer = self._answers.get(question, ...)
        if answer is True:
            return True
        if answer is False:
            if self.on_each_denied is not None and not is_quiet:
                self.on_each_denied(principal, host, operation, kind, name)
            return False
        if answer is ...:
            answer = self._decide(principal, host, operation, kind, name) or None
        if answer is None and not is_quiet:
            answer = False
            if self.on_denied is not None:
                self.on_denied(principal, host, operation, kind, name)
            if self.on_each_denied is not None:
                self.on_each_denied(principal, host, operation, kind, name)
        self._keep(question, answer)
        return answer is True

    def may_any(self, principal: str, host: str, operation: int, kind: int) -> Steps[bool]:
        """Whether there may be a resource of this kind with which this user may do this."""
        question = principal, host, operation, kind, None
        answer = self._answers.get(question)
        if answer is not None:
            return answer
        changes = self.changes
        found = self.may(principal, host, operation, kind, _ANY_NAME, is_quiet=True) or (
            yield from _some_are_left(*self._rules_for(principal, host, operation, kind))
        )
        if self.changes == changes:
            self._keep(question, found)
        return found

    def _keep(self, question: Question, answer: bool | None) -> None:
        if len(question[4] or "") > LONGEST_NAME_KEPT:
            return
        if len(self._answers) >= MOST_ANSWERS:
            self._answers.clear()
        self._answers[question] = answer

    def _decide(self, principal: str, host: str, operation: int, kind: int, name: str) -> bool:
        if principal in self._super_users:
            return True
        forbidding, allowing = self._rules_for(principal, host, operation, kind)
        if any(each.concern(name) for each in forbidding):
            return False
        if any(each.concern(name) for each in allowing):
            return True
        if not self._allows_without_rules:
            return False
        return kind not in self._of_kind or not self._of_kind[kind].concern(name)

    def _rules_for(self, principal: str, host: str, operation: int, kind: int) -> Rules:
        """Those that count when this user at this host asks for this operation."""
        key = principal, host, operation, kind
        rules = self._rules.get(key)
        if rules is None:
            holders = _holders(principal, host)
            forbidding = self._of(holders, (operation, ALL), kind, DENY)
            allowing = ALLOWED_BY.get(operation, (operation, ALL))
            rules = forbidding, self._of(holders, allowing, kind, ALLOW)
            if len(self._rules) >= MOST_ANSWERS:
                self._rules.clear()
            self._rules[key] = rules
        return rules

    def _of(
        self, holders: tuple[Holder, ...], operations: tuple[int, ...], kind: int, permission: int
    ) -> tuple[_Named, ...]:
        keys = ((kind, holder, each, permission) for holder in holders for each in operations)
        found = map(self._named.get, keys)
        return tuple(named for named in found if named is not None)


def _some_are_left(
    forbidding: tuple[_Named, ...], allowing: tuple[_Named, ...]
) -> Steps[bool]:
    """Whether something is allowed that no rule forbids as a whole."""
    if any(WILDCARD in each.names for each in forbidding):
        return False
    if any(WILDCARD in each.names for each in allowing):
        return True
    for named in allowing:
        for number, name in enumerate(tuple(named.names), 1):
            if not any(each.concern(name) for each in forbidding):
                return True
            if number % NAMES_PER_STEP == 0:
                yield
        for number, beginning in enumerate(tuple(named.beginnings.shortest), 1):
            if not any(each.beginnings.begin(beginning) for each in forbidding):
                return True
            if number % NAMES_PER_STEP == 0:
                yield
    return False


def _holders(principal: str, host: str) -> tuple[Holder, ...]:
    """Whom a rule may name to mean this user at this host."""
    where = _as_java(host)
    return (principal, where), (principal, WILDCARD), (EVERYBODY, where), (EVERYBODY, WILDCARD)


def _as_java(host: str) -> str:
    """An address as Apache Kafka compares it: all eight numbers of one of version 6."""
    if ":" not in host:
        return host
    plain, percent, scope = host.partition("%")
    address = ipaddress.IPv6Address(plain)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(each, 16):x}" for each in address.exploded.split(":")) + percent + scope
