"""Who may do what, by the access rules that there are: StandardAuthorizer's answers.

Owns the rules in the order in which questions need them, and the answers that were given since the
rules last changed. A rule that forbids counts before any that allows; what nobody made a rule for
is forbidden to all but super users, or allowed where the settings say so. Knows no request and no
file. Invariants: an answer is that of all rules that are there; memory for answers is bounded.
"""

from __future__ import annotations

import ipaddress
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

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
    LITERAL,
    PREFIXED,
    READ,
    WILDCARD,
    WRITE,
    Acl,
)

# What a rule that allows one operation allows besides, by what is asked for.
ALLOWED_BY: Final = {
    DESCRIBE: (DESCRIBE, READ, WRITE, DELETE, ALTER, ALL),
    DESCRIBE_CONFIGS: (DESCRIBE_CONFIGS, ALTER_CONFIGS, ALL),
}
MOST_ANSWERS = 50_000
LONGEST_NAME_KEPT = 255
# That stands for all resources of a kind where it is asked about any of them.
_ANY_NAME = "hardcode"

Question = tuple[str, str, int, int, str | None]
# Told of a refusal: user, host, operation, kind, name.
Denied = Callable[[str, str, int, int, str], None]
Holder = tuple[str, str]
Rules = dict[tuple[Holder, int], int]
_DENIES, _ALLOWS = 1 << DENY, 1 << ALLOW


class Authorizer:
    """All rules of a cluster, and who is above them."""

    __slots__ = (
        "_allows_without_rules", "_answers", "_by_holder", "_by_resource", "_counts", "_lengths",
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
        # By kind, pattern and name; in it by holder and operation: the permissions, as bits.
        self._by_resource: dict[tuple[int, int, str], Rules] = {}
        # By kind, holder, operation and permission: patterns and names.
        self._by_holder: dict[tuple[int, Holder, int, int], dict[tuple[int, str], None]] = {}
        # By kind: how long the prefixes are, in order, and how many are as long.
        self._lengths: dict[int, list[int]] = {}
        self._counts: Counter[tuple[int, int]] = Counter()
        # True, False, or None: refused, and nobody was told yet.
        self._answers: dict[Question, bool | None] = {}

    # --- rules ------------------------------------------------------------------------------------

    def add(self, acl: Acl) -> None:
        self._changed()
        kind, name, pattern, principal, host, operation, permission = acl
        holder = principal, host
        resource = kind, pattern, name
        if resource not in self._by_resource:
            self._by_resource[resource] = {}
            if pattern == PREFIXED:
                self._add_length(kind, len(name))
        rules = self._by_resource[resource]
        rules[holder, operation] = rules.get((holder, operation), 0) | 1 << permission
        held = self._by_holder.setdefault((kind, holder, operation, permission), {})
        held[pattern, name] = None

    def remove(self, acl: Acl) -> None:
        self._changed()
        kind, name, pattern, principal, host, operation, permission = acl
        holder = principal, host
        resource = kind, pattern, name
        held = self._by_holder.get((kind, holder, operation, permission), {})
        if (pattern, name) not in held:
            return
        rules = self._by_resource[resource]
        rules[holder, operation] &= ~(1 << permission)
        if not rules[holder, operation]:
            del rules[holder, operation]
        if not rules:
            del self._by_resource[resource]
            if pattern == PREFIXED:
                self._remove_length(kind, len(name))
        del held[pattern, name]
        if not held:
            del self._by_holder[kind, holder, operation, permission]

    def _changed(self) -> None:
        self.changes += 1
        self._answers.clear()

    def _add_length(self, kind: int, length: int) -> None:
        if not self._counts[kind, length]:
            insort(self._lengths.setdefault(kind, []), length)
        self._counts[kind, length] += 1

    def _remove_length(self, kind: int, length: int) -> None:
        self._counts[kind, length] -= 1
        if not self._counts[kind, length]:
            del self._counts[kind, length]
            self._lengths[kind].remove(length)

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

    def may_any(self, principal: str, host: str, operation: int, kind: int) -> bool:
        """Whether there may be a resource of this kind with which this user may do this."""
        question = principal, host, operation, kind, None
        answer = self._answers.get(question)
        if answer is None:
            answer = self.may(
                principal, host, operation, kind, _ANY_NAME, is_quiet=True
            ) or self._holds_any(_holders(principal, host), operation, kind)
            self._keep(question, answer)
        return answer

    def _keep(self, question: Question, answer: bool | None) -> None:
        if len(question[4] or "") > LONGEST_NAME_KEPT:
            return
        if len(self._answers) >= MOST_ANSWERS:
            self._answers.clear()
        self._answers[question] = answer

    def _decide(self, principal: str, host: str, operation: int, kind: int, name: str) -> bool:
        if principal in self._super_users:
            return True
        holders = _holders(principal, host)
        allowing = ALLOWED_BY.get(operation, (operation, ALL))
        is_allowed = has_rules = False
        for rules in self._rules_for(kind, name):
            has_rules = True
            for holder in holders:
                for each in (operation, ALL):
                    if rules.get((holder, each), 0) & _DENIES:
                        return False
                is_allowed = is_allowed or any(
                    rules.get((holder, each), 0) & _ALLOWS for each in allowing
                )
        return is_allowed if has_rules else self._allows_without_rules

    def _rules_for(self, kind: int, name: str) -> Iterator[Rules]:
        """Those of its own, those of all, and those of each beginning of its name."""
        for each in dict.fromkeys((name, WILDCARD)):
            rules = self._by_resource.get((kind, LITERAL, each))
            if rules is not None:
                yield rules
        lengths = self._lengths.get(kind, ())
        for length in lengths[: bisect_right(lengths, len(name))]:
            rules = self._by_resource.get((kind, PREFIXED, name[:length]))
            if rules is not None:
                yield rules

    def _holds_any(self, holders: tuple[Holder, ...], operation: int, kind: int) -> bool:
        """Whether something is allowed that no rule forbids as a whole."""
        denied = list(self._held(holders, operation, kind, DENY))
        if any((LITERAL, WILDCARD) in held for held in denied):
            return False
        lengths = self._lengths.get(kind, ())
        for held in self._held(holders, operation, kind, ALLOW):
            if (LITERAL, WILDCARD) in held:
                return True
            for pattern, name in held:
                beginnings = [(PREFIXED, name[:each]) for each in lengths if each <= len(name)]
                forbidden = [(LITERAL, name), *beginnings] if pattern == LITERAL else beginnings
                if not any(each in one for one in denied for each in forbidden):
                    return True
        return False

    def _held(
        self, holders: tuple[Holder, ...], operation: int, kind: int, permission: int
    ) -> Iterator[dict[tuple[int, str], None]]:
        for holder in holders:
            for each in (operation, ALL):
                held = self._by_holder.get((kind, holder, each, permission))
                if held is not None:
                    yield held


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
