"""The picture of an audit: rows per ten minutes and tier, and latency, as PNG or SVG.

Owns the drawing; needs matplotlib, which the extra `plot` brings.
"""

from typing import TYPE_CHECKING

from kafkalite.pipelines.common.running import PipelineError

if TYPE_CHECKING:
    from kafkalite.pipelines.audit import Report


def plot(report: "Report", path: str) -> None:
    """Writes the picture; its kind is told by the name's end."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PipelineError("plotting needs matplotlib: pip install 'kafkalite[plot]'") from None
    figure = Figure(figsize=(10, 6), layout="constrained")
    counts, latency = figure.subplots(2, 1, sharex=True)
    for topic in sorted({each.topic for each in report.buckets}):
        buckets = [each for each in report.buckets if each.topic == topic]
        at = [each.bucket for each in buckets]
        counts.plot(at, [each.broker for each in buckets], marker="o", label=f"{topic} broker")
        counts.plot(at, [each.lake for each in buckets], marker="x", ls="--", label=f"{topic} lake")
        if any(each.producer is not None for each in buckets):
            sent = [each.producer for each in buckets]
            counts.plot(at, sent, marker="+", ls=":", label=f"{topic} producers")
        for name in ("p50", "p99"):
            took = [getattr(each, f"latency_{name}_ms") for each in buckets]
            latency.plot(at, took, marker="o", label=f"{topic} {name}")
    counts.set_ylabel("records per 10 min")
    latency.set_ylabel("ms from record to lake")
    counts.legend(fontsize="small")
    latency.legend(fontsize="small")
    figure.autofmt_xdate()
    figure.savefig(path)
