"""Options by name: none is passed over, and the nearest is told."""

import pytest

from kafkalite.pipelines.common.option_names import SOURCE, wrong, wrong_setting

SETTINGS = ["isolation.level", "security.protocol", "max.request.size", "ssl.keystore.location"]


def test_all_that_spark_knows_is_taken_in_any_case() -> None:
    assert wrong([*SOURCE, *(name.upper() for name in SOURCE), "kafka.security.protocol"]) is None


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("maxOffsetPerTrigger", "has no option maxOffsetPerTrigger; do you mean maxOffsetsPerTrig"),
        ("startingOffset", "do you mean startingOffsets?"),
        ("nonsense", "there are startingOffsets, "),
        ("failOnDataLoss", "use --on-data-loss"),
        ("SUBSCRIBE", "name the topics as arguments"),
        ("kafka.bootstrap.servers", "use --bootstrap-servers"),
        ("Kafka.security.protocol", "in small letters"),
    ],
)
def test_what_would_be_passed_over_is_refused(option: str, told: str) -> None:
    assert told in (wrong([option]) or "")


def test_a_sink_has_settings_of_its_client_alone() -> None:
    assert wrong(["kafka.linger.ms"], source=False) is None
    assert "Spark's Kafka sink has no option startingOffsets" in (
        wrong(["startingOffsets"], source=False) or ""
    )


def test_a_setting_of_kafka_that_is_nearly_one_is_refused() -> None:
    assert wrong_setting(["kafka.isolation.levle"], SETTINGS) == (
        "Kafka's clients have no setting isolation.levle; do you mean kafka.isolation.level?"
    )
    assert wrong_setting(["kafka.isolation.level", "startingOffsets"], SETTINGS) is None
    # A plugin's own.
    assert wrong_setting(["kafka.acme.vault.address"], SETTINGS) is None
