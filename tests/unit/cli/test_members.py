"""What `kafkalite serve --brokers N` gives each of its processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalite.cli._members import members_of, prepare
from kafkalite.cli.serve import command
from kafkalite.config import BrokerConfig, InvalidSetting, parse_properties


def test_addresses_lie_in_a_row_and_each_has_a_directory(tmp_path: Path) -> None:
    odd = {"broker.rack": "a b:c=d#e\\f"}
    members = members_of(3, "127.0.0.1", 9092, str(tmp_path / "d"), odd)
    prepare(members)
    read = {
        each.node_id: BrokerConfig(parse_properties(Path(each.properties).read_text()))
        for each in (members.controller, *members.brokers)
    }
    assert members.addresses == ["127.0.0.1:9092", "127.0.0.1:9093", "127.0.0.1:9094"]
    assert sorted(read) == [1, 2, 3, 3000]
    for number in (1, 2, 3):
        config = read[number]
        assert (config.is_broker, config.is_controller, config.node_id) == (True, False, number)
        assert config.controller_address is not None
        assert (config.controller_address.node_id, config.controller_address.port) == (3000, 9095)
        assert config.get_str("broker.rack") == odd["broker.rack"]
    assert [each.port for each in read[3000].controller_listeners] == [9095]
    assert len({each.log_dirs[0] for each in read.values()}) == 4


def test_a_cluster_keeps_its_id_when_it_is_started_again(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    prepare(members_of(2, "h", 1000, str(folder), {}))
    first = (folder / "1" / "meta.properties").read_text()
    prepare(members_of(3, "h", 1000, str(folder), {}))  # one more broker
    assert (folder / "1" / "meta.properties").read_text() == first
    ids = {
        parse_properties((folder / name / "meta.properties").read_text())["cluster.id"]
        for name in ("controller", "1", "2", "3")
    }
    assert len(ids) == 1


def test_the_data_of_one_broker_is_no_clusters(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    with pytest.raises(InvalidSetting, match="data of one broker"):
        prepare(members_of(2, "h", 1000, str(tmp_path), {}))


@pytest.mark.parametrize(
    ("count", "port", "given", "why"),
    [
        (0, 9092, {}, "from 1 to"),
        (3, 0, {}, "has to be known"),
        (3, 65_534, {}, "has to be known"),
        (3, 9092, {"node.id": "1", "log.dirs": "/a"}, "says log.dirs, node.id itself"),
    ],
)
def test_what_cannot_be_is_refused(count: int, port: int, given: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidSetting, match=why):
        members_of(count, "h", port, "/d", given)


def test_options_of_one_broker_do_not_go_with_several() -> None:
    outcome = CliRunner().invoke(command, ["--brokers", "3", "--memory"])
    assert outcome.exit_code == 2
    assert "--brokers goes with no --memory" in outcome.output
