"""One number, three names: as those who wrote the rules would have it."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kafkalite.metrics.beans import Kind, beans
from kafkalite.metrics.pages import text
from kafkalite.metrics.spellings import (
    CONFLUENT,
    QUANTILES,
    REPORTER,
    STRIMZI,
    Row,
    Style,
    TimesRow,
    families,
)

Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]
ROWS: list[Row] = [((), 3.0), (("t",), 2.0)]
TIMES = [TimesRow(("Fetch",), 7, 70.0, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))]


def samples(style: Style, key: str, *values: str) -> Samples:
    bean = beans()[key]
    found: Samples = {}
    rows: dict[str, list[Row]] = {key: [(values, 1.0)]} if bean.kind is not Kind.TIMES else {}
    times = {key: TIMES} if bean.kind is Kind.TIMES else {}
    for family in text_string_to_metric_families(text(families(style, rows, times)).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


@pytest.mark.parametrize(
    ("key", "labels", "strimzi", "reporter", "confluent"),
    [
        (
            "BrokerTopicMetrics.MessagesInPerSec", ("t",),
            'kafka_server_brokertopicmetrics_messagesin_total{topic="t"}',
            'kafka_server_brokertopicmetrics_messagesinpersec_total{topic="t"}',
            'kafka_server_brokertopicmetrics_messagesinpersec{topic="t"}',
        ),
        (
            "SocketServer.NetworkProcessorAvgIdlePercent", (),
            "kafka_network_socketserver_networkprocessoravgidle_percent",
            "kafka_network_socketserver_networkprocessoravgidlepercent",
            "kafka_network_socketserver_networkprocessoravgidlepercent",
        ),
        (
            "KafkaRequestHandlerPool.RequestHandlerAvgIdlePercent", (),
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent",
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total",
        ),
        (
            "socket-server-metrics.connection-count", ("PLAIN", "0"),
            'kafka_server_socket_server_metrics_connection_count'
            '{listener="PLAIN",networkProcessor="0"}',
            'kafka_server_socket_server_metrics_connection_count'
            '{listener="PLAIN",networkprocessor="0"}',
            'kafka_server_socketservermetrics_connection_count'
            '{listener="PLAIN",network_processor="0"}',
        ),
        (
            "socket-server-metrics.connections", ("kcat", "1", "PLAIN", "0"),
            'kafka_server_socket_server_metrics_connections_software{clientSoftwareName="kcat",'
            'clientSoftwareVersion="1",listener="PLAIN",networkProcessor="0"}',
            'kafka_server_socket_server_metrics_connections{clientsoftwarename="kcat",'
            'clientsoftwareversion="1",listener="PLAIN",networkprocessor="0"}',
            'kafka_server_socketservermetrics_connections{client_software_name="kcat",'
            'client_software_version="1",listener="PLAIN",network_processor="0"}',
        ),
        (
            "raft-metrics.current-state", ("leader",),
            'kafka_server_raftmetrics_current_state{current_state="leader"}',
            'kafka_server_raft_metrics_current_state{current_state="leader"}',
            'kafka_server_raft_metrics_current_state{current_state="leader"}',
        ),
        (
            "KafkaServer.linux-disk-read-bytes", (),
            "kafka_server_kafkaserver_linux_disk_read_bytes",
            "kafka_server_kafkaserver_linux_disk_read_bytes",
            "kafka_server_kafkaserver_linux_disk_read_bytes",
        ),
        (
            "DelayedOperationPurgatory.PurgatorySize", ("Fetch",),
            'kafka_server_delayedoperationpurgatory_purgatorysize{delayedOperation="Fetch"}',
            'kafka_server_delayedoperationpurgatory_purgatorysize{delayedoperation="Fetch"}',
            'kafka_server_delayedoperationpurgatory_purgatorysize{delayedoperation="Fetch"}',
        ),
        (
            "GroupMetadataManager.NumGroups", (),
            *["kafka_coordinator_group_groupmetadatamanager_numgroups"] * 3,
        ),
        (
            "Produce.byte-rate", ("alice", ""),
            'kafka_server_produce_byte_rate{client_id="",user="alice"}',
            'kafka_server_produce_byte_rate{client_id="",user="alice"}',
            'kafka_server_produce_byte_rate{client_id="",user="alice"}',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value else "",
)  # fmt: skip
def test_a_bean_in_three_spellings(
    key: str, labels: tuple[str, ...], strimzi: str, reporter: str, confluent: str
) -> None:
    for style, wanted in ((STRIMZI, strimzi), (REPORTER, reporter), (CONFLUENT, confluent)):
        ((name, rows),) = samples(style, key, *labels).items()
        ((found, value),) = rows.items()
        inner = ",".join(f'{label}="{each}"' for label, each in found)
        assert (f"{name}{{{inner}}}" if inner else name, value) == (wanted, 1.0)


def test_times_have_percentiles_and_what_means_are_made_of() -> None:
    name = "kafka_network_requestmetrics_localtimems"
    found = samples(STRIMZI, "RequestMetrics.LocalTimeMs")
    assert found[f"{name}_count"] == {(("request", "Fetch"),): 7}
    assert found[f"{name}_sum"] == {(("request", "Fetch"),): 70}
    assert found[name][("quantile", "0.999"), ("request", "Fetch")] == 6
    reporter = samples(REPORTER, "RequestMetrics.LocalTimeMs")[name]
    assert reporter[("quantile", "0.5"), ("request", "Fetch")] == 1
    confluent = samples(CONFLUENT, "RequestMetrics.LocalTimeMs")[name]
    assert len(confluent) == len(QUANTILES) + 1
    assert confluent[(("request", "Fetch"),)] == 7


def test_a_row_of_all_has_no_label() -> None:
    key = "BrokerTopicMetrics.BytesInPerSec"
    (family,) = families(STRIMZI, {key: ROWS}, {})
    assert [(each.labels, each.value) for each in family.samples] == [({}, 3), ({"topic": "t"}, 2)]


def test_what_is_ours_is_on_the_first_page_alone() -> None:
    rows: dict[str, list[Row]] = {
        "kafkalite_sent_bytes": [((), 3.0)],
        "kafkalite_groups": [(("classic", "Empty"), 1.0)],
    }
    assert [each.name for each in families(STRIMZI, rows, {})] == [
        "kafkalite_sent_bytes", "kafkalite_groups",
    ]  # fmt: skip
    assert not list(families(CONFLUENT, rows, {}))
    assert not list(families(REPORTER, rows, {}))


def test_no_two_numbers_have_one_name() -> None:
    for style in (STRIMZI, REPORTER, CONFLUENT):
        names = [style.name_of(each) for each in beans().values()]
        assert sorted(set(names)) == sorted(names)
