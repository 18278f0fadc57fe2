"""`kafkalite config`: settings of a running cluster, and what a broker makes of a file of them."""

from __future__ import annotations

import json
from dataclasses import dataclass

import click

from kafkalite.cli._cluster_settings import explain, get, set_values, unset
from kafkalite.cli._properties_file import PropertiesFile
from kafkalite.config import BrokerConfig, InvalidSetting, Judgement, Verdict, judge
from kafkalite.security.login_settings import login_settings
from kafkalite.security.tls_settings import check_tls

COLOURS = {Verdict.HONOURED: "green", Verdict.IGNORED: "yellow", Verdict.REFUSED: "red"}


@dataclass(slots=True)
class Report:
    """One line per key, or one JSON array."""

    judgements: list[Judgement]

    def as_json(self) -> str:
        rows = [
            {"key": each.key, "value": each.text, "verdict": each.verdict.value,
             "reason": each.reason}
            for each in self.judgements
        ]
        return json.dumps(rows, indent=2)

    def print_lines(self) -> None:
        for each in self.judgements:
            verdict = click.style(f"{each.verdict.value:8}", fg=COLOURS[each.verdict])
            reason = f"  ({each.reason})" if each.reason else ""
            click.echo(f"{verdict}  {each.key}={each.text}{reason}")
        counts = [
            f"{sum(each.verdict is verdict for each in self.judgements)} {verdict.value}"
            for verdict in Verdict
        ]
        click.echo(", ".join(counts))

    @property
    def has_refusal(self) -> bool:
        return any(each.verdict is Verdict.REFUSED for each in self.judgements)


@click.group()
def command() -> None:
    """Look at settings and change them."""


for each in (get, set_values, unset, explain):
    command.add_command(each)


@command.command()
@click.argument("properties", metavar="FILE", type=PropertiesFile())
@click.option("--format", "shape", type=click.Choice(["text", "json"]), default="text",
              help="How to print the findings.")
@click.pass_context
def check(context: click.Context, properties: dict[str, str], shape: str) -> None:
    """Tell for each key of FILE (- is standard input) whether it is honoured, ignored or refused.

    Exits with 1 when a key is refused: a broker would not start with this file.
    """
    report = Report(_with_keys(judge(properties), properties))
    if shape == "json":
        click.echo(report.as_json())
    else:
        report.print_lines()
    if report.has_refusal:
        context.exit(1)


def _with_keys(judgements: list[Judgement], properties: dict[str, str]) -> list[Judgement]:
    """Also what the stores of keys say, which are read as at a start, and how logins are set up."""
    if any(each.verdict is Verdict.REFUSED for each in judgements):
        return judgements
    found = list(judgements)
    for check_them in (check_tls, login_settings):
        try:
            check_them(BrokerConfig(properties))
        except InvalidSetting as error:
            key, _, why = str(error).partition(": ")
            found = [each for each in found if each.key != key]
            found.append(Judgement(key, "", Verdict.REFUSED, why))
    return found
