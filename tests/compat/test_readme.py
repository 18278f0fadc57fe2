"""What the README shows works as it stands there, typed by somebody new."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalite.jvm import java

README = Path(__file__).parents[2] / "README.md"
SHOWN_ADDRESS = "localhost:9092"
TIMEOUT_S = 240


def block(name: str) -> str:
    """The code block that is marked with this name."""
    found = re.search(rf"```python {name}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None, f"README.md has no block {name}"
    lines = found[1].strip().splitlines()
    assert len([line for line in lines if line]) <= 12, "ten lines, more or less"
    return found[1]


def run(folder: Path, name: str, bootstrap: str) -> str:
    program = folder / "program.py"
    program.write_text(block(name).replace(SHOWN_ADDRESS, bootstrap), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)], cwd=folder, env=java.environment(),
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_kafka_python(broker, tmp_path) -> None:
    said = run(tmp_path, "kafka-python", broker.bootstrap)
    assert "b'hello 0'" in said
    assert "b'hello 9'" in said


def test_aiokafka(broker, tmp_path) -> None:
    assert "something happened" in run(tmp_path, "aiokafka", broker.bootstrap)


@pytest.mark.timeout(TIMEOUT_S)
def test_spark(broker, tmp_path) -> None:
    total = sum(number * number for number in range(1000))
    said = run(tmp_path, "spark", broker.bootstrap)
    assert int(said.split()[-1]) % total == 0


def test_pytest(tmp_path) -> None:
    (tmp_path / "test_orders.py").write_text(block("pytest"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", str(tmp_path)], cwd=tmp_path,
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
