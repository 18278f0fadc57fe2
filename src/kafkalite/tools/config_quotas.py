"""Quotas of users, clients and addresses, and users' SCRAM credentials, for `kafka-configs`."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Any

from kafkalite.client import users
from kafkalite.client.client_quotas import (
    ANY,
    DEFAULT,
    EXACT,
    Entity,
    Quotas,
    alteration,
    component,
    quotas_in,
)
from kafkalite.coordinators.java_hash import java_hash
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DescribeClientQuotasRequest,
    DescribeUserScramCredentialsRequest,
)
from kafkalite.security.scram import BY_NAME, BY_NUMBER, MIN_ITERATIONS
from kafkalite.tools.asking import Asking
from kafkalite.tools.config_resources import Change, Subject
from kafkalite.tools.failures import Failure, execution, illegal_argument, refused, wrapped
from kafkalite.tools.java_maps import in_map_order, in_map_order_of
from kafkalite.tools.java_numbers import real, whole

TYPES = ("users", "clients", "ips")
_ENTITIES = {"users": "user", "clients": "client-id", "ips": "ip"}
_SHOWN = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
_QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage",
           "controller_mutation_rate")  # fmt: skip
_OF_ADDRESSES = ("connection_creation_rate",)
_USES = "using --bootstrap-server"


def describe(asking: Asking, subject: Subject) -> None:
    for entity, values in _quotas(asking, subject).items():
        names = dict(entity)
        who = ", ".join(
            f"the default {shown}" if names[kind] is None else f"{shown} '{names[kind]}'"
            for kind, shown in _SHOWN.items()
            if kind in names
        )
        keys = in_map_order(values, len(values))
        quotas = ", ".join(f"{key}={_shown(values[key])}" for key in keys)
        print(f"Quota configs for {who} are {quotas}")
    if subject.types[0] != "ips" and "clients" not in subject.types and "" not in subject.names:
        _describe_credentials(asking, subject.names)


def _shown(value: float) -> str:
    """As Java shows it: with a power of ten from ten millions on, and below a thousandth."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, _, power = f"{value:.17e}".partition("e")
    for precision in range(1, 18):
        digits, _, power = f"{value:.{precision}e}".partition("e")
        if float(f"{digits}e{power}") == value:
            break
    return f"{digits}E{int(power)}"


def _quotas(asking: Asking, subject: Subject) -> Quotas:
    components = []
    for kind, name in zip_longest(subject.types, subject.names):
        if kind is None:
            raise illegal_argument("More entity names specified than entity types")
        match_type = ANY if name is None else EXACT if name else DEFAULT
        components.append(component(_ENTITIES[kind], name or None, match_type))
    request = DescribeClientQuotasRequest(components=components, strict=True)
    with wrapped(execution):
        answer = asking.any("describeClientQuotas", request)
        if answer.error_code != Error.NONE:
            raise refused(answer.error_code, answer.error_message)
    found = quotas_in(answer)
    return {entity: found[entity] for entity in in_map_order_of(found, _hash, len(found))}


def _hash(entity: Entity) -> int:
    return 31 + sum(java_hash(kind) ^ (0 if name is None else java_hash(name))
                    for kind, name in entity)  # fmt: skip


def _describe_credentials(asking: Asking, names: list[str]) -> None:
    wanted = [DescribeUserScramCredentialsRequest.User(name=name) for name in names]
    request = DescribeUserScramCredentialsRequest(users=wanted)
    with wrapped(execution):
        answer = asking.any("describeUserScramCredentials", request)
        if answer.error_code != Error.NONE:
            raise refused(answer.error_code, answer.error_message)
    for each in answer.results:
        if each.error_code == Error.RESOURCE_NOT_FOUND:
            continue
        if each.error_code != Error.NONE:
            failure = execution(refused(each.error_code, each.error_message))
            print(
                f"Error retrieving SCRAM credential configs for user-principal '{each.user}': "
                f"{failure.java.rpartition('.')[2]}: {failure.message}"
            )
            continue
        infos = ", ".join(
            f"{BY_NUMBER[info.mechanism].name}=iterations={info.iterations}"
            for info in each.credential_infos
        )
        print(f"SCRAM credential configs for user-principal '{each.user}' are {infos}")


