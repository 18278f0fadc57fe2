"""`kafka-acls`: the rules that say who may do what."""

from __future__ import annotations

from collections.abc import Iterable

from kafkalite.tools.acl_rules import (
    ANY_ENTRY,
    ANY_RESOURCE,
    ANYONE,
    CLUSTER,
    OPERATIONS,
    SUPPORTED,
    Entry,
    Kind,
    Operation,
    Pattern,
    Permission,
    Resource,
    Rules,
    create,
    delete,
    describe,
    operation_name,
    operation_of,
    principal_of,
)
from kafkalite.tools.asking import Asking, connect
from kafkalite.tools.failures import Failure, WrongUse
from kafkalite.tools.options import Given, Option
from kafkalite.tools.running import begin, tell_use, wrong_words
from kafkalite.tools.streams import read_line

_ABOUT = "This tool helps to manage acls on kafka."
_ACTIONS = ("add", "remove", "list")
_ADDRESSES = (
    "A list of host/port pairs to use for establishing the connection to the Kafka cluster. This "
    "list should be in the form host1:port1,host2:port2,... This config is required for acl "
    "management using admin client API."
)
_PRINCIPAL = "principal is in principalType:name format."
_SUPPORTED = "Note that principalType must be supported by the Authorizer being used."
_OPERATIONS = "".join(f"\t{operation_name(each)}\n" for each in OPERATIONS)
_TYPES = tuple(each.name for each in Pattern)

OPTIONS = [
    Option("bootstrap-server", _ADDRESSES, "server to connect to"),
    Option("bootstrap-controller", _ADDRESSES, "controller to connect to"),
    Option(
        "command-config", "A property file containing configs to be passed to Admin Client.",
        "command-config", may_lack_argument=True,
    ),
    Option(
        "topic",
        "topic to which ACLs should be added or removed. A value of '*' indicates ACL should apply "
        "to all topics.", "topic",
    ),
    Option("cluster", "Add/Remove cluster ACLs."),
    Option(
        "group",
        "Consumer Group to which the ACLs should be added or removed. A value of '*' indicates the "
        "ACLs should apply to all groups.", "group",
    ),
    Option(
        "transactional-id",
        "The transactionalId to which ACLs should be added or removed. A value of '*' indicates "
        "the ACLs should apply to all transactionalIds.", "transactional-id",
    ),
    Option(
        "idempotent",
        "Enable idempotence for the producer. This should be used in combination with the "
        "--producer option. Note that idempotence is enabled automatically if the producer is "
        "authorized to a particular transactional-id.",
    ),
    Option(
        "delegation-token",
        "Delegation token to which ACLs should be added or removed. A value of '*' indicates ACL "
        "should apply to all tokens.", "delegation-token",
    ),
    Option(
        "resource-pattern-type",
        "The type of the resource pattern or pattern filter. When adding acls, this should be a "
        "specific pattern type, e.g. 'literal' or 'prefixed'. When listing or removing acls, a "
        "specific pattern type can be used to list or remove acls from specific resource patterns, "
        "or use the filter values of 'any' or 'match', where 'any' will match any pattern type, "
        "but will match the resource name exactly, where as 'match' will perform pattern matching "
        "to list or remove all acls that affect the supplied resource(s). WARNING: 'match', when "
        "used in combination with the '--remove' switch, should be used with care.", "",
        default=Pattern.LITERAL.name, choices=_TYPES, choices_shown="|".join(_TYPES),
    ),
    Option("add", "Indicates you are trying to add ACLs."),
    Option("remove", "Indicates you are trying to remove ACLs."),
    Option(
        "list",
        "List ACLs for the specified resource, use --topic <topic> or --group <group> or --cluster "
        "to specify a resource.",
    ),
    Option(
        "operation",
        f"Operation that is being allowed or denied. Valid operation names are: \n{_OPERATIONS}",
        "", default=operation_name(Operation.ALL),
    ),
    Option(
        "allow-principal",
        f"{_PRINCIPAL} {_SUPPORTED} For example, User:'*' is the wild card indicating all users.",
        "allow-principal",
    ),
    Option(
        "deny-principal",
        f"{_PRINCIPAL} By default anyone not added through --allow-principal is denied access. You "
        "only need to use this option as negation to already allowed set. "
        f"{_SUPPORTED} For example if you wanted to allow access to all users in the system but "
        "not test-user you can define an ACL that allows access to User:'*' and specify "
        "--deny-principal=User:test@EXAMPLE.COM. AND PLEASE REMEMBER DENY RULES TAKES PRECEDENCE "
        "OVER ALLOW RULES.", "deny-principal",
    ),
    Option(
        "principal",
        f"List ACLs for the specified principal. {_PRINCIPAL} {_SUPPORTED} Multiple --principal "
        "option can be passed.", "principal", may_lack_argument=True,
    ),
    Option(
        "allow-host",
        "Host from which principals listed in --allow-principal will have access. If you have "
        "specified --allow-principal then the default for this option will be set to '*' which "
        "allows access from all hosts.", "allow-host",
    ),
    Option(
        "deny-host",
        "Host from which principals listed in --deny-principal will be denied access. If you have "
        "specified --deny-principal then the default for this option will be set to '*' which "
        "denies access from all hosts.", "deny-host",
    ),
    Option(
        "producer",
        "Convenience option to add/remove ACLs for producer role. This will generate ACLs that "
        "allows WRITE,DESCRIBE and CREATE on topic.",
    ),
    Option(
        "consumer",
        "Convenience option to add/remove ACLs for consumer role. This will generate ACLs that "
        "allows READ,DESCRIBE on topic and READ on group.",
    ),
    Option("force", "Assume Yes to all queries and do not prompt."),
    Option(
        "user-principal",
        "Specifies a user principal as a resource in relation with the operation. For instance one "
        "could grant CreateTokens or DescribeTokens permission on a given user principal.",
        "user-principal",
    ),
]  # fmt: skip
_KINDS = {
    "topic": Kind.TOPIC, "group": Kind.GROUP, "transactional-id": Kind.TRANSACTIONAL_ID,
    "delegation-token": Kind.DELEGATION_TOKEN, "user-principal": Kind.USER,
}  # fmt: skip


