# SPDX-License-Identifier: BSD-3-Clause
"""Run folders made of numpy alone, for the tests of what reads them.

The layout of records is read from common/telemetry/schema.h: there is no second definition here.
"""

import json
import re
import struct
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
HEADER_SIZE = 4096
SCHEMA_OFFSET = 512
COUNTERS_OFFSET = 128
EPOCH_OFFSET = 384
EPOCH_CLOSED = 1 << 63

_text = re.sub(r"\\\n|//[^\n]*", " ", (ROOT / "common/telemetry/schema.h").read_text())
_values = re.sub(r"\\\n|//[^\n]*", " ", (ROOT / "common/base/pkt.h").read_text()) + _text
_VALUE = re.compile(r'V\(\w+,\s*(\d+),\s*"(\w+)"')
_FIELD = re.compile(r'\b([FN])\(\s*\w+,\s*"([^"]+)",\s*(\w+),\s*"([^"]*)",\s*((?:"[^"]*"\s*)+)\)')
STREAMS = re.findall(r"\bS\((\w+),\s*(\w+)\)", _text)


def fields(stream):
    """(name, dtype, offset, unit, meaning, may be not known) of a stream's fields."""
    upper = dict(STREAMS)[stream]
    body = re.search(rf"#define TEL_{upper}\(F, N\)(.*?)(?=#define|$)", _text, re.S)[1]
    found, offset = [], 0
    for kind, dtype, name, unit, meaning in _FIELD.findall(body):
        text = "".join(re.findall(r'"([^"]*)"', meaning))
        found.append((name, dtype, offset, unit, text, kind == "N"))
        offset += np.dtype(dtype).itemsize
    return found


def values(unit):
    """The numbers of an enum by their names; empty: the unit is none."""
    listed = re.search(rf"E\({unit},\s*(\w+)\)", _text)
    if not listed:
        return {}
    body = re.search(rf"#define {listed[1]}\(V\)(.*?)(?=#define|enum |$)", _values, re.S)[1]
    return {name: int(number) for number, name in _VALUE.findall(body)}


def field_json(field):
    """A field as the schema in a header has it."""
    *described, nullable = field
    found = dict(zip(("name", "dtype", "offset", "unit", "meaning"), described, strict=True))
    if nullable:
        found["unknown"] = int(np.iinfo(found["dtype"]).max)
    named = values(found["unit"])
    return {**found, "values": named} if named else found


