"""Users with passwords, as a cluster keeps them: their credentials for SCRAM.

Owns that a password is salted here and never sent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kafkalite.client.admin import Admin, check
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
)
from kafkalite.security.scram import BY_NAME, BY_NUMBER

SALT_BYTES = 32


@dataclass(slots=True)
class User:
    """iterations: of each mechanism that has a password."""

    name: str
    iterations: dict[str, int]


def users(admin: Admin, names: Iterable[str] = ()) -> list[User]:
    """All there are, or those of these names that there are."""
    wanted = [DescribeUserScramCredentialsRequest.User(name=name) for name in names]
    answer = admin.ask(DescribeUserScramCredentialsRequest(users=wanted or None))
    check("the users cannot be had", answer)
    found = []
    for each in answer.results:
        if each.error_code == Error.RESOURCE_NOT_FOUND:
            continue
        check(f"user {each.user} cannot be looked at", each)
        iterations = {
            BY_NUMBER[info.mechanism].name if info.mechanism in BY_NUMBER else str(info.mechanism):
            info.iterations
            for info in each.credential_infos
        }  # fmt: skip
        found.append(User(each.user, iterations))
    return sorted(found, key=lambda user: user.name)


def upsertion(user: str, mechanism: str, password: str, iterations: int) -> Any:
    """A password of one mechanism, as a request has it."""
    scram, salt = BY_NAME[mechanism], os.urandom(SALT_BYTES)
    return AlterUserScramCredentialsRequest.Upsertion(
        name=user, mechanism=scram.number, iterations=iterations, salt=salt,
        salted_password=scram.salted(password, salt, iterations),
    )  # fmt: skip


def alteration(upsertions: list[Any], user: str, deleted: Iterable[str]) -> Any:
    """deleted: mechanisms of the user."""
    deletion = AlterUserScramCredentialsRequest.Deletion
    return AlterUserScramCredentialsRequest(
        deletions=[deletion(name=user, mechanism=BY_NAME[each].number) for each in deleted],
        upsertions=upsertions,
    )


def codes(answer: Any) -> list[int]:
    return [each.error_code for each in answer.results]


def set_passwords(
    admin: Admin, user: str, mechanisms: Iterable[str], password: str, iterations: int
) -> None:
    for each in mechanisms:
        changed = upsertion(user, each, password, iterations)
        _alter(admin, f"user {user} gets no password of {each}", alteration([changed], user, ()))


def delete(admin: Admin, user: str, mechanisms: Iterable[str]) -> None:
    for each in mechanisms:
        what = f"the password of {user} for {each} is not deleted"
        _alter(admin, what, alteration([], user, [each]))


def _alter(admin: Admin, what: str, request: Any) -> None:
    """One thing, since brokers take one of a user in a request."""
    [result] = admin.ask_controller(request, codes).results
    check(what, result)
