"""New stores in the place of those that a listener has: what must be as it was.

Owns Kafka's rules for that, and its sentences: a renewed certificate has the old name and at least
the old alternative names, unless ssl.allow.dn.changes and ssl.allow.san.changes say otherwise.
"""

from __future__ import annotations

from pathlib import Path

from kafkalite.config.setting import InvalidSetting
from kafkalite.security.certificates import alternative_names, name_of
from kafkalite.security.tls_settings import ListenerTls, Plan

Stamp = tuple[tuple[int, int] | None, ...]


def stamp_of(plan: Plan) -> Stamp:
    """By which is seen that a file is another one: when each was changed, and how large it is."""
    return tuple(map(_stamp, plan.files))


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


def renewed(plan: Plan, old: ListenerTls) -> ListenerTls:
    """What takes the place of the old one; raises InvalidSetting. Reads files."""
    new = plan.made()
    if new.has_trusted and not old.has_trusted:
        raise InvalidSetting(
            "Cannot add SSL truststore to an existing listener for which no truststore was "
            "configured."
        )
    if not plan.may_change_name or not plan.may_change_alternatives:
        _check_count(new, old)
    for new_leaf, old_leaf in zip(new.leaves, old.leaves, strict=False):
        if not plan.may_change_name:
            _check_name(name_of(new_leaf), name_of(old_leaf))
        if not plan.may_change_alternatives:
            _check_alternatives(alternative_names(new_leaf), alternative_names(old_leaf))
    return new


def _check_count(new: ListenerTls, old: ListenerTls) -> None:
    if len(new.leaves) != len(old.leaves):
        raise InvalidSetting(
            "Keystore entries do not match, existing store contains "
            f"{len(old.leaves)} entries, new store contains {len(new.leaves)} entries"
        )


def _check_name(new: str, old: str) -> None:
    if new.lower() != old.lower():
        raise InvalidSetting(
            f"Keystore DistinguishedName does not match:  existing={{DN={old}}}, new={{DN={new}}}"
        )


def _check_alternatives(new: frozenset[bytes], old: frozenset[bytes]) -> None:
    if not new >= old:
        missing = len(old - new)
        raise InvalidSetting(
            f"Keystore SubjectAltNames do not match: the new certificate lacks {missing} of those "
            "that the existing one has"
        )
