"""`kafka-delegation-tokens`: tokens that stand for a principal, made, renewed, ended and listed."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from kafkalite.tools.acl_rules import principal_of
from kafkalite.tools.asking import Asking, connect
from kafkalite.tools.failures import (
    Failure,
    WrongUse,
    execution,
    illegal_argument,
    refused,
    wrapped,
)
from kafkalite.tools.java_base64 import decoded
from kafkalite.tools.options import Given, Option
from kafkalite.tools.running import begin, tell_failure, tell_use

_ABOUT = "This tool helps to create, renew, expire, or describe delegation tokens."
_PRINCIPAL = "is a Kafka principal. They should be in principalType:name format."
_HEADS = (
    "TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE",
)  # fmt: skip
_WIDTHS = (15, 30, 15, 15, 25, 15, 15, 15)


def _optional(name: str, description: str, *, is_number: bool = False) -> Option:
    return Option(
        name, description, "", int if is_number else str, may_lack_argument=True, is_long=is_number
    )


OPTIONS = [
    Option("bootstrap-server", "REQUIRED: server(s) to use for bootstrapping.", ""),
    Option(
        "command-config",
        "REQUIRED: A property file containing configs to be passed to Admin Client. Token "
        "management operations are allowed in secure mode only. This config file is used to pass "
        "security related configs.", "",
    ),
    Option(
        "create",
        "Create a new delegation token. Use --renewer-principal option to pass renewer principals.",
        without=frozenset(("hmac", "renew-time-period", "expiry-time-period")),
    ),
    Option(
        "renew",
        "Renew delegation token. Use --renew-time-period option to set renew time period.",
        without=frozenset((
            "renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal",
        )),
    ),
    Option(
        "expire", "Expire delegation token. Use --expiry-time-period option to expire the token.",
        without=frozenset((
            "renew", "max-life-time-period", "renew-time-period", "owner-principal",
        )),
    ),
    Option(
        "describe",
        "Describe delegation tokens for the given principals. Use --owner-principal to pass "
        "owner/renewer principals. If --owner-principal option is not supplied, all the user-owned "
        "tokens and tokens where the user has Describe permissions will be returned.",
        without=frozenset((
            "renew-time-period", "max-life-time-period", "hmac", "expiry-time-period",
        )),
    ),
    _optional("owner-principal", f"owner {_PRINCIPAL}"),
    _optional("renewer-principal", f"renewer {_PRINCIPAL}"),
    _optional(
        "max-life-time-period",
        "Max life period for the token in milliseconds. If the value is -1, then token max life "
        "time will default to the server side config value of (delegation.token.max.lifetime.ms).",
        is_number=True,
    ),
    _optional(
        "renew-time-period",
        "Renew time period in milliseconds. If the value is -1, then the renew time period will "
        "default to the server side config value of (delegation.token.expiry.time.ms).",
        is_number=True,
    ),
    _optional(
        "expiry-time-period",
        "Expiry time period in milliseconds. If the value is -1, then the token will get "
        "invalidated immediately.", is_number=True,
    ),
    _optional("hmac", "HMAC of the delegation token"),
]  # fmt: skip
_NEEDED = {
    "create": ("max-life-time-period",), "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"), "describe": (),
}  # fmt: skip


def main(words: list[str]) -> int:
    given = Given(OPTIONS)
    try:
        if (ended := begin(given, words, _ABOUT)) is not None:
            return ended
        action = _action(given)
        asking = connect(given.one("bootstrap-server"), given.one("command-config"))
        try:
            _ACTS[action](asking, given)
        finally:
            asking.close()
    except WrongUse as wrong:
        return tell_use(wrong, given)
    except Failure as failure:
        return tell_failure(failure)
    return 0


def _action(given: Given) -> str:
    actions = [name for name in _NEEDED if given.has(name)]
    if len(actions) != 1:
        raise WrongUse(
            "Command must include exactly one action: --create, --renew, --expire or --describe"
        )
    given.require("bootstrap-server", "command-config", *_NEEDED[actions[0]])
    given.refuse_together()
    return actions[0]


def _create(asking: Asking, given: Given) -> None:
    renewers = _principals(given, "renewer-principal")
    period_ms = _period_ms(given, "max-life-time-period")
    print(
        f"Calling create token operation with renewers :[{', '.join(renewers)}] , "
        f"max-life-time-period :{period_ms}"
    )
    owners = _principals(given, "owner-principal")
    owner_type, _, owner = owners[0].partition(":") if owners else (None, "", None)
    answer = _asked(asking, "createDelegationToken", CreateDelegationTokenRequest(
        owner_principal_type=owner_type, owner_principal_name=owner, max_lifetime_ms=period_ms,
        renewers=[
            CreateDelegationTokenRequest.Renewer(principal_type=kind, principal_name=name)
            for kind, _, name in (each.partition(":") for each in renewers)
        ],
    ))  # fmt: skip
    print(f"Created delegation token with tokenId : {answer.token_id}")
    times = (answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms)
    _print([_row(answer, times, renewers)])


def _renew(asking: Asking, given: Given) -> None:
    hmac, period_ms = given.one("hmac"), _period_ms(given, "renew-time-period")
    print(f"Calling renew token operation with hmac :{hmac} , renew-time-period :{period_ms}")
    request = RenewDelegationTokenRequest(hmac=_bytes(hmac), renew_period_ms=period_ms)
    answer = _asked(asking, "renewDelegationToken", request)
    date = _date(answer.expiry_timestamp_ms)
    print(f"Completed renew operation. New expiry date : {date}", end="")


def _expire(asking: Asking, given: Given) -> None:
    hmac, period_ms = given.one("hmac"), _period_ms(given, "expiry-time-period")
    print(f"Calling expire token operation with hmac :{hmac} , expire-time-period :{period_ms}")
    request = ExpireDelegationTokenRequest(hmac=_bytes(hmac), expiry_time_period_ms=period_ms)
    answer = _asked(asking, "expireDelegationToken", request)
    date = _date(answer.expiry_timestamp_ms)
    print(f"Completed expire operation. New expiry date : {date}", end="")


def _describe(asking: Asking, given: Given) -> None:
    owners = _principals(given, "owner-principal")
    whose = f"owners: [{', '.join(owners)}]" if owners else "current user."
    print(f"Calling describe token operation for {whose}")
    split = (each.partition(":") for each in owners)
    request = DescribeDelegationTokenRequest(owners=[
        DescribeDelegationTokenRequest.Owner(principal_type=kind, principal_name=name)
        for kind, _, name in split
    ])  # fmt: skip
    answer = _asked(asking, "describeDelegationToken", request)
    print(f"Total number of tokens : {len(answer.tokens)}", end="")
    _print([
        _row(
            each, (each.issue_timestamp, each.expiry_timestamp, each.max_timestamp),
            [f"{one.principal_type}:{one.principal_name}" for one in each.renewers],
        )
        for each in answer.tokens
    ])  # fmt: skip


def _asked(asking: Asking, call: str, request: Any) -> Any:
    with wrapped(execution):
        answer = asking.any(call, request)
        if answer.error_code != Error.NONE:
            raise refused(answer.error_code)
    return answer


def _principals(given: Given, name: str) -> list[str]:
    return [principal_of(each.strip()) for each in given.all(name)]


def _period_ms(given: Given, name: str) -> int:
    period_ms = given.one(name)
    if period_ms is None:
        raise Failure(
            "java.lang.NullPointerException",
            'Cannot invoke "java.lang.Long.longValue()" because the return value of '
            '"joptsimple.OptionSet.valueOf(joptsimple.OptionSpec)" is null',
        )
    return int(period_ms)


def _bytes(text: str | None) -> bytes:
    if text is None:
        raise illegal_argument("--hmac lacks its argument")
    try:
        return decoded(text)
    except ValueError as error:
        raise illegal_argument(f"{text}: {error}") from None


def _row(token: Any, times: Iterable[int], renewers: Iterable[str]) -> tuple[str, ...]:
    requester = f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"
    return (
        token.token_id, b64encode(bytes(token.hmac)).decode(),
        f"{token.principal_type}:{token.principal_name}", requester,
        f"[{', '.join(renewers)}]", *map(_date, times),
    )  # fmt: skip


def _date(moment_ms: int) -> str:
    return f"{datetime.fromtimestamp(moment_ms / 1000, UTC).astimezone():%Y-%m-%dT%H:%M}"


def _print(rows: list[tuple[str, ...]]) -> None:
    for row in (_HEADS, *rows):
        print("\n" + " ".join(f"{cell:{width}}" for cell, width in zip(row, _WIDTHS, strict=True)))


_ACTS = {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}
