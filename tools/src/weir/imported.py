# SPDX-License-Identifier: BSD-3-Clause
"""weir import: a result of flent or of iperf3 as a run folder, for `weir compare`.

What the program has measured is in `summary.json`; what it has not is null. A group is what the
program names: flent's series (`NAME::1`, `NAME::2` are flows of NAME; its sums and averages are
left out), iperf3's streams of one direction, by the name of their congestion control.
"""

from __future__ import annotations

import gzip
import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from weir import __version__, units
from weir.analysis import folder, metrics
from weir.errors import UserError
from weir.summary import total

SCHEMA = 1
FILE_BYTES_MAX = 1 << 30
# What a summary's groups have and these programs may not say.
UNKNOWN = ("jfi", "rtt_mean_ns", "acked_bytes", "sent_segs", "retransmits", "cwnd_reductions")
DERIVED = (" avg", " sum", " totals", " fairness")  # flent computes these of others
MBIT, MS = 1e6, 1e6


def write(file: Path, out: Path, force: bool = False) -> Path:
    """Writes the folder, and returns it. UserError: the file is neither, or the folder is there."""
    found = summary(file)
    if out.exists() and not force:
        raise UserError(f"{out}: is there: choose another --out, or --force replaces it")
    if folder.is_run(out):
        folder.clear(out)
    out.mkdir(parents=True, exist_ok=True)
    manifest = {key: found[key] for key in ("kind", "program", "version", "title")}
    folder.write_whole(out / folder.MANIFESTS[0], json.dumps(manifest, indent=1) + "\n")
    folder.write_whole(out / "summary.json", json.dumps(found, indent=1) + "\n")
    return out


def summary(file: Path) -> dict[str, Any]:
    """What a summary says of it."""
    given = read(file)
    if isinstance(given.get("metadata"), dict) and isinstance(given.get("results"), dict):
        program, length_s, groups = flent(given, file)
    elif isinstance(given.get("start"), dict) and isinstance(given.get("end"), dict):
        program, length_s, groups = iperf3(given, file)
    else:
        raise UserError(f"{file}: neither a data file of flent nor the JSON of iperf3 (-J)", 1)
    if not groups:
        raise UserError(f"{file}: {program} has measured nothing in it", 1)
    return {
        "schema": SCHEMA,
        "kind": "import",
        "program": program,
        "version": __version__,
        "title": file.name,
        "wall_s": length_s,
        "verdict": None,  # nobody has judged it
        "verdicts": [],
        "groups": groups,
        "telemetry": {"level": 0, "streams": {}},
    }


def read(file: Path) -> dict[str, Any]:
    """The JSON of a file, also of one that is packed with gzip."""
    try:
        with file.open("rb") as opened:
            packed = opened.read(2) == b"\x1f\x8b"
        with gzip.open(file) if packed else file.open("rb") as opened:
            text = opened.read(FILE_BYTES_MAX + 1)
        if len(text) > FILE_BYTES_MAX:
            raise UserError(f"{file}: more than {FILE_BYTES_MAX >> 30} GiB", 1)
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{file}:{error.lineno}: not JSON: {error.msg}", 1) from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text, or cut off"
        raise UserError(f"{file}: cannot be read: {reason}", 1) from None
    if not isinstance(value, dict):
        raise UserError(f"{file}: not a JSON object", 1)
    return value


def group(name: str, cc: str | None, flows: int, **known: float | None) -> dict[str, Any]:
    """A group of a summary; what is not known is null."""
    unknown: dict[str, Any] = dict.fromkeys(("goodput_bps", *UNKNOWN))
    return {"name": name, "cc": cc, "flows": flows, **unknown, **known}


def mean(values: Iterable[Any]) -> float | None:
    """Of those that are numbers."""
    known = [one for value in values if (one := units.known(value)) is not None]
    return statistics.fmean(known) if known else None


def flent(given: dict[str, Any], file: Path) -> tuple[str, float, list[dict[str, Any]]]:
    """A data file of format version 2 to 4: rates in Mbit/s, times in ms."""
    version = given.get("version")
    if not isinstance(version, int) or not 2 <= version <= 4:
        raise UserError(f"{file}: flent's format version {version}; 2, 3 and 4 can be read", 1)
    raw = given.get("raw_values")
    raw = raw if isinstance(raw, dict) else {}
    alike: dict[str, list[str]] = {}
    for series in given["results"]:
        if not series.endswith(DERIVED):
            alike.setdefault(series.partition("::")[0], []).append(series)
    groups = []
    for name, each in alike.items():
        values = [mean(values_of(given["results"][series])) for series in each]
        known = [value for value in values if value is not None]
        if not known:
            continue
        if name.startswith("TCP"):
            rates = [value * MBIT for value in known]
            rtts = mean(point.get("tcp_rtt") for s in each for point in values_of(raw.get(s)))
            more = {"jfi": metrics.jfi(rates), "rtt_mean_ns": None if rtts is None else rtts * MS}
            groups.append(group(name, None, len(each), goodput_bps=sum(rates), **more))
        elif name.startswith("Ping"):
            rtt = statistics.fmean(known) * MS
            groups.append(group(name, None, len(each), rtt_mean_ns=rtt))
    ends = [
        end for value in values_of(given.get("x_values")) if (end := units.known(value)) is not None
    ]
    return "flent", max(ends, default=0.0), groups


def values_of(value: Any) -> list[Any]:
    """A list as it is; of anything else none."""
    return value if isinstance(value, list) else []


def iperf3(given: dict[str, Any], file: Path) -> tuple[str, float, list[dict[str, Any]]]:
    """What `iperf3 -J` prints at the client; of both directions, two groups."""
    if said := given.get("error"):
        raise UserError(f"{file}: iperf3 failed: {said}", 1)
    end, test = given["end"], given["start"].get("test_start") or {}
    streams = [one for one in values_of(end.get("streams")) if isinstance(one, dict)]
    udp = str(test.get("protocol", "TCP")).upper() == "UDP"
    cc = "udp" if udp else str(end.get("sender_tcp_congestion") or "tcp")
    groups = []
    for sends in (True, False):
        own = [one for one in streams if sender(one) == sends]
        if own:
            groups.append(streams_group(cc if sends else f"{cc}, to the client", cc, own, udp))
    return "iperf3", units.known(test.get("duration")) or 0.0, groups


def sender(stream: dict[str, Any]) -> bool:
    """Whether the client is the one that sends."""
    said = stream.get("sender") or stream.get("udp") or {}
    return bool(said.get("sender", True))


def streams_group(name: str, cc: str, streams: list[dict[str, Any]], udp: bool) -> dict[str, Any]:
    """The streams of one direction; a stream's goodput is what its receiver has counted."""
    ends = ("udp", "udp") if udp else ("sender", "receiver")
    sent, received = ([one.get(which) or {} for one in streams] for which in ends)
    rates = [units.known(one.get("bits_per_second")) for one in received]
    known = [rate for rate in rates if rate is not None]
    rtt = mean(value for one in sent if (value := units.known(one.get("mean_rtt"))))
    return group(
        name,
        cc,
        len(streams),
        goodput_bps=sum(known) if len(known) == len(rates) else None,
        jfi=metrics.jfi(known) if len(known) == len(rates) else None,
        rtt_mean_ns=None if rtt is None else rtt * 1e3,  # iperf3 has microseconds
        retransmits=total(sent, "retransmits"),
        acked_bytes=total(received, "bytes"),
    )
