"""`kafkalite acl`: the rules that say who may do what, of any cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._as_program import Text
from kafkalite.cli._output import each_of, output_option, tell, timeout_option, with_cluster
from kafkalite.cli._where import NAME, TABLE, Where, cluster_options
from kafkalite.cli.topic import be_sure, dry_run_option, yes_option

if TYPE_CHECKING:
    from kafkalite.client.cluster import Cluster
    from kafkalite.security.acl import Acl, AclFilter

KINDS = ("topic", "group", "cluster", "transactional_id", "delegation_token", "user")
OPERATIONS = (
    "all", "read", "write", "create", "delete", "alter", "describe", "cluster_action",
    "describe_configs", "alter_configs", "idempotent_write", "create_tokens", "describe_tokens",
    "two_phase_commit",
)  # fmt: skip
COLUMNS = ("principal", "permission", "operation", "kind", "name", "pattern", "host")
RULES = ("rule",)


@dataclass(slots=True)
class Wanted:
    """Which rules are meant; None means all."""

    principal: str | None
    kind: str | None
    name: str | None
    concerning: str | None
    operation: str | None
    permission: str | None
    host: str | None

    @property
    def is_everything(self) -> bool:
        return self == Wanted(*[None] * 7)

    def filter(self) -> AclFilter:
        from kafkalite.security import acl

        def number(names: dict[int, str], word: str | None) -> int:
            return acl.ANY if word is None else [*names.values()].index(word.upper())

        name, pattern = self.name, acl.ANY
        if self.concerning is not None:
            name, pattern = self.concerning, acl.MATCH
        elif name is not None:
            is_prefix = len(name) > 1 and name.endswith(acl.WILDCARD)
            name = name.removesuffix(acl.WILDCARD) if is_prefix else name
            pattern = acl.PREFIXED if is_prefix else acl.LITERAL
        return acl.AclFilter(
            number(acl.KINDS, self.kind), name, pattern, self.principal, self.host,
            number(acl.OPERATIONS, self.operation), number(acl.PERMISSIONS, self.permission),
        )  # fmt: skip


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options that say which rules a command is about; it is given them as `wanted`."""

    @click.option("--principal", type=Text(), help="Whose, such as User:alice.")
    @click.option("--kind", type=click.Choice(KINDS), help="For what kind of resource.")
    @click.option("--name", type=Text(),
                  help="For the resource of this name; with * behind it, for those that begin so.")
    @click.option("--concerning", type=Text(),
                  help="All that concern the resource of this name, however they name it.")
    @click.option("--operation", type=click.Choice(OPERATIONS), help="For doing what.")
    @click.option("--permission", type=click.Choice(["allow", "deny"]), help="Only these.")
    @click.option("--host", type=Text(), help="For who comes from there.")
    @wraps(command)
    def run(**given: Any) -> None:
        fields = {name: given.pop(name) for name in Wanted.__slots__}
        if fields["name"] is not None and fields["concerning"] is not None:
            raise click.UsageError("give --name or --concerning, not both")
        command(wanted=Wanted(**fields), **given)

    return run


class Rule(click.ParamType["Acl"]):
    """A rule as people write it."""

    name = "RULE"

    def convert(
        self, value: str | Acl, param: click.Parameter | None, ctx: click.Context | None
    ) -> Acl:
        from kafkalite.security.acl import InvalidAcl, acl_of

        if not isinstance(value, str):
            return value
        try:
            return acl_of(Text().convert(value, param, ctx))
        except InvalidAcl as error:
            self.fail(str(error), param, ctx)


@click.group()
def command() -> None:
    """List, add and remove access rules.

    \b
    A rule is written as one text:
        [allow|deny] PRINCIPAL OPERATION KIND NAME [from HOST]
        'User:alice read topic orders'
        'deny User:* write topic audit-* from 10.0.0.7'
        'User:ops alter cluster'
    """


@command.command("list")
@cluster_options
@filter_options
@output_option
@timeout_option
def list_rules(wanted: Wanted, where: Where, shape: str, timeout_s: float) -> None:
    """List access rules; `-o name` prints them as `acl add` and `acl remove` take them."""

    def act(cluster: Cluster) -> None:
        from kafkalite.client.access_rules import found
        from kafkalite.client.admin import Admin

        show(shape, found(Admin(cluster, timeout_s=timeout_s), wanted.filter()))

    with_cluster(where, act)


def show(shape: str, rules: list[Acl]) -> None:
    tell(shape, [_row(each) for each in sorted(rules)], RULES if shape == NAME else COLUMNS)


def _row(rule: Acl) -> dict[str, Any]:
    from kafkalite.security import acl

    def word(names: dict[int, str], number: int) -> str:
        return names.get(number, str(number)).lower()

    return {
        "principal": rule.principal, "permission": word(acl.PERMISSIONS, rule.permission),
        "operation": word(acl.OPERATIONS, rule.operation), "kind": word(acl.KINDS, rule.kind),
        "name": rule.name, "pattern": word(acl.PATTERNS, rule.pattern), "host": rule.host,
        "rule": acl.text_of(rule),
    }  # fmt: skip


@command.command()
@click.argument("rules", nargs=-1, required=True, type=Rule(), metavar="RULE…")
@cluster_options
@timeout_option
def add(rules: tuple[Acl, ...], where: Where, timeout_s: float) -> None:
    """Add access rules. One that is there already stays."""
    from kafkalite.security.acl import text_of

    by_text = {text_of(each): each for each in rules}

    def act(cluster: Cluster) -> None:
        from kafkalite.client import access_rules
        from kafkalite.client.admin import Admin

        admin = Admin(cluster, timeout_s=timeout_s)
        each_of(by_text, lambda text: access_rules.add(admin, text, by_text[text]), "is there")

    with_cluster(where, act)


@command.command()
@click.argument("rules", nargs=-1, type=Rule(), metavar="[RULE]…")
@cluster_options
@filter_options
@yes_option
@dry_run_option
@timeout_option
def remove(
    rules: tuple[Acl, ...], wanted: Wanted, where: Where, is_sure: bool, dry_run: bool,
    timeout_s: float,
) -> None:  # fmt: skip
    """Remove access rules: these, or all that the options mean."""
    if bool(rules) is not wanted.is_everything:
        raise click.UsageError("which ones? give rules, or options that say which")

    def act(cluster: Cluster) -> None:
        from kafkalite.client import access_rules
        from kafkalite.client.admin import Admin
        from kafkalite.client.cluster import ClientFailed
        from kafkalite.protocol.errors import Error
        from kafkalite.security.acl import AclFilter, text_of

        admin = Admin(cluster, timeout_s=timeout_s)
        there = access_rules.found(admin, wanted.filter())
        meant = {text_of(each): each for each in rules or there}
        if dry_run:
            show(TABLE, [each for each in meant.values() if each in there])
            click.echo("kafkalite: nothing was changed (--dry-run)", err=True)
            return
        if not meant:
            raise ClientFailed("there is no such rule")
        be_sure(is_sure, f"Remove {', '.join(meant)}?")

        def remove_one(text: str) -> None:
            if not access_rules.remove(admin, text, AclFilter(*meant[text])):
                raise ClientFailed(f"there is no rule {text}", Error.RESOURCE_NOT_FOUND)

        each_of(meant, remove_one, "is not there any more")

    with_cluster(where, act)
