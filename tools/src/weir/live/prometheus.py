# SPDX-License-Identifier: BSD-3-Clause
"""Counters of the running programs in Prometheus's text format 0.0.4.

Names have base units: seconds, bytes. What a program does not know is absent, never 0. Counters
start anew with the measurements (`weir ctl measure`, the end of the warm-up), as Prometheus expects
of one that restarts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weir.live.sample import Frame, Row, Sample

Labels = Mapping[str, str]
Point = tuple[str, Labels, float]  # the end of its name, labels, value


@dataclass(frozen=True)
class Metric:
    """A number of each row of a sample's table; `scale` of its units are one of the name's."""

    name: str
    table: str
    key: str
    help: str
    scale: float = 1
    label: tuple[str, str] | None = None  # one more, of several numbers with one name

    @property
    def kind(self) -> str:
        return "counter" if self.name.endswith("_total") else "gauge"


NS = 1_000_000_000
BIT = 8
LABELS = {"cores": "lcore", "ports": "port", "paths": "path", "links": "link", "groups": "group"}
METRICS = (
    Metric("run_elapsed_seconds", "info", "elapsed_ns", "Since the run began.", NS),
    Metric("run_duration_seconds", "info", "duration_ns", "How long the run is to be.", NS),
    Metric("lcore_busy_seconds_total", "cores", "busy_ns", "Time with packets to move.", NS),
    Metric("lcore_iterations_total", "cores", "iterations", "Iterations of the lcore's loop."),
    Metric("port_up", "ports", "up", "1 if the port's link is up."),
    Metric("port_received_packets_total", "ports", "rx_pkts", "Frames received."),
    Metric("port_received_bytes_total", "ports", "rx_bytes", "Bytes received, with FCS."),
    Metric("port_sent_packets_total", "ports", "tx_pkts", "Frames sent."),
    Metric("port_sent_bytes_total", "ports", "tx_bytes", "Bytes sent, with FCS."),
    *(
        Metric(
            "port_dropped_packets_total", "ports", key, "Not sent or received, by reason.", 1,
            ("reason", key),
        )
        for key in ("tx_dropped", "no_mbuf")
    ),
    Metric("path_received_bytes_total", "paths", "in_bytes", "Bytes that entered the path."),
    Metric("path_sent_bytes_total", "paths", "out_bytes", "Bytes that left the path."),
    Metric("path_inside_packets", "paths", "inside_pkts", "Packets in the path now."),
    Metric("link_sent_bytes_total", "links", "out_bytes", "Bytes that left the link."),
    Metric("link_dropped_packets_total", "links", "drops", "Dropped by the link's queue."),
    Metric("link_marked_packets_total", "links", "marks", "Marked CE by the link's queue."),
    Metric("link_queue_packets", "links", "queue_pkts", "In the link's queue now."),
    Metric("link_queue_bytes", "links", "queue_bytes", "In the link's queue now."),
    Metric("link_rate_bytes_per_second", "links", "rate_bps", "The link's rate now.", BIT),
    Metric("group_acked_bytes_total", "groups", "acked_bytes", "Acknowledged to its flows."),
    Metric("group_retransmits_total", "groups", "retransmits", "Segments sent again."),
    Metric("group_timeouts_total", "groups", "timeouts", "Retransmission timeouts."),
    *(
        Metric("group_flows", "groups", key, "Its flows, by state.", 1, ("state", key))
        for key in ("waiting", "open", "done", "failed")
    ),
    Metric("group_rtt_seconds", "groups", "srtt_mean_ns", "Mean smoothed RTT of open flows.", NS),
    Metric("group_cwnd_segments", "groups", "cwnd_mean_segs", "Mean window of open flows."),
    Metric("group_pacing_bytes_per_second", "groups", "pacing_bps", "Of all its flows.", BIT),
)  # fmt: skip
MEASURED = ("srtt_mean_ns", "cwnd_mean_segs")  # of flows that have measured; 0 without any
POSITIVE = ("pacing_bps", "rate_bps", "duration_ns")  # 0 says that there is none


def text(samples: Sequence[Sample], frame: Frame) -> str:
    """Returns all metrics of the programs, or of a sweep."""
    lines: list[str] = []
    said = set()
    for metric in METRICS:
        points = [point for sample in samples for point in points_of(metric, sample)]
        if points and metric.name not in said:
            said.add(metric.name)
            lines += head(metric.name, metric.help, metric.kind)
        lines += [line(metric.name, labels, value) for labels, value in points]
    lines += drops(samples)
    for sweep in frame.get("sweeps", []):
        lines += of_sweep(sweep)
    return "".join(f"{one}\n" for one in lines)


def points_of(metric: Metric, sample: Sample) -> Iterator[tuple[Labels, float]]:
    """Yields a metric's number in each row that knows it."""
    rows = {"": sample.info} if metric.table == "info" else getattr(sample, metric.table)
    for key, row in rows.items():
        value = known(metric.key, row)
        if value is not None:
            labels = {"program": sample.name, "prefix": sample.prefix}
            if metric.table in LABELS:
                labels[LABELS[metric.table]] = str(row.get("name", key))
            yield labels | dict([metric.label] if metric.label else []), value / metric.scale


def known(key: str, row: Row) -> float | None:
    """Returns a row's number; None: it does not know it."""
    if key not in row or (key in MEASURED and not row["measured"]):
        return None
    value = float(row[key])
    return None if key in POSITIVE and value == 0 else value


def drops(samples: Sequence[Sample]) -> Iterator[str]:
    """Yields what paths have dropped, by the reasons that each knows."""
    name = "path_dropped_packets_total"
    if any(sample.paths for sample in samples):
        yield from head(name, "Dropped in the path, by reason.", "counter")
    for sample in samples:
        for key, path in sample.paths.items():
            labels = {
                "program": sample.name,
                "prefix": sample.prefix,
                "path": path.get("name", key),
            }
            for reason in (one for one in path if one.startswith("drop_")):
                more = {"reason": reason.removeprefix("drop_")}
                yield line(name, labels | more, float(path[reason]))


def of_sweep(row: Row) -> Iterator[str]:
    """Yields the lines of a sweep: its cells by status, and the time that is left."""
    labels = {"sweep": row["name"]}
    yield from head("sweep_planned_cells", "All cells of the sweep.", "gauge")
    yield line("sweep_planned_cells", labels, row["cells"])
    yield from head("sweep_cells", "Cells by what became of them.", "gauge")
    for status in ("done", "reused", "failed", "running"):
        if row[status] is not None:
            yield line("sweep_cells", labels | {"status": status}, row[status])
    if row["left_ns"] is not None:
        yield from head("sweep_left_seconds", "An estimate.", "gauge")
        yield line("sweep_left_seconds", labels, row["left_ns"] / NS)


def head(name: str, help_: str, kind: str) -> list[str]:
    return [f"# HELP weir_{name} {help_}", f"# TYPE weir_{name} {kind}"]


def line(name: str, labels: Labels, value: float) -> str:
    said = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
    return f"weir_{name}{{{said}}} {value!r}"


def escaped(text: str) -> str:
    """Returns a label's value with what cannot stand between quotation marks escaped."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