def main(words: list[str]) -> int:
    given = Given(OPTIONS)
    try:
        with wrong_words():
            ended = begin(given, words, _ABOUT)
        if ended is not None:
            return ended
        _check(given)
        _run(given)
    except WrongUse as wrong:
        return tell_use(wrong, given)
    except Failure as failure:
        print(f"Error while executing ACL command: {failure.message}\n{failure.stack()}")
        return 1
    return 0


def _check(given: Given) -> None:
    servers = [name for name in ("bootstrap-server", "bootstrap-controller") if given.has(name)]
    if len(servers) != 1:
        one = "Only one" if servers else "One"
        raise WrongUse(f"{one} of --bootstrap-server or --bootstrap-controller must be specified")
    if sum(given.has(name) for name in _ACTIONS) != 1:
        raise WrongUse("Command must include exactly one action: --list, --add, --remove. ")
    given.refuse(
        "list", "producer", "consumer", "allow-host", "allow-principal", "deny-host",
        "deny-principal",
    )  # fmt: skip
    for role in ("producer", "consumer"):
        given.refuse(role, "operation", "deny-principal", "deny-host")
    _check_roles(given)


def _check_roles(given: Given) -> None:
    if given.has("principal") and not given.has("list"):
        raise WrongUse("The --principal option is only available if --list is set")
    if given.has("producer") and not given.has("topic"):
        raise WrongUse("With --producer you must specify a --topic")
    if given.has("idempotent") and not given.has("producer"):
        raise WrongUse("The --idempotent option is only available if --producer is set")
    if not given.has("consumer"):
        return
    others = given.has("cluster") or given.has("transactional-id")
    is_whole = given.has("topic") and given.has("group")
    if not is_whole or (others and not given.has("producer")):
        raise WrongUse(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )


def _run(given: Given) -> None:
    name = "bootstrap-server" if given.has("bootstrap-server") else "bootstrap-controller"
    asking = connect(given.one(name), given.one("command-config"))
    try:
        if given.has("add"):
            _add(asking, given)
        elif given.has("remove"):
            _remove(asking, given)
        else:
            _list(asking, given)
    finally:
        asking.close()


