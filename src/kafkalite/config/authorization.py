"""The settings of StandardAuthorizer, which it reads for itself: no table of a broker has them.

Owns what their texts mean.
"""

from __future__ import annotations

from typing import Final

from kafkalite.config.setting import InvalidSetting

AUTHORIZER: Final = "authorizer.class.name"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SUPER_USERS: Final = "super.users"
ALLOW_WITHOUT_RULES: Final = "allow.everyone.if.no.acl.found"
READ_BY_AUTHORIZER: Final = frozenset((SUPER_USERS, ALLOW_WITHOUT_RULES))


def super_users(text: str | None) -> list[str]:
    """Who may do everything; raises InvalidSetting for what cannot be a user."""
    users = [each.strip() for each in (text or "").split(";")]
    for user in users:
        kind, _, name = user.partition(":")
        if user and not (kind and name):
            raise InvalidSetting(
                f"{SUPER_USERS}: expected a string in format principalType:principalName but got "
                f"{user}; several are separated by a semicolon"
            )
    return [user for user in users if user]


def allows_without_rules(text: str | None) -> bool:
    return (text or "").lower() == "true"
