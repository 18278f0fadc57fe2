"""Compaction leaves the bytes that Apache Kafka's own cleaner leaves, transactions and all."""

from __future__ import annotations

import logging
import subprocess
from pathlib import Path
from random import Random

import pytest

from kafkalite.env.disk import read_whole
from kafkalite.jvm import jars, java
from kafkalite.records.batch import DELETE_HORIZON_BIT, iterate_headers
from kafkalite.records.convert import iterate_any
from tests.compat.java_classes import compile_classes
from tests.unit.log.histories import (
    ABORT,
    COMMIT,
    DELETE,
    DELETE_IN_TXN,
    IN_TXN,
    LAST_KEY,
    ROLL,
    WRITE,
    Event,
    Life,
)
from tests.unit.log.making import START_MS, committed

pytestmark = pytest.mark.conformance

SOURCE = Path(__file__).with_name("Cleaning.java")
LIVES = 100
KINDS = {WRITE: 20, DELETE: 8, IN_TXN: 22, DELETE_IN_TXN: 10, COMMIT: 13, ABORT: 13, ROLL: 14}


def test_compaction_leaves_what_apache_kafkas_cleaner_leaves(tmp_path: Path) -> None:
    logging.disable(logging.CRITICAL)
    ours, lines = [], []
    for seed in range(LIVES):
        life, cleaned_to = lived(seed)
        directory = tmp_path / str(seed) / "t-0"
        copy(life, directory)
        lines.append(f"{directory} {cleaned_to}")
        assert life.run_pass()
        ours.append(life)
    logging.disable(logging.NOTSET)
    clean_with_kafka(tmp_path, lines)
    for seed, life in enumerate(ours):
        directory = tmp_path / str(seed) / "t-1"
        life.world.manager.close()
        copy(life, directory)
        assert left_in(directory) == left_in(directory.with_name("t-0")), f"seed {seed}"


def lived(seed: int) -> tuple[Life, int]:
    """A life that ends with nothing open, and up to where it was compacted under way."""
    random, life = Random(seed), Life()
    if seed % 3:
        happen(life, random)
        if seed % 3 == 1:
            end_all(life, random)
        life.happen(Event(ROLL))
        life.run_pass()
    cleaned_to = life.world.manager.periodic.cleaner.cleaned_to(life.log)
    happen(life, random)
    end_all(life, random)
    for event in (Event(WRITE, LAST_KEY), Event(ROLL), Event(WRITE, LAST_KEY)):
        life.happen(event)
    committed(life.world.restart(clean=True))
    return life, cleaned_to


def happen(life: Life, random: Random) -> None:
    for kind in random.choices(list(KINDS), list(KINDS.values()), k=random.randrange(3, 15)):
        event = Event(kind, random.randrange(4), random.randrange(3))
        if kind not in (COMMIT, ABORT) or event.producer in life.open:
            life.happen(event)


def end_all(life: Life, random: Random) -> None:
    for producer in sorted(life.open):
        life.happen(Event(random.choice((COMMIT, ABORT)), 0, producer))


def copy(life: Life, directory: Path) -> None:
    directory.mkdir(parents=True)
    for name in life.world.names():
        data = read_whole(life.world.disk, f"{life.log.directory}/{name}")
        (directory / name).write_bytes(bytes(data))


def clean_with_kafka(folder: Path, lines: list[str]) -> None:
    classes, told = folder / "classes", folder / "lines"
    classes.mkdir()
    told.write_text("\n".join(lines))
    compile_classes([SOURCE], classes, ["reference"])
    class_path = f"{classes}:{jars.class_path('reference')}"
    call = java.command(class_path, "Cleaning", str(told), str(START_MS), heap="256M")
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def left_in(directory: Path) -> list[object]:
    """Every batch but for when its delete horizon is, the transaction indexes, and the names of
    the snapshots below the last segment."""
    found: list[object] = []
    logs = sorted(directory.glob("*.log"))
    for path in logs:
        data = path.read_bytes()
        found.append(path.name)
        for header in list(iterate_headers(data)):
            records = [(r.offset, r.key, r.value) for r in iterate_any(data, header)]
            header.position = 0
            if header.attributes & DELETE_HORIZON_BIT:
                header.crc = header.base_timestamp = header.size = 0
            found.append((header, records))
    found += [path.read_bytes() for path in sorted(directory.glob("*.txnindex"))]
    last = logs[-1].stem
    snapshots = (path.stem for path in directory.glob("*.snapshot"))
    found.append(sorted(stem for stem in snapshots if stem <= last))
    return found
