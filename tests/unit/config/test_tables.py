"""The tables of settings: complete, in form, and with defaults that are valid."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.config import (
    broker_settings,
    client_metrics_settings,
    group_settings,
    render,
    topic_settings,
)
from kafkalite.config.checks import check_for
from kafkalite.config.setting import InvalidSetting, Kind, convert
from kafkalite.config.tables import base_name, foreign, foreign_settings, nearest, removed_settings
from kafkalite.config.topic import STAND_IN

TABLES = {
    "broker": broker_settings(),
    "topic": topic_settings(),
    "group": group_settings(),
    "client-metrics": client_metrics_settings(),
}
ALL = [setting for table in TABLES.values() for setting in table.values()]


def test_has_as_many_settings_as_apache_kafka_4_3():
    counts = {name: len(table) for name, table in TABLES.items()}
    ours = sum(name.startswith("kafkalite.") for name in TABLES["broker"])
    counts["broker"] -= ours
    # 360 in the static table and three rates that only AlterConfigs sets.
    assert counts == {"broker": 363, "topic": 34, "group": 17, "client-metrics": 3}


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.name)
def test_default_is_valid_and_is_written_as_it_stands(setting):
    value = setting.default()
    if value is not None:
        setting.check(setting.name, value)
        assert render(value) == setting.default_text


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.name)
def test_doc_is_one_sentence(setting):
    assert re.fullmatch(r"[A-Z`].*\.", setting.doc)
    assert setting.ignored != ""


def test_stand_ins_are_broker_settings_of_the_same_type():
    for topic_name, stand_in in STAND_IN.items():
        for name, factor in stand_in.items():
            kinds = {topic_settings()[topic_name].kind, broker_settings()[name].kind}
            assert len(kinds) == 1 or kinds == {Kind.INT, Kind.LONG}, (topic_name, name)
            assert factor == 1 or name.endswith((".hours", ".minutes"))


def test_removed_settings_are_not_settings():
    assert not removed_settings().keys() & broker_settings().keys()


def test_listener_prefix_and_mechanism_are_dropped():
    assert base_name("listener.name.internal.ssl.keystore.location") == "ssl.keystore.location"
    assert base_name("listener.name.a.scram-sha-256.sasl.jaas.config") == "sasl.jaas.config"
    assert base_name("num.partitions") == "num.partitions"


def test_foreign_settings_are_not_settings():
    known = [*broker_settings(), *removed_settings()]
    assert [name for name in known if foreign(name) and not name.startswith("zookeeper.")] == []
    assert not foreign_settings().keys() & broker_settings().keys()


def test_nearest_finds_the_slip_and_nothing_else():
    assert nearest("log.retention.hour", broker_settings()) == "log.retention.hours"
    assert nearest("my.plugin.colour", broker_settings()) is None


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (Kind.INT, "x", "Invalid value x for configuration n: Not a number of type INT"),
        (Kind.INT, "2147483648", "Not a number of type INT"),
        (Kind.SHORT, "32768", "Not a number of type SHORT"),
        (Kind.LONG, "9223372036854775808", "Not a number of type LONG"),
        (Kind.LONG, "1_000", "Not a number of type LONG"),
        (Kind.LONG, "\u2003 7", "Not a number of type LONG"),
        (Kind.DOUBLE, "٧", "Not a number of type DOUBLE"),
        (Kind.DOUBLE, "half", "Not a number of type DOUBLE"),
        (Kind.BOOLEAN, "yes", "Expected value to be either true or false"),
    ],
)
def test_refuses_with_kafkas_sentence(kind, text, message):
    with pytest.raises(InvalidSetting, match=re.escape(message)):
        convert("n", text, kind)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.INT, " +7\t", "7"),
        (Kind.INT, "007", "7"),
        (Kind.LONG, "٧", "7"),
        (Kind.DOUBLE, "0x1p-1", "0.5"),
        (Kind.DOUBLE, "-Infinity", "-Infinity"),
        (Kind.DOUBLE, "NaN", "NaN"),
        (Kind.DOUBLE, "1e-4f", "1.0E-4"),
        (Kind.DOUBLE, "4.9E-324", "4.9E-324"),
        (Kind.LIST, " a ,\tb,a", "a,b,a"),
    ],
)
def test_reads_what_java_reads(kind, text, value):
    assert render(convert("n", text, kind)) == value


@pytest.mark.parametrize(("text", "value"), [("0x1p9999", "Infinity"), ("-0X1P9999D", "-Infinity")])
def test_however_long_a_hexadecimal_number_is_it_is_read(text, value):
    assert render(convert("n", text, Kind.DOUBLE)) == value


@pytest.mark.parametrize("days", ["106751991167301", "9" * 30, "9" * 5_000])
def test_however_long_a_duration_is_it_is_refused(days):
    with pytest.raises(InvalidSetting, match="of the format 'by_duration"):
        check_for("share-reset", Kind.STRING)("n", f"by_duration:P{days}D")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("num.partitions", "0", "Value must be at least 1"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "Value must be no more than 1"),
        ("compression.type", "brotli", "String must be one of: uncompressed, zstd, lz4"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("log.cleanup.policy", "delete,shred", "String must be one of: compact, delete"),
        ("log.dirs", "", "must not be empty. Valid values include: any non-empty value"),
        ("log.dirs", "a,,b", "values must not be empty"),
        ("controller.quorum.voters", "1-h:1", "Expected a voter"),
        ("group.consumer.migration.policy", "sideways", "(case insensitive)"),
    ],
)
def test_checks_the_range_of_a_value(name, text, message):
    with pytest.raises(InvalidSetting, match=re.escape(message)):
        broker_settings()[name].parse(text)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_survives_its_text(value):
    text = render(value)
    assert text is not None
    assert convert("n", text, Kind.DOUBLE) == value


def test_doubles_are_written_as_java_writes_them():
    texts = [render(x) for x in (0.5, 1e7, 1.5e10, 1e-4, -2.5e-7, 2147483647.0)]
    assert texts == ["0.5", "1.0E7", "1.5E10", "1.0E-4", "-2.5E-7", "2.147483647E9"]
