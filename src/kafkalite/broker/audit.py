"""The audit log: each denial a line of JSON in the file that `kafkalite.audit.log` names.

Owns the lines that wait for a worker, and what is said when they cannot be written. Rotating the
file is not its task: it is opened by its name for each batch. Invariants: the loop waits for no
disk; memory is bounded, and how many lines were left out for that is a line itself.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from typing import Any

from kafkalite.config import BrokerConfig, InvalidSetting
from kafkalite.env import Env
from kafkalite.env.line_file import add
from kafkalite.security.acl import KINDS, OPERATIONS
from kafkalite.server.limits import LimitedLog

SETTING = "kafkalite.audit.log"
MOST_BYTES = 1 << 20
LONGEST_NAME = 1_000


def audit_of(env: Env, config: BrokerConfig, log: LimitedLog) -> AuditLog | None:
    """None where no file is named; raises InvalidSetting for one that cannot be written."""
    path = config.get_optional_str(SETTING)
    if not path:
        return None
    try:
        add(path, b"")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidSetting(f"{SETTING}: {path} cannot be written: {why}") from None
    return AuditLog(env, path, config.node_id, log)


class AuditLog:
    """That of one broker."""

    def __init__(self, env: Env, path: str, node_id: int, log: LimitedLog) -> None:
        self._env, self._path, self._node_id, self._log = env, path, node_id, log
        self._waiting: list[bytes] = []
        self._waiting_bytes = self._left_out = 0
        self._is_writing = False

    def denied(self, principal: str, host: str, operation: int, kind: int, name: str) -> None:
        """Somebody may not do this with what has this name."""
        self._write(
            outcome="denied", principal=_shown(principal), host=host,
            operation=OPERATIONS[operation], resource_type=KINDS[kind], resource=_shown(name),
        )  # fmt: skip

    def stop(self) -> None:
        """Writes what is left, on the loop: nobody is served any more."""
        lines, count = self._taken()
        if lines:
            try:
                add(self._path, lines)
            except OSError as error:
                self._failed(count, error)

    def _write(self, **fields: Any) -> None:
        line = self._line(**fields)
        if self._waiting_bytes + len(line) > MOST_BYTES:
            self._left_out += 1
        else:
            self._waiting.append(line)
            self._waiting_bytes += len(line)
        self._go_on()

    def _line(self, **fields: Any) -> bytes:
        now = datetime.fromtimestamp(self._env.clock.now_ms() / 1000, UTC)
        moment = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return json.dumps({"time": moment, "node": self._node_id, **fields}).encode() + b"\n"

    def _go_on(self) -> None:
        if not self._is_writing and (self._waiting or self._left_out):
            self._is_writing = True
            lines, count = self._taken()
            self._env.background.submit(
                partial(add, self._path, lines), partial(self._written, count)
            )

    def _taken(self) -> tuple[bytes, int]:
        """What is to be written, and how many denials that tells of."""
        lines, self._waiting, self._waiting_bytes = self._waiting, [], 0
        count = len(lines) + self._left_out
        if self._left_out:
            lines.append(self._line(left_out=self._left_out))
            self._left_out = 0
        return b"".join(lines), count

    def _written(self, count: int, outcome: BaseException | None) -> None:
        self._is_writing = False
        if isinstance(outcome, OSError):
            self._failed(count, outcome)
            return  # the next denial tries again
        if outcome is not None:
            raise outcome
        self._go_on()

    def _failed(self, count: int, error: OSError) -> None:
        self._left_out += count
        why = error.strerror or error
        self._log.warn("audit", f"{SETTING}: {count} lines are not in {self._path}: {why}")


def _shown(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
