"""DescribeCluster: brokers, fenced ones too when asked, and endpoints that are not here."""

import pytest

from kafkalite.coordinators.cluster.brokers import FenceBroker
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeClusterRequest


@pytest.mark.parametrize("version", range(3))
def test_names_the_cluster_and_its_brokers(three, version):
    response = three.ask(DescribeClusterRequest(), version)
    assert (response.cluster_id, response.controller_id) == ("MkU3OEVBNTcwNTJENDM2Qg", 1)
    assert [each.broker_id for each in response.brokers] == [1, 2, 3]
    assert response.cluster_authorized_operations == -(2**31)


def test_fenced_brokers_when_asked(three):
    three.controller.decide(FenceBroker(1))
    response = three.ask(DescribeClusterRequest(), 2)
    assert [each.broker_id for each in response.brokers] == [2, 3]
    # Any living broker takes changes.
    assert response.controller_id == 2
    response = three.ask(DescribeClusterRequest(include_fenced_brokers=True), 2)
    assert [each.is_fenced for each in response.brokers] == [True, False, False]


@pytest.mark.parametrize(
    ("endpoint", "code"),
    [(2, Error.MISMATCHED_ENDPOINT_TYPE), (3, Error.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_only_brokers_are_here(world, endpoint, code):
    assert world.ask(DescribeClusterRequest(endpoint_type=endpoint), 1).error_code == code


def test_operations_when_asked(world):
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert world.ask(request, 0).cluster_authorized_operations == 0b1_1111_1010_0000
