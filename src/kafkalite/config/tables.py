"""The tables of settings, read from `tables/*.settings`.

Owns the form of those files. Never holds a value that somebody set. Each table is read once, when
it is first asked for; a row out of form is our bug and an assertion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pkgutil import get_data

from kafkalite.config.checks import NAMED, check_for
from kafkalite.config.setting import Kind, Setting, Update

Table = dict[str, Setting]

# A broker setting may be given for one listener: listener.name.NAME.SETTING.
LISTENER_PREFIX = "listener.name."

LIKENESS = 0.75
# So near to a known name that it is a slip of the pen.
SLIP = 0.87


@cache
def broker_settings() -> Table:
    """Broker settings of Apache Kafka, and our own `kafkalite.` ones."""
    return _table("broker") | _table("kafkalite")


@cache
def topic_settings() -> Table:
    """Topic settings."""
    return _table("topic")


@cache
def group_settings() -> Table:
    """Group settings."""
    return _table("group")


@cache
def client_metrics_settings() -> Table:
    """Settings of a client metrics subscription."""
    return _table("client-metrics")


@cache
def removed_settings() -> dict[str, str]:
    """Settings that older Kafka releases had, with the reason why they may be ignored."""
    return dict(line.split(None, 1) for line in lines_of("removed"))


@cache
def foreign_settings() -> dict[str, str]:
    """What others put into a broker's file, with what it is; a name with * is a beginning."""
    return dict(line.split(None, 1) for line in lines_of("foreign"))


def foreign(name: str) -> str | None:
    """What a setting is that no broker of Apache Kafka reads, None for one that nobody knows."""
    for row, text in foreign_settings().items():
        if name == row or (row.endswith("*") and name.startswith(row[:-1])):
            return text
    return None


def nearest(name: str, names: Iterable[str], likeness: float = LIKENESS) -> str | None:
    """The known name that an unknown one was most likely meant to be."""
    import difflib  # slow to import, and only a mistake needs it

    close = difflib.get_close_matches(name, list(names), n=1, cutoff=likeness)
    return close[0] if close else None


def base_name(name: str) -> str:
    """A setting's name without a listener's prefix (and without a mechanism between them)."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    rest = name.removeprefix(LISTENER_PREFIX).partition(".")[2]
    table = broker_settings()
    after_mechanism = rest.partition(".")[2]
    return after_mechanism if rest not in table and after_mechanism in table else rest


def _table(name: str) -> Table:
    table: Table = {}
    section, ignored, row = "", None, ""
    for line in lines_of(name):
        if line.startswith("section "):
            section, ignored = line.removeprefix("section "), None
        elif line.startswith("ignored "):
            ignored = line.removeprefix("ignored ")
        elif line.startswith("    "):
            setting = _setting(row, line.strip(), section, ignored)
            assert setting.name not in table, f"{name}.settings: {setting.name} stands twice"
            table[setting.name] = setting
        else:
            row = line
    return table


def _setting(row: str, doc: str, section: str, ignored: str | None) -> Setting:
    name, kind, default, valid, importance, update, *marks = row.split()
    kafka_default = next((m.removeprefix("kafka=") for m in marks if m != "internal"), default)
    of_kind = Kind[kind.upper()]
    return Setting(
        name=name,
        kind=of_kind,
        default_text=_text(default),
        required=default == "!",
        check=check_for(valid, of_kind),
        importance=importance,
        update=Update(update),
        doc=doc,
        section=section,
        ignored=ignored,
        internal="internal" in marks,
        keeps_twins=of_kind is Kind.LIST and valid in NAMED,
        kafka_default_text=_text(kafka_default),
    )


def _text(column: str) -> str | None:
    if column in ("-", "!"):
        return None
    return "" if column == '""' else column


def lines_of(name: str) -> Iterator[str]:
    data = get_data("kafkalite.config", f"tables/{name}.settings")
    assert data is not None, f"{name}.settings is not in the package"
    for line in data.decode().splitlines():
        if line and not line.startswith("#"):
            yield line
