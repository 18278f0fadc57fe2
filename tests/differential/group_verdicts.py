"""What is said to a cell of the table, by a broker over the wire or by one in memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kafkalite.client.wire import NoReply, Wire, decode_response, request_frame
from tests.differential.group_cells import Cell
from tests.differential.group_scene import Line, Scene

PATIENCE_S = 20.0
# Who has no answer by then waits.
WAITING_S = 0.5
ARRIVING_S = 0.1
CLIENT_ID = "table"

Verdict = list[str]


class WireLine:
    """A connection of its own."""

    def __init__(self, host: str, port: int) -> None:
        self._wire = Wire(host, port)
        self._asked: list[tuple[int, int]] = []

    def send(self, request: Any, version: int) -> None:
        self._wire.send(request_frame(request, version, 1, CLIENT_ID))
        self._asked.append((request.API_KEY, version))

    def answer(self, *, must_come: bool) -> Any:
        frame = self._wire.poll(PATIENCE_S if must_come else WAITING_S)
        assert not isinstance(frame, NoReply), frame.value
        assert frame is not None or not must_come, "no answer"
        return None if frame is None else decode_response(frame, *self._asked.pop(0))

    def arrive(self) -> None:
        time.sleep(ARRIVING_S)

    def close(self) -> None:
        self._wire.close()


def judge(
    cell: Cell, open_line: Callable[[], Line], group_id: str, topic: str, topic_id: bytes
) -> Verdict:
    """What went wrong in making the state, what was answered, and how it stands afterwards."""
    scene = Scene(open_line, group_id, topic, topic_id)
    made = [scene.perform(step) for step in cell.making]
    refused = [f"made: {each}" for each in made if each and "NONE" not in each]
    answered = [said for step in cell.acting if (said := scene.perform(step))]
    return [*refused, *answered, *scene.aftermath()]
