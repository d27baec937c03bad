# SPDX-License-Identifier: BSD-3-Clause
"""A run as a data file of flent, format version 4, which flent 1.0 and later read.

A series is a flow, by flent's name for it, so that flent's own plots of the test find it:

| in the config | series | unit |
|---|---|---|
| a group with a name of flent's, `TCP upload BE` | that name; of several flows `NAME::1` ... | |
| a group of another name | `TCP upload::1`, `::2` ..., over all such groups | Mbit/s |
| such a group that pings (analysis/latency.py) | `Ping (ms) GROUP` | ms |
| a group named `VoIP`, where packets were recorded | `VoIP::delay`, one way | ms |
| other groups of UDP | `UDP GROUP` | Mbit/s |

`results` has a value for each interval of the run, null where there was none; `raw_values` each
interval's goodput, each ping and each datagram as they were recorded. Averages and sums are added
as flent adds them. The test (`NAME`) is the word before the colon of the config's title if flent
has such a test (configs/flent), else tcp_nup.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

from weir.analysis import latency, metrics, routes, summary
from weir.analysis.folder import Run
from weir.base.errors import UserError

VERSION = 4
TESTS = ("rrul", "rrul_be", "tcp_nup", "tcp_ndown", "rtt_fair", "voip")
WORDS = ("TCP upload", "TCP download", "Ping (ms)", "VoIP")
FORMAT_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True)
class Series:
    """Measurements of a flow: times in s from the start, and values."""

    name: str
    unit: str
    time_s: Sequence[float]
    value: Sequence[float]


def write(run: Run, path: Path, flows: Sequence[int]) -> None:
    """Writes the file. UserError: no intervals were recorded."""
    path.write_text(json.dumps(document(run, flows)) + "\n", encoding="utf-8")


def document(run: Run, flows: Sequence[int]) -> dict[str, object]:
    """Returns the content of the file."""
    interval = run.frame("interval")
    if interval is None:
        raise UserError(f"{run.path}: no intervals were recorded (telemetry.level), only a summary")
    if flows:
        interval = interval.filter(pl.col("flow_id").is_in(list(flows)))
    step_s = metrics.step_ns(interval) / metrics.NS_PER_S
    last_s = float(interval["ts_ns"].to_numpy().max()) / metrics.NS_PER_S
    ends = np.arange(1, round(last_s / step_s) + 1)
    found = series(run, interval, flows)
    results = {one.name: on_grid(one, ends.size, step_s) for one in found}
    start = started(run)
    return {
        "version": VERSION,
        "metadata": metadata(run, found, start, step_s, ends.size * step_s),
        "x_values": [round(float(n) * step_s, 9) for n in ends],
        "results": results | totals(results),
        "raw_values": {one.name: raw(one, start.timestamp()) for one in found},
    }


def series(run: Run, interval: pl.DataFrame, flows: Sequence[int]) -> list[Series]:
    """Returns a series for each flow that has records, in the order of flows."""
    rated = metrics.with_rates(interval)
    names = series_names(run, rated)
    answered = latency.pings(run)
    found = []
    for flow, name in names.items():
        own = rated.filter(pl.col("flow_id") == flow).sort("ts_ns")
        if name.startswith("Ping"):
            took = answered.filter(pl.col("flow_id") == flow)
            times = (took["ts_ns"] / metrics.NS_PER_S).to_list()
            found.append(Series(name, "ms", times, (took["rtt_ns"] / 1e6).to_list()))
        elif name.startswith("VoIP"):
            found += [one for one in [voip(run, flow, name)] if one is not None]
        else:
            times = (own["ts_ns"] / metrics.NS_PER_S).to_list()
            found.append(Series(name, "Mbits/s", times, (own["goodput_bps"] / 1e6).to_list()))
    return [one for one in found if one.time_s]


def series_names(run: Run, rated: pl.DataFrame) -> dict[int, str]:
    """Returns flent's name of each flow."""
    config = [str(group.get("name", "")) for group in run.config.get("flows") or []]
    names = [group.name for group in run.summary.groups] or config
    pinging = latency.ping_groups(run.config)
    numbered = rated.select("group", "flow_id").unique().sort("flow_id")
    found, uploads = {}, 0
    for group, flow in numbered.iter_rows():
        named = names[group] if group < len(names) else ""
        alike = numbered.filter(pl.col("group") == group)["flow_id"].to_list()
        number = f"::{alike.index(flow) + 1}" if len(alike) > 1 else ""
        if named.startswith(WORDS):
            found[flow] = named + number
        elif group in pinging:
            found[flow] = f"Ping (ms) {named}{number}"
        elif latency.source(run.config, group) == "udp":
            found[flow] = f"UDP {named}" + number
        else:
            uploads += 1
            found[flow] = f"TCP upload::{uploads}"
    return found