def _add(asking: Asking, given: Given) -> None:
    pattern = _pattern(given)
    if pattern not in (Pattern.LITERAL, Pattern.PREFIXED):
        raise WrongUse(
            f"A '--resource-pattern-type' value of '{pattern.name}' is not valid when adding acls."
        )
    rules = _rules(given)
    if not all(rules.values()):
        raise WrongUse(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    for resource, entries in rules.items():
        there = describe(asking, resource).get(resource, [])
        for each in entries:
            if each in there:
                print(f"Acl (pattern={resource}, entry={each}) already exists.")
        if new := [each for each in entries if each not in there]:
            print(f"Adding ACLs for resource `{resource}`: \n {_shown(new)}\n")
            create(asking, resource, new)


def _remove(asking: Asking, given: Given) -> None:
    for resource, entries in _rules(given).items():
        question = f"Are you sure you want to delete all ACLs for resource filter `{resource}`?"
        if entries:
            question = (
                f"Are you sure you want to remove ACLs: \n {_shown(entries)}\n from resource "
                f"filter `{resource}`?"
            )
        if given.has("force") or _is_sure(f"{question} (y/n)"):
            delete(asking, resource, entries or [ANY_ENTRY])


def _is_sure(question: str) -> bool:
    print(question, flush=True)
    return read_line().lower() == "y"


def _list(asking: Asking, given: Given) -> None:
    resources = _resources(given)
    principals = _principals(given, "principal")
    found: Rules = {}
    for resource in resources or [ANY_RESOURCE]:
        for each, entries in describe(asking, resource).items():
            found[each] = list(dict.fromkeys([*found.get(each, []), *entries]))
    if not principals:
        _print(found)
    for principal in principals:
        print(f"ACLs for principal `{principal}`")
        _print({
            resource: some
            for resource, entries in found.items()
            if (some := [each for each in entries if each.principal == principal])
        })  # fmt: skip


def _print(rules: Rules) -> None:
    for resource, entries in rules.items():
        print(f"Current ACLs for resource `{resource}`:\n{_shown(entries)}\n")


def _shown(entries: Iterable[Entry]) -> str:
    return "\n".join(f"\t{each}" for each in entries)


def _rules(given: Given) -> Rules:
    """What the words name: resources, and the rules of each."""
    if not (given.has("producer") or given.has("consumer")):
        operations = [operation_of(each.strip()) for each in given.all("operation")]
        entries = _entries(given, operations or [Operation.ALL])
        rules: Rules = dict.fromkeys(_needed_resources(given), entries)
    else:
        rules = _rules_of_roles(given)
    for resource, entries in rules.items():
        _check_operations(resource.kind, entries)
    return rules


def _rules_of_roles(given: Given) -> Rules:
    """What a producer or a consumer needs."""
    wanted: dict[Resource, list[Operation]] = {}
    describing, writing = Operation.DESCRIBE, Operation.WRITE
    for role, operations in (
        ("producer", {
            Kind.TOPIC: [writing, describing, Operation.CREATE],
            Kind.TRANSACTIONAL_ID: [writing, describing],
        }),
        ("consumer", {
            Kind.TOPIC: [Operation.READ, describing], Kind.GROUP: [Operation.READ],
        }),
    ):  # fmt: skip
        for each in _needed_resources(given) if given.has(role) else []:
            if each.kind in operations:
                wanted.setdefault(each, []).extend(operations[each.kind])
    if given.has("idempotent"):
        wanted[CLUSTER] = [Operation.IDEMPOTENT_WRITE]
    return {each: _entries(given, wanted[each]) for each in wanted}


def _check_operations(kind: Kind, entries: Iterable[Entry]) -> None:
    allowed = [each for each in OPERATIONS if each in {*SUPPORTED[kind], Operation.ALL}]
    if any(each.operation not in allowed for each in entries):
        names = ", ".join(each.name for each in allowed)
        raise WrongUse(f"ResourceType {kind.name} only supports operations [{names}]")


def _entries(given: Given, operations: Iterable[Operation]) -> list[Entry]:
    found = [
        Entry(principal, host, operation, permission)
        for permission, who in ((Permission.ALLOW, "allow"), (Permission.DENY, "deny"))
        for principal in _principals(given, f"{who}-principal")
        for operation in operations
        for host in [each.strip() for each in given.all(f"{who}-host")] or [ANYONE]
    ]
    return list(dict.fromkeys(found))


def _principals(given: Given, name: str) -> list[str]:
    return list(dict.fromkeys(principal_of(each.strip()) for each in given.all(name)))


def _pattern(given: Given) -> Pattern:
    return Pattern[given.one("resource-pattern-type")]


def _needed_resources(given: Given) -> list[Resource]:
    if found := _resources(given):
        return found
    raise WrongUse(
        "You must provide at least one resource: --topic <topic> or --cluster or --group <group> "
        "or --delegation-token <Delegation Token ID>"
    )


def _resources(given: Given) -> list[Resource]:
    pattern = _pattern(given)
    found = [
        Resource(kind, name if kind is Kind.TRANSACTIONAL_ID else name.strip(), pattern)
        for option, kind in _KINDS.items()
        for name in given.all(option)
    ]
    if pattern is Pattern.LITERAL and (given.has("cluster") or given.has("idempotent")):
        found.append(CLUSTER)
    return list(dict.fromkeys(found))
