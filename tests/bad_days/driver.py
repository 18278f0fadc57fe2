"""A driver in a process of its own: runs commands as people call them, and waits at each point.

Owns the points of a run. A line of standard input is a call: `{"words": […], "watch": true}`. With
`watch`, each point is told as `{"point": name}` and waits for a line; a call ends with
`{"exit_code": …, "out": …, "err": …}`. Whoever started it may kill it at any of them.
"""

import functools
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from click.testing import CliRunner

from kafkalite import spark as kafkalite_spark
from kafkalite.cli.pipeline import command
from kafkalite.pipelines import Audit, Replay, reporting
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.lake import Lake
from kafkalite.pipelines.common.running import Batch, StreamJob
from kafkalite.pipelines.common.topic_sink import TopicSink
from tests.bad_days.scene import MIDDLE
from tests.compat.spark_connector import SETTINGS

LOOK_S, MIDDLE_S = 0.003, 20.0


class Line:
    """The line to whoever started this; one point waits at a time."""

    def __init__(self) -> None:
        self._asked = os.fdopen(os.dup(0), encoding="utf-8")
        self._said = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self._turn = threading.Lock()
        self.is_watching = False

    def call(self) -> dict[str, Any] | None:
        line = self._asked.readline()
        return json.loads(line) if line else None

    def say(self, said: dict[str, Any]) -> None:
        self._said.write(json.dumps(said) + "\n")
        self._said.flush()

    def at(self, point: str) -> None:
        with self._turn:
            if self.is_watching:
                self.say({"point": point})
                self._asked.readline()

    def end(self, said: dict[str, Any]) -> None:
        """No point is told after the end of a call."""
        with self._turn:
            self.is_watching = False
            self.say(said)


def install(line: Line, tracker: Any) -> None:
    """Has what pipelines do told, before it is done and after."""
    around(line, Folder, "write", lambda self, name, text: f"note {name}")
    around(line, Lake, "append", lambda self, df, batch, *more: f"table {batch.id}")
    around(line, TopicSink, "_send", lambda self, df: "send")
    around(line, Replay, "rows", lambda self: "rows")
    around(line, Audit, "run", lambda self: "audit")
    around(line, reporting, "to_table", lambda *given: "report")
    run = StreamJob.run

    def observed(self: StreamJob, *given: Any) -> Any:
        self.observe = functools.partial(_observe, line, tracker)
        return run(self, *given)

    StreamJob.run = observed  # type: ignore[method-assign, assignment]


def around(line: Line, owner: Any, method: str, name: Callable[..., str]) -> None:
    inner = getattr(owner, method)

    @functools.wraps(inner)
    def told(*given: Any, **more: Any) -> Any:
        what = name(*given)
        line.at(f"before {what}")
        found = inner(*given, **more)
        line.at(f"after {what}")
        return found

    setattr(owner, method, told)


def _observe(line: Line, tracker: Any, step: str, batch: Batch) -> None:
    line.at(f"{step} {batch.id}")
    if step == "planned" and line.is_watching:
        watch = functools.partial(_tell_of_the_middle, line, tracker)
        threading.Thread(target=watch, daemon=True).start()


def _tell_of_the_middle(line: Line, tracker: Any) -> None:
    """When some tasks of a stage are done and others are not."""
    deadline = time.monotonic() + MIDDLE_S
    while time.monotonic() < deadline and line.is_watching:
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info and 0 < info.numCompletedTasks < info.numTasks:
                line.at(MIDDLE)
                return
        time.sleep(LOOK_S)


def main() -> None:
    line = Line()
    os.dup2(2, 1)  # what the JVM says is no answer
    spark = kafkalite_spark.session(master="local[2]", config=SETTINGS)
    tracker: Any = spark.sparkContext.statusTracker()
    install(line, tracker)
    line.say({})
    while (call := line.call()) is not None:
        line.is_watching = call["watch"]
        done = CliRunner().invoke(command, call["words"])
        error = "" if isinstance(done.exception, SystemExit | None) else repr(done.exception)
        line.end({"exit_code": done.exit_code, "out": done.stdout, "err": done.stderr + error})


if __name__ == "__main__":
    main()
