"""ApiVersions: the table of what is served, the features, and who asks."""

from types import SimpleNamespace
from typing import Any

import pytest

from kafkalite import handlers
from kafkalite.config.listeners import BROKER, CONTROLLER
from kafkalite.coordinators.cluster import features
from kafkalite.handlers.api_set import ApiSet
from kafkalite.handlers.api_versions import CLIENT_METRICS, api_versions, unknown_version
from kafkalite.handlers.call import Call
from kafkalite.protocol import codec, spec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ApiVersionsRequest
from kafkalite.server.connection_info import ConnectionInfo

PRODUCE, FETCH, METADATA, API_VERSIONS, CREATE_TOPICS = 0, 1, 3, 18, 19
API_SETS = {kind: ApiSet(kind) for kind in (BROKER, CONTROLLER)}


def ask(
    version: int,
    name: str = "a-client",
    software_version: str = "1.2.3",
    configs: dict[tuple[int, str], dict[str, str]] | None = None,
    kind: str = BROKER,
    *,
    are_taken: bool = False,
) -> Any:
    metadata = SimpleNamespace(
        image=SimpleNamespace(configs=configs or {}),
        finalized_features={"metadata.version": 30, "group.version": 1},
        features_epoch=42,
    )
    telemetry = SimpleNamespace(wants_metrics=are_taken)
    context: Any = SimpleNamespace(metadata=metadata, api_sets=API_SETS, telemetry=telemetry)
    connection = ConnectionInfo("PLAINTEXT", ("127.0.0.1", 9092), ("127.0.0.1", 1), kind)
    request = ApiVersionsRequest(
        client_software_name=name, client_software_version=software_version
    )
    response = api_versions(context, Call(18, version, 0, None, connection), request)
    return response, connection


def test_the_table_is_what_has_a_handler_and_nothing_else():
    response, _ = ask(4, configs={(CLIENT_METRICS, "all"): {}})
    listed = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
    for key in spec.api_files():
        is_here = "broker" in spec.api(key).listeners
        assert (key in listed) == (is_here and handlers.handler(key) is not None)
    assert listed[18] == (0, 4)
    assert listed[0] == (0, 13)
    assert list(listed) == sorted(listed)


def test_a_controller_has_a_table_of_its_own():
    response, _ = ask(4, kind="controller")
    listed = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
    quorum = {1: (0, 18), 56: (0, 3), 58: (0, 0), 59: (0, 1), 62: (0, 4), 63: (0, 2), 67: (0, 0)}
    assert listed.items() >= quorum.items()
    assert not {0, 3, 10, 52} & listed.keys()  # clients' own, and elections


def test_each_kind_of_listener_tells_of_its_own_apis():
    listed = {
        kind: [entry.api_key for entry in ask(4, kind=kind)[0].api_keys]
        for kind in (BROKER, CONTROLLER)
    }
    assert {PRODUCE, FETCH, METADATA, CREATE_TOPICS, API_VERSIONS} <= set(listed[BROKER])
    assert {FETCH, CREATE_TOPICS, API_VERSIONS} <= set(listed[CONTROLLER])
    assert not {PRODUCE, METADATA} & set(listed[CONTROLLER])
    for kind, keys in listed.items():
        assert [key for key in keys if kind not in spec.api(key).listeners] == []


def test_client_metrics_are_asked_for_only_when_somebody_wants_them():
    def listed(**options: Any) -> set[int]:
        return {entry.api_key for entry in ask(4, **options)[0].api_keys}

    assert not listed() & {71, 72}
    assert listed(configs={(CLIENT_METRICS, "all"): {}}) >= {71, 72}
    assert listed(are_taken=True) >= {71, 72}


def test_unstable_versions_are_not_advertised():
    for entry in ApiSet(BROKER).advertised:
        api = spec.api(entry.api_key)
        assert entry.max_version not in api.unstable
        assert entry.max_version >= entry.min_version


@pytest.mark.parametrize("version", range(5))
def test_the_response_has_bytes_in_every_version(version):
    response, _ = ask(version)
    assert codec.encode(response, version)


def test_features_come_with_version_3():
    assert ask(2)[0].supported_features == []
    response, _ = ask(3)
    assert {f.name for f in response.finalized_features} == {"metadata.version", "group.version"}
    assert response.finalized_features_epoch == 42
    assert all(f.min_version_level == f.max_version_level for f in response.finalized_features)


def test_features_that_begin_at_level_0_are_kept_from_version_3():
    assert all(feature.min_version > 0 for feature in ask(3)[0].supported_features)
    assert {feature.name for feature in ask(4)[0].supported_features} == set(features.SUPPORTED)


def test_the_software_of_the_client_is_remembered():
    _, connection = ask(3)
    assert (connection.software_name, connection.software_version) == ("a-client", "1.2.3")


@pytest.mark.parametrize("name", ["", "-a", "a-", "a b", "a\nb", "ä"])
def test_a_software_name_that_is_none_is_refused(name):
    response, connection = ask(3, name)
    assert response.error_code == Error.INVALID_REQUEST
    assert response.api_keys == []
    assert connection.software_name == "unknown"
    assert ask(3, software_version=name)[0].error_code == Error.INVALID_REQUEST


def test_an_unknown_version_is_told_the_versions_of_this_api():
    response = unknown_version()
    assert response.error_code == Error.UNSUPPORTED_VERSION
    assert [entry.api_key for entry in response.api_keys] == [18]