def empty(stream, n):
    """n records, all zero."""
    names, formats, offsets, *_ = zip(*fields(stream), strict=True)
    size = offsets[-1] + np.dtype(formats[-1]).itemsize
    layout = {"names": names, "formats": formats, "offsets": offsets, "itemsize": -(-size // 8) * 8}
    return np.zeros(n, np.dtype(layout))


def write_ring(path, stream, records, *, lost=0, gaps=0, closed=True, seed=1, utc=0):
    """A .ring file as a writer leaves it; utc is when its program started, in ns."""
    schema = json.dumps(
        {
            "stream": stream,
            "record_size": records.dtype.itemsize,
            "fields": [field_json(f) for f in fields(stream)],
        }
    ).encode()
    number = [name for name, *_ in STREAMS].index(stream)
    page = bytearray(HEADER_SIZE)
    struct.pack_into(
        "<8sIHHIIQQQQQQ32sIIII", page, 0, b"WEIRTEL1", 0x01020304, 3, HEADER_SIZE,
        records.dtype.itemsize, number, 0, 0, 0, utc, seed, 0, b"", 1, SCHEMA_OFFSET,
        len(schema), 0,
    )  # fmt: skip
    struct.pack_into(
        "<QQQQ", page, COUNTERS_OFFSET, records.size - gaps + lost, records.size, gaps, lost
    )
    struct.pack_into("<QQ", page, EPOCH_OFFSET, EPOCH_CLOSED if closed else 0, int(closed))
    page[SCHEMA_OFFSET : SCHEMA_OFFSET + len(schema)] = schema
    path.write_bytes(bytes(page) + records.tobytes())


def make_run(
    path,
    *,
    groups=(("copa", "copa", 4),),
    seconds=20,
    interval_ms=100,
    rate_bps=100e6,
    base_ms=20.0,
    warmup_s=2,
    level=1,
    seed=1,
    with_summary=True,
):
    """A run that looks like flows that share a link: start-up, convergence, a few losses."""
    path.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    flows = sum(count for *_, count in groups)
    group_of = np.repeat(np.arange(len(groups)), [count for *_, count in groups])
    n = int(seconds * 1000 / interval_ms)
    ts = (np.arange(1, n + 1) * interval_ms * 1_000_000).astype(np.uint64)
    ramp = 1 - np.exp(-np.arange(1, n + 1) * interval_ms / 800)
    fair = 0.965 * rate_bps / flows
    goodput = fair * ramp[:, None] * (1 + 0.08 * rng.standard_normal((n, flows)))
    queue = 1.25 * flows * 2 * (1 + 2 * np.exp(-np.arange(n) * interval_ms / 600))
    queue *= 1 + 0.1 * rng.standard_normal(n)
    delay_ns = queue * 1538 * 8 / rate_bps * 1e9

    interval = empty("interval", n * flows)
    interval["ts_ns"] = np.repeat(ts, flows)
    interval["flow_id"] = np.tile(np.arange(flows), n)
    interval["group"] = np.tile(group_of, n)
    interval["acked_bytes"] = np.maximum(goodput, 0).ravel() * interval_ms / 8000
    interval["delivered_bytes"] = interval["acked_bytes"]
    interval["sent_segs"] = interval["acked_bytes"] // 1448
    interval["rtt_samples"] = interval["sent_segs"]
    rtt = base_ms * 1e6 + delay_ns[:, None] * (1 + 0.2 * rng.standard_normal((n, flows)))
    interval["rtt_mean_ns"] = rtt.ravel()
    interval["rtt_max_ns"] = interval["rtt_mean_ns"] * 1.2
    interval["cwnd_segs"] = (goodput * rtt / 1e9 / 8 / 1448).ravel()
    interval["cwnd_reductions"] = rng.random(n * flows) < 0.002
    write_ring(path / "interval.ring", "interval", interval, seed=seed)

    links = empty("links", n)
    links["ts_ns"] = ts
    links["rate_bps"] = rate_bps
    links["out_bytes"] = rate_bps * 0.985 * ramp * interval_ms / 8000
    links["out_pkts"] = links["out_bytes"] // 1518
    links["queue_mean_pkts"] = queue
    links["queue_max_pkts"] = queue * 1.8
    links["queue_mean_bytes"] = queue * 1518
    links["sojourn_mean_ns"] = delay_ns
    links["sojourn_max_ns"] = delay_ns * 1.8
    links["drops"] = rng.poisson(0.05, n)
    write_ring(path / "links.ring", "links", links, seed=seed)

    events = empty("events", int(interval["cwnd_reductions"].sum()))
    hit = interval[interval["cwnd_reductions"] > 0]
    events["ts_ns"], events["flow_id"], events["group"] = hit["ts_ns"], hit["flow_id"], hit["group"]
    events["event"] = np.where(np.arange(events.size) % 4 == 0, 5, 1)
    write_ring(path / "events.ring", "events", events, seed=seed)

    if level == 3:
        packets = empty("packets", 20_000)
        packets["ts_ns"] = np.linspace(0, seconds * 1e9, packets.size)
        packets["event"] = 1 + np.arange(packets.size) % 2
        packets["sojourn_ns"] = rng.gamma(4, delay_ns.mean() / 4, packets.size)
        write_ring(path / "packets.ring", "packets", packets, seed=seed)

    (path / "config.yaml").write_text(
        f"title: {flows} synthetic flows\n"
        f"seed: {seed}\nduration: {seconds}s\nwarmup: {warmup_s}s\n"
        f"paths:\n  forward:\n  - link: {{rate: {rate_bps:.0f}bit}}\n"
        f"  - delay: {{delay: {base_ms / 2}ms}}\n"
        f"  reverse:\n  - delay: {{delay: {base_ms / 2}ms}}\n"
        f"flows:\n- {{count: {flows}}}\n"
    )
    (path / "manifest.json").write_text(
        json.dumps(
            {
                "program": "weir-sim",
                "version": "1.0.0",
                "commit": "0123abc",
                "seed": seed,
                "config_hash": "89abcdef01234567",
                "command_line": ["weir-sim", "x.yaml"],
                "host": {"name": "here", "cores": 2},
                "clock": "virtual",
                "started_utc": "2026-01-01T00:00:00Z",
            }
        )
    )
    if with_summary:
        summary = make_summary(groups, goodput, links, seconds, level, seed)
        (path / "summary.json").write_text(json.dumps(summary))
    return path


def make_summary(groups, goodput, links, seconds, level, seed):
    """What weir-sim would say of it."""
    rows, first = [], 0
    for name, cc, count in groups:
        part = goodput[:, first : first + count]
        first += count
        rows.append(
            {
                "name": name,
                "cc": cc,
                "flows": count,
                "goodput_bps": float(part.mean(axis=0).sum()),
                "jfi": 0.99,
                "rtt_mean_ns": 21.3e6,
                "retransmits": 7,
                "rtx_overhead": 0.0001,
                "cwnd_reductions": 12,
                "timeouts": 0,
                "drops": 7,
                "acked_bytes": 1_000_000,
            }
        )
    pkts = int(links["out_pkts"].sum())
    account = {
        "balanced": True,
        "duplicated": {"pkts": 0, "bytes": 0},
        "in": {"pkts": pkts + 15, "bytes": (pkts + 15) * 1518},
        "out": {"pkts": pkts, "bytes": pkts * 1518},
        "inside": {"pkts": 8, "bytes": 8 * 1518},
        "drops": {"queue_full": {"pkts": 7, "bytes": 7 * 1518}},
    }
    return {
        "program": "weir-sim",
        "version": "1.0.0",
        "seed": seed,
        "virtual_s": seconds,
        "wall_s": 0.5,
        "digest": "fedcba9876543210",
        "ledger": {"balanced": True, "paths": {"forward": account}},
        "links": {
            "forward": {
                "rate_bps": float(links["rate_bps"][0]),
                "utilisation": 0.985,
                "queue_mean_pkts": float(links["queue_mean_pkts"].mean()),
                "queue_mean_bytes": float(links["queue_mean_bytes"].mean()),
                "queue_mean_ns": float(links["sojourn_mean_ns"].mean()),
                "queue_max_pkts": int(links["queue_max_pkts"].max()),
                "sojourn_p50_ns": 1e6,
                "sojourn_p99_ns": 2e6,
                "sojourn_max_ns": 3e6,
                "sojourn_cdf": [
                    [500_000, 0.25],
                    [1_000_000, 0.6],
                    [2_000_000, 0.99],
                    [3_000_000, 1],
                ],
                "out_pkts": pkts,
                "out_bytes": pkts * 1518,
                "drops": int(links["drops"].sum()),
                "marks": 0,
            }
        },
        "groups": rows,
        "jfi": 0.99,
        "telemetry": {"level": level, "streams": {"interval": {"records": 1, "lost": 0}}},
        "verdict": "ok",
    }


if __name__ == "__main__":
    import sys

    make_run(Path(sys.argv[1]))