def voip(run: Run, flow: int, name: str) -> Series | None:
    """Returns the delay of each datagram, one way; None: packets were not recorded."""
    delays = latency.one_way(run, flow)
    if delays.height == 0:
        return None
    times = (delays["ts_ns"] / metrics.NS_PER_S).to_list()
    return Series(f"{name}::delay", "ms", times, (delays["delay_ns"] / 1e6).to_list())


def on_grid(one: Series, count: int, step_s: float) -> list[float | None]:
    """Returns the mean of the values in each interval; null where there is none."""
    places = np.ceil(np.asarray(one.time_s) / step_s - 1e-6).astype(int) - 1
    inside = (places >= 0) & (places < count)
    sums = np.bincount(places[inside], np.asarray(one.value)[inside], minlength=count)
    counts = np.bincount(places[inside], minlength=count)
    return [s / n if n else None for s, n in zip(sums.tolist(), counts.tolist(), strict=True)]


def totals(results: Mapping[str, Sequence[float | None]]) -> dict[str, list[float | None]]:
    """Returns what flent's tests compute of their series: averages, and sums of rates."""
    made = {}
    for prefix in ("TCP upload", "TCP download", "Ping (ms)"):
        columns = [values for name, values in results.items() if name.startswith(prefix)]
        if columns:
            known = [[v for v in row if v is not None] for row in zip(*columns, strict=True)]
            made[f"{prefix} avg"] = [sum(row) / len(row) if row else None for row in known]
            if prefix != "Ping (ms)":
                made[f"{prefix} sum"] = [sum(row) if row else None for row in known]
    both = [made[name] for name in ("TCP upload sum", "TCP download sum") if name in made]
    if both:
        rows = [[v for v in row if v is not None] for row in zip(*both, strict=True)]
        made["TCP totals"] = [sum(row) if row else None for row in rows]
    return made


def raw(one: Series, start_s: float) -> list[dict[str, float]]:
    pairs = zip(one.time_s, one.value, strict=True)
    return [{"t": start_s + at, "val": value} for at, value in pairs]


def started(run: Run) -> datetime:
    """Returns when the run began: in virtual time, when its program did."""
    if run.start_utc_ns:
        return datetime.fromtimestamp(run.start_utc_ns / 1e9, UTC)
    return (run.manifest.started_utc or datetime.fromtimestamp(0, UTC)).astimezone(UTC)


def test_name(run: Run) -> str:
    word = str(run.config.get("title") or "").partition(":")[0].strip()
    return word if word in TESTS else "tcp_nup"


def file_name(run: Run) -> str:
    return f"{test_name(run)}-{run.path.resolve().name}.flent"


def metadata(
    run: Run, found: Sequence[Series], start: datetime, step_s: float, length_s: float
) -> dict[str, object]:
    """Returns the metadata that flent writes of a test."""
    name, label = test_name(run), run.path.resolve().name
    time = start.strftime(FORMAT_TIME)
    streams = {
        f"{way}_streams": str(sum(one.name.startswith(f"TCP {way}") for one in found))
        for way in ("upload", "download")
    }
    return {
        "NAME": name,
        "TITLE": label,
        "TIME": time,
        "T0": time,
        "LENGTH": round(length_s),
        "TOTAL_LENGTH": round(length_s),
        "STEP_SIZE": step_s,
        "HOST": "receiver",
        "HOSTS": ["receiver"] * (4 if name == "rtt_fair" else 1),
        "LOCAL_HOST": "sender",
        "IP_VERSION": 6 if any(routes.is_ipv6(run.config)) else 4,
        "TEST_PARAMETERS": streams,
        "NOTE": f"weir {run.summary.version or ''}, seed {summary.seed(run.summary)}",
        "DATA_FILENAME": file_name(run),
        "SERIES_META": {one.name: {"UNITS": one.unit} for one in found},
    }
