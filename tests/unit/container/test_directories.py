"""Where a container keeps its data, by what is mounted in it."""

import pytest

from kafkalite.container.directories import DEFAULT, data_directory, mounted, outlives, warning

NAMELESS = "b5a8" * 16


def table(**mounts: str) -> str:
    """A mountinfo with these places, and what an engine mounts beside them."""
    rows = {"/": "/", "/proc": "/", "/etc/hosts": f"/containers/{NAMELESS}/hosts"}
    rows |= {place.replace("_", "/"): source for place, source in mounts.items()}
    return "".join(
        f"{number} 1 0:{number} {source} {place} rw,relatime - ext4 /dev/vda rw\n"
        for number, (place, source) in enumerate(rows.items(), 30)
    )


@pytest.mark.parametrize(
    ("mounts", "directory"),
    [
        ({}, DEFAULT),
        ({"_var_lib_kafka_data": f"/docker/volumes/{NAMELESS}/_data"}, DEFAULT),
        ({"_var_lib_kafka_data": "/docker/volumes/sentry-kafka/_data"}, "/var/lib/kafka/data"),
        ({"_bitnami_kafka": "/docker/volumes/a/_data"}, "/bitnami/kafka/data"),
        ({"_bitnami": "/docker/volumes/a/_data"}, "/bitnami/kafka/data"),
        ({"_kafka": "/home/me/kafka"}, "/kafka/logs"),
        ({"_var_lib_kafkalite": "/home/me/kafka"}, "/var/lib/kafkalite"),
        (
            {
                "_var_lib_kafka_data": f"/docker/volumes/{NAMELESS}/_data",
                "_var_lib_kafka": "/docker/volumes/akhq/_data",
            },
            "/var/lib/kafka/logs",
        ),
        (
            {"_kafka": "/home/me/kafka", "_bitnami_kafka": "/docker/volumes/a/_data"},
            "/bitnami/kafka/data",
        ),
    ],
)
def test_data_lies_in_the_first_place_that_somebody_mounted(
    mounts: dict[str, str], directory: str
) -> None:
    places = mounted(table(**mounts))
    assert data_directory(places) == directory
    lost = warning({"log.dirs": directory}, places)
    named = [source for source in mounts.values() if NAMELESS not in source]
    assert (lost is None) == bool(named)


def test_what_goes_with_the_container_is_named() -> None:
    assert outlives("/data/a", {"/data"})
    assert not outlives("/database", {"/data"})
    assert warning({"log.dirs": "/data/a, /tmp/b"}, {"/data"}) == (
        "data lies in /tmp/b and goes with this container: no volume is mounted there"
    )