def alter(asking: Asking, subject: Subject, change: Change) -> None:
    if subject.types[0] == "ips":
        wrong = [name for name in (*change.added, *change.deleted) if name not in _OF_ADDRESSES]
        if wrong:
            raise illegal_argument(
                f"Only connection quota configs can be added for 'ips' {_USES}. Unexpected config "
                f"names: {','.join(wrong)}"
            )
        _alter_quotas(asking, subject, change)
        return
    if subject.types[0] == "clients" or len(subject.types) == 2:
        _check_names("quota configs", "clients", change, _QUOTAS)
    else:
        known = (*_QUOTAS, *BY_NAME)
        _check_names("quota and SCRAM credential configs", "users", change, known)
        _check_users(subject, change)
    if _some_of(change, _QUOTAS):
        _alter_quotas(asking, subject, change)
    else:
        _alter_credentials(asking, subject.names[0], change)


def _some_of(change: Change, names: Any) -> bool:
    return any(name in names for name in (*change.added, *change.deleted))


def _check_names(what: str, kind: str, change: Change, known: tuple[str, ...]) -> None:
    def told(names: Any) -> str:
        unknown = [name for name in names if name not in (*known, *BY_NAME)]
        unfit = [name for name in names if name in BY_NAME and name not in known]
        return ", ".join([*unknown, *unfit])

    for verb, collection, names in (
        ("added", "Set", change.added), ("deleted", "ArrayBuffer", change.deleted),
    ):  # fmt: skip
        if wrong := told(names):
            raise illegal_argument(
                f"Only {what} can be {verb} for '{kind}' {_USES}. Unexpected config names: "
                f"{collection}({wrong})"
            )


def _check_users(subject: Subject, change: Change) -> None:
    if not _some_of(change, BY_NAME):
        return
    if "" in subject.names:
        raise illegal_argument(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM "
            f"Credentials {_USES}."
        )
    if _some_of(change, _QUOTAS):
        raise illegal_argument(
            "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' "
            f"{_USES}."
        )


def _alter_quotas(asking: Asking, subject: Subject, change: Change) -> None:
    old = next(iter(_quotas(asking, subject).values()), {})
    wrong = [name for name in change.deleted if name not in old]
    if wrong:
        message = f"Invalid config(s): {','.join(wrong)}"
        raise Failure("org.apache.kafka.common.errors.InvalidConfigurationException", message)
    entity = [
        (_ENTITIES[kind], name or None)
        for kind, name in zip(subject.types, subject.names, strict=True)
    ]
    added = {key: _number(key, change.added[key]) for key in change.added}
    request = alteration(entity, added, change.deleted)
    with wrapped(execution):
        [entry] = asking.any("alterClientQuotas", request).entries
        if entry.error_code != Error.NONE:
            raise refused(entry.error_code, entry.error_message)


def _number(key: str, text: str) -> float:
    try:
        return real(text)
    except ValueError:
        raise illegal_argument(
            f"Cannot parse quota configuration value for {key}: {text}"
        ) from None


def _alter_credentials(asking: Asking, user: str, change: Change) -> None:
    upsertions = [_upsertion(user, name, text) for name, text in change.added.items()]
    request = users.alteration(upsertions, user, change.deleted)
    with wrapped(execution):
        [result] = asking.controller(
            "alterUserScramCredentials", request, users.codes
        ).results
        if result.error_code != Error.NONE:
            raise refused(result.error_code, result.error_message)


def _whole(text: str) -> int:
    try:
        return whole(text)
    except ValueError:
        raise illegal_argument(f'For input string: "{text}"') from None


def _upsertion(user: str, name: str, text: str) -> Any:
    found = re.fullmatch(r"(?:iterations=(-?[0-9]*),)?password=(.*)", text)
    if found is None:
        raise illegal_argument(f"Invalid credential property {name.replace('-', '_')}={text}")
    iterations = MIN_ITERATIONS if found[1] in (None, "-1") else _whole(found[1])
    if iterations < MIN_ITERATIONS:
        raise illegal_argument(
            f"Iterations {iterations} is less than the minimum {MIN_ITERATIONS} required for "
            f"{name}"
        )
    return users.upsertion(user, name, found[2], iterations)
