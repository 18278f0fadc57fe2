"""How a pipeline can end, and with which exit code: one table for all commands.

Owns the codes, their meaning, and the kinds of failure that have a code of their own. Needs no
Spark.
"""

DONE, FAILED, USAGE, DIFFERENT, HELD, STOPPED = 0, 1, 2, 3, 4, 5

MEANINGS = {
    DONE: "done, and what was written is what was read",
    FAILED: "failed: one sentence says why and what to do",
    USAGE: "a wrong call: nothing was read or written",
    DIFFERENT: "records are lost, doubled or not where they should be",
    HELD: "somebody else holds what would be written: nothing was written",
    STOPPED: "a signal ended it before all that lay ahead was done; started again it goes on",
}


# What a record is told of whose schema a registry does not have.
UNKNOWN_SCHEMA = "unknown schema id"


class PipelineError(RuntimeError):
    """A pipeline cannot go on; the message says why and what to do."""

    exit_code = FAILED


class Different(PipelineError):
    """What was compared is not alike."""

    exit_code = DIFFERENT


class HeldElsewhere(PipelineError):
    """Somebody else writes there, or made what is there."""

    exit_code = HELD


def epilog() -> str:
    """The table of exit codes, as `--help` ends with it."""
    rows = "\n".join(f"  {code}  {meaning}" for code, meaning in MEANINGS.items())
    return f"\b\nExit codes:\n{rows}"
