"""Every function that may wait for the disk's sync, and who runs it: never the loop that serves.

The dynamic twin of this table is `broker/test_syncs_are_beside.py`.
"""

import ast
from collections.abc import Container, Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "kafkalite"

# Who waits for the disk to have what was written: by whom each of these is run. What a start or a
# stop does holds up nobody whom this broker serves. The names of those that are run by their
# callers count as syncs themselves.
SYNCS = frozenset(
    "fdatasync forget_now fsync mark_clean replace_file save_checkpoint sync sync_directory"
    " truncate_fully_and_start_at write_now write_synced".split()
)
CALLERS, WORKER, START, STOP = "its callers", "a worker", "a start", "a stop"
LOADING = "a worker; the metadata's log is opened by a start"
CUT = "a start, and a worker where it opens a log"
NEED = "who meets the needs of a cut: the same, or workers of a log that serves, see log/cutting"
WHO_SYNCS: dict[str, str] = {
    "broker/replicas.Replicas.start": START,
    "cli/_members.prepare": START,
    "coordinators/cluster/local_controller.LocalController.write_snapshot": STOP,
    "coordinators/cluster/metadata_log.MetadataLog.begin_epoch": START,
    "coordinators/cluster/metadata_log.MetadataLog.open": START,
    "coordinators/cluster/quorum.Quorum.write_state": CALLERS,
    "coordinators/cluster/snapshots.SnapshotWriter.write": "a worker; a stop",
    "log/checkpoints.stage_offsets": CALLERS,
    "log/checkpoints.write_clean_shutdown": CALLERS,
    "log/checkpoints.write_offsets": CALLERS,
    "log/checkpoints.write_properties": CALLERS,
    "log/cleaning.Pass._synced": WORKER,
    "log/cleaning.Pass._synced.sync": WORKER,
    "log/compaction.Compaction._complete": WORKER,
    "log/directory.LogDirectory._put_in_place": WORKER,
    "log/directory.LogDirectory.lock": START,
    "log/directory.LogDirectory.mark_clean": CALLERS,
    "log/directory.LogDirectory.take": START,
    "log/directory.LogDirectory.write": "a start or a stop; a log that is cut as it is opened",
    "log/directory.LogDirectory.write_later": WORKER,
    "log/flusher.Flusher._sync": WORKER,
    "log/flusher.sync_all": CALLERS,
    "log/forerunners.make_now": CALLERS,
    "log/home.LogHome._remove_all": WORKER,
    "log/interrupted._complete": LOADING,
    "log/interrupted._remove": LOADING,
    "log/interrupted.settle": LOADING,
    "log/loader._Loader._log": LOADING,
    "log/loader._Loader._rebuild_doubtful": LOADING,
    "log/loader._drop_hole": LOADING,
    "log/making.NewLog.make_files": "a worker, where the name was another's; a start",
    "log/manager.LogManager._close_directory": STOP,
    "log/manager.LogManager.create": "tests, which wait for it",
    "log/mover.Mover._replace": WORKER,
    "log/mover.Mover.finish": STOP,
    "log/partition_log.PartitionLog.close": STOP,
    "log/recovery._copy": LOADING,
    "log/recovery._cut": LOADING,
    "log/recovery._discard": LOADING,
    "log/retention_pass.RetentionPass._removed": WORKER,
    "log/truncation.Cut._announcement": NEED,
    "log/truncation.Cut._last.last": NEED,
    "log/truncation.Cut.needs": NEED,
    "log/truncation.meet_all": CUT,
    "log/vacated.Vacated._sync": WORKER,
    "tools/formatting._format": "kafka-storage, which serves nobody",
}


def test_nobody_waits_for_the_disk_on_the_loop() -> None:
    names = SYNCS | {
        name.rpartition(".")[2] for name, who in WHO_SYNCS.items() if who is CALLERS
    }
    found = [
        f"{path.relative_to(PACKAGE).with_suffix('').as_posix()}.{function}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if not {"env", "pipelines", "sim", "testing"} & set(path.relative_to(PACKAGE).parts)
        for function in _callers(names, ast.parse(path.read_text()))
    ]
    assert sorted(set(found)) == sorted(WHO_SYNCS)


def test_who_syncs_is_found() -> None:
    tree = ast.parse(
        "class A:\n"
        "    def b(self):\n"
        "        submit(lambda: self.file.sync())\n"
        "    def c(self):\n"
        "        replace_file(disk, path, data, is_synced=False)\n"
        "        members.sync(state)\n"
        "    def d(self):\n"
        "        submit(partial(disk.sync_directory, path))\n"
    )
    assert list(_callers(SYNCS, tree)) == ["A.b", "A.d"]


def _callers(names: Container[str], tree: ast.AST, inside: str = "") -> Iterator[str]:
    """The functions that call what is called so, or hand it to somebody who does."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from _callers(names, node, f"{inside}{node.name}.")
            continue
        if isinstance(node, ast.Call) and not _waits_for_nothing(node):
            used = (node.func, *node.args)
            if any(getattr(each, "attr", getattr(each, "id", "")) in names for each in used):
                yield inside.rstrip(".")
        yield from _callers(names, node, inside)


def _waits_for_nothing(call: ast.Call) -> bool:
    """A write that is not to last yet, or a member of a group that is synced."""
    is_unsynced = any(
        each.arg == "is_synced" and ast.unparse(each.value) == "False" for each in call.keywords
    )
    return is_unsynced or (ast.unparse(call.func).endswith(".sync") and bool(call.args))
