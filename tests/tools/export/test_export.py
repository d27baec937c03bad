# SPDX-License-Identifier: BSD-3-Clause
"""weir export: what other programs read is what was recorded."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter

import jsonschema
import numpy as np
import polars as pl
import pyarrow.parquet
import pytest
import synthetic
import weir
from weir.analysis import qlog as qlog_reader
from weir.analysis.run_summary import RunSummary
from weir.export import qlog

CONFIG = """\
seed: 3
duration: 3s
paths:
  forward:
    - loss: {rate: 1%}
    - link: {rate: 10Mbit, queue: {fifo: {limit: 20p}}}
    - delay: {delay: 5ms}
  reverse:
    - link: {rate: 1Mbit, queue: {fifo: {limit: 100p}}}
    - delay: {delay: 5ms}
flows:
  - {count: 2, cc: cubic}
  - {count: 1, cc: bbr, start: 500ms, source: {size: {bytes: 200kB}}}
telemetry: {level: 3, interval: 100ms}
"""

# draft-ietf-quic-qlog-main-schema-03, sections 3 to 7, and what of QUIC's events TCP has
# (draft-ietf-quic-qlog-quic-events-02, sections 5 and 7).
TEXT, NUMBER, COUNT = {"type": "string"}, {"type": "number"}, {"type": "integer", "minimum": 0}


def shape(required, **optional):
    """A JSON object with these members and no others."""
    members = {**required, **optional}
    return {
        "type": "object",
        "properties": members,
        "required": list(required),
        "additionalProperties": False,
    }


HEADER = shape(
    {
        "qlog_version": {"const": "0.3"},
        "qlog_format": {"const": "JSON-SEQ"},
        "trace": shape(
            {},
            title=TEXT,
            description=TEXT,
            common_fields=shape(
                {},
                time_format={"enum": ["absolute", "delta", "relative"]},
                reference_time=NUMBER,
                protocol_type={"type": "array", "items": TEXT, "minItems": 1},
                group_id=TEXT,
            ),
            vantage_point=shape(
                {"type": {"enum": ["client", "server", "network", "unknown"]}}, name=TEXT, flow=TEXT
            ),
        ),
    },
    title=TEXT,
    description=TEXT,
)
PACKET = shape({"packet_type": {"enum": ["1RTT"]}, "packet_number": COUNT})
PORT = {"type": "integer", "minimum": 0, "maximum": 65535}
CLOSES = {"enum": ["clean", "error", "idle_timeout"]}
DATA = {
    "connectivity:connection_started": shape(
        {"src_ip": {"format": "ipv4"}, "dst_ip": {"format": "ipv4"}},
        ip_version={"enum": ["v4", "v6"]},
        protocol=TEXT,
        src_port=PORT,
        dst_port=PORT,
    ),
    "connectivity:connection_closed": shape({}, trigger=CLOSES),
    "recovery:metrics_updated": shape(
        {},
        congestion_window=COUNT,
        bytes_in_flight=COUNT,
        packets_in_flight=COUNT,
        smoothed_rtt=NUMBER,
        min_rtt=NUMBER,
        latest_rtt=NUMBER,
        pacing_rate=COUNT,
    ),
    "recovery:congestion_state_updated": shape({"new": TEXT}, old=TEXT, trigger=TEXT),
    "transport:packet_sent": shape({"header": PACKET}, raw=shape({}, length=COUNT)),
    "recovery:packet_lost": shape({"header": PACKET}, reason=TEXT),
}
BEFORE_OR_AFTER = {"type": ["number", "string"]}  # a mode's name
OWN = shape({"before": BEFORE_OR_AFTER, "value": BEFORE_OR_AFTER, "detail": COUNT})


@pytest.fixture(scope="module")
def run(tmp_path_factory, weir_sim):
    folder = tmp_path_factory.mktemp("export")
    (folder / "x.yaml").write_text(CONFIG)
    return weir.run(folder / "x.yaml", out=folder / "run")


@pytest.mark.parametrize("to", ["parquet", "csv"])
def test_tables_read_back_equal(run, tmp_path, to):
    files = weir.export.write(run, to, tmp_path)
    assert len(files) == len(run.streams) == len(list(tmp_path.iterdir()))
    for stream, file in zip(run.streams, files, strict=True):
        frame = run.stream(stream).to_polars()
        if to == "parquet":
            assert pl.read_parquet(file).equals(frame)
            schema = pyarrow.parquet.read_schema(file)
            assert schema.field("ts_ns").metadata[b"unit"] == b"ns"
            meta = pyarrow.parquet.read_metadata(file)
            assert meta.num_rows == 0 or meta.row_group(0).column(0).compression == "ZSTD"
        else:
            assert file.name == f"{stream}.csv"  # a spreadsheet opens it
            assert file.read_text().startswith(f"{frame.columns[0]},") or '"' in file.read_text()
            assert pl.read_csv(file, schema=frame.schema).equals(frame)


def test_csv_is_compressed_if_asked(run, tmp_path, weir):
    plain = (tmp_path / "plain", tmp_path / "packed")
    for out, options in zip(plain, ((), ("--compress",)), strict=True):
        weir("export", run.path, "--to", "csv", "--stream", "cc", "--out", out, *options).worked()
    packed = tmp_path / "packed/cc.csv.zst"
    assert packed.read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
    assert pl.read_csv(packed).equals(pl.read_csv(tmp_path / "plain/cc.csv"))
    refused = weir("export", run.path, "--to", "parquet", "--compress")
    assert refused.status == 2
    assert "--compress is for CSV" in refused.err


@pytest.mark.slow
def test_chosen_streams_and_flows(run, tmp_path, weir):  # the command, not the module
    done = weir(
        "export", run.path, "--to", "parquet", "--out", tmp_path, "--stream", "cc", "--flow", 1
    ).worked()
    assert done.out.split() == [str(tmp_path / "cc.parquet")]
    chosen = pl.read_parquet(tmp_path / "cc.parquet")
    assert chosen.equals(run.cc.to_polars().filter(pl.col("flow_id") == 1))
    assert chosen.height > 0
    for options, sentence in (
        (["--to", "xml"], "there is no format 'xml'"),
        (["--to", "csv", "--stream", "packet"], "there is no stream 'packet'"),
        (["--to", "csv", "--stream", "arrivals"], "arrivals were not recorded"),
        (["--to", "qlog", "--stream", "cc"], "not written by stream"),
    ):
        failed = weir("export", run.path, *options)
        assert failed.status == 2
        assert sentence in failed.err


def events_of(file):
    """The header and the events of a JSON text sequence (RFC 7464)."""
    lines = file.read_text().split("\x1e")
    assert lines[0] == ""
    assert all(line.endswith("\n") for line in lines[1:])
    header, *events = map(json.loads, lines[1:])
    return header, events


def events_of_all(files):
    """The events of some flows' files, by time."""
    found = [event for file in files for event in events_of(file)[1]]
    return sorted(found, key=lambda event: event["time"])


def test_qlog_is_a_file_for_each_flow(run, tmp_path):
    """A trace is of one connection: tools that read it take a file for one."""
    files = weir.export.write(run, "qlog-0.3", tmp_path)
    flows = sorted({int(flow) for flow in run.flows["flow_id"]})
    assert [file.name for file in files] == [f"flow-{flow}.sqlog" for flow in flows]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    for flow, file in zip(flows, files, strict=True):
        header, events = events_of(file)
        jsonschema.validate(header, HEADER)
        assert header["title"].endswith(f", flow {flow}")
        assert {event["group_id"] for event in events} == {f"flow {flow}"}
        times = [event["time"] for event in events]
        assert times == sorted(times)


def test_qlog_of_more_flows_than_files_may_be_open(run, tmp_path, monkeypatch):
    whole = [file.read_text() for file in weir.export.write(run, "qlog-0.3", tmp_path / "a")]
    monkeypatch.setattr(qlog, "OPEN_MAX", 1)
    assert [
        file.read_text() for file in weir.export.write(run, "qlog-0.3", tmp_path / "b")
    ] == whole


def test_qlog_keeps_to_its_schema(run, tmp_path):
    files = weir.export.write(run, "qlog-0.3", tmp_path)
    assert {file.suffix for file in files} == {".sqlog"}, "by which qvis knows JSON-SEQ"
    events = events_of_all(files)
    for name, schema in DATA.items():
        mine = [event["data"] for event in events if event["name"] == name]
        assert mine, name
        jsonschema.validate(mine, {"type": "array", "items": schema})
    for event in events:
        assert set(event) == {"time", "group_id", "name", "data"}
        if event["name"] not in DATA:
            assert event["name"].startswith("weir:")
            jsonschema.validate(event["data"], OWN)


# draft-ietf-quic-qlog-main-schema-14 and -quic-events of July 2026; tests/tools/qlog_cddl.py checks
# a file against the CDDL of the drafts themselves.
END = shape({}, ip_v4=TEXT, port_v4=PORT, ip_v6=TEXT, port_v6=PORT)
NEWEST_HEADER = shape(
    {
        "file_schema": {"const": "urn:ietf:params:qlog:file:sequential"},
        "serialization_format": {"const": "application/qlog+json-seq"},
        "trace": shape(
            {"event_schemas": {"const": ["urn:ietf:params:qlog:events:quic", "weir:events"]}},
            common_fields=shape(
                {
                    "time_format": {"const": "relative_to_epoch"},
                    "reference_time": shape({"clock_type": {"const": "system"}, "epoch": TEXT}),
                }
            ),
            vantage_point=shape({"type": {"const": "client"}}, name=TEXT),
        ),
    },
    title=TEXT,
    description=TEXT,
)
NEWEST = {
    "quic:connection_started": shape({"local": END, "remote": END}),
    "quic:connection_closed": shape({}, trigger={"enum": ["application", "error", "idle_timeout"]}),
    "quic:recovery_metrics_updated": DATA["recovery:metrics_updated"],
    "quic:congestion_state_updated": DATA["recovery:congestion_state_updated"],
    "quic:packet_sent": DATA["transport:packet_sent"],
    "quic:packet_lost": shape({"header": PACKET}),
}


def test_qlog_of_the_newest_drafts_says_the_same(run, tmp_path):
    old = weir.export.write(run, "qlog-0.3", tmp_path / "old")
    new = weir.export.write(run, "qlog", tmp_path / "new")
    assert [file.name for file in new] == [file.name for file in old]
    for before, after in zip(old, new, strict=True):
        jsonschema.validate(events_of(after)[0], NEWEST_HEADER)
        pairs = list(zip(events_of(before)[1], events_of(after)[1], strict=True))
        for one, other in pairs:
            assert (one["time"], one["group_id"]) == (other["time"], other["group_id"])
            lost = one["name"] == "recovery:packet_lost"
            assert other.get("weir_reason") == (one["data"]["reason"] if lost else None)
    events = events_of_all(new)
    for name in {event["name"] for event in events}:
        mine = [event["data"] for event in events if event["name"] == name]
        schema = NEWEST.get(name, OWN)
        assert name in NEWEST or name.startswith("weir:")
        jsonschema.validate(mine, {"type": "array", "items": schema})
    assert set(NEWEST) <= {event["name"] for event in events}
    phases = [e["data"] for e in events if e["data"].get("trigger") == "cc_mode"]
    changes = {(phase["old"], phase["new"]) for phase in phases}
    assert {("slow_start", "css"), ("recovery", "reno")} <= changes
    assert RunSummary().mode(0, 3) == "mode 3"  # an older run, or one that was killed


def test_qlog_that_is_written_can_be_read(run, tmp_path):
    for form in ("qlog", "qlog-0.3"):
        found = qlog_reader.read(weir.export.write(run, form, tmp_path / form)[0])
        assert (found.by, found.sent > 0, found.lost > 0) == ("client", True, True)
        assert found.min_rtt_ns == pytest.approx(run.cc["rtt_min_ns"].min(), rel=0.5)


def test_qlog_says_what_was_recorded(run, tmp_path):
    events = events_of_all(weir.export.write(run, "qlog-0.3", tmp_path))
    named = Counter(event["name"] for event in events)
    forward = run.summary.ledger.paths["forward"]
    assert named["transport:packet_sent"] == forward.entered.pkts
    assert named["recovery:packet_lost"] == sum(d.pkts for d in forward.drops.values())
    assert set(forward.drops) == {"loss", "queue_full"}
    assert named["recovery:metrics_updated"] == len(run.cc)
    assert named["connectivity:connection_started"] == 3
    assert named["connectivity:connection_closed"] == 1
    metrics = [e for e in events if e["name"] == "recovery:metrics_updated"]
    first = run.cc.records[0]
    assert metrics[0]["group_id"] == f"flow {first['flow_id']}"
    assert metrics[0]["data"]["congestion_window"] == first["cwnd_segs"] * 1448
    assert metrics[0]["data"]["latest_rtt"] == pytest.approx(first["rtt_ns"] / 1e6)
    assert metrics[0]["time"] == pytest.approx(first["ts_ns"] / 1e6)


def test_qlog_of_level_1_has_the_intervals(tmp_path):
    made = weir.open(synthetic.make_run(tmp_path / "run"))
    events = events_of_all(weir.export.write(made, "qlog-0.3", tmp_path))
    metrics = [event["data"] for event in events if event["name"] == "recovery:metrics_updated"]
    assert len(metrics) == len(made.interval)
    jsonschema.validate(metrics[0], DATA["recovery:metrics_updated"])
    assert not any("smoothed_rtt" in one for one in metrics), "intervals do not know it"


def tshark(file, *names):
    argv = ["tshark", "-n", "-r", str(file), "-o", "ip.check_checksum:TRUE", "-T", "fields"]
    argv += [word for name in names for word in ("-e", name)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_every_packet(run, tmp_path):
    (file,) = weir.export.write(run, "pcapng", tmp_path)
    names = ("frame.time_epoch", "frame.len", "frame.interface_name", "ip.src", "ip.dst")
    more = ("tcp.srcport", "tcp.dstport", "ip.id", "ip.checksum.status", "_ws.malformed", "ip.len")
    rows = tshark(file, *names, *more, "frame.comment")
    assert len(rows) == len(run.packets)
    flows = {int(r["flow_id"]): r for r in run.flows.records}
    paths = ("forward", "reverse")
    for row, record in zip(rows, run.packets.records, strict=True):
        seconds, nanoseconds = row[0].split(".")
        assert int(seconds) * 10**9 + int(nanoseconds) == record["ts_ns"]
        assert int(row[1]) == int(row[10]) == record["size_bytes"] - 18
        assert row[2].startswith(paths[record["path"]])
        ports = [str(flows[record["flow_id"]][f"{end}_port"]) for end in ("src", "dst")]
        assert row[5:7] == ports[:: -1 if record["path"] else 1]
        assert int(row[7], 16) == record["pkt_id"] & 0xFFFF
        assert row[8:10] == ["1", ""], "a good checksum; not malformed"
        happened = re.sub(r"^\w+ (link \d )?", "", row[2])
        waits = f"{record['sojourn_ns'] // 1000}.{record['sojourn_ns'] % 1000:03d}"
        assert row[11] == f"{happened}, queue {record['queue_bytes']} B, sojourn {waits} us"
    assert {row[3] for row in rows} == {row[4] for row in rows}
    interfaces = Counter(row[2] for row in rows)
    drops = run.summary.ledger.paths["forward"].drops
    assert interfaces["forward drop loss"] == drops["loss"].pkts
    assert interfaces["forward link 0 drop queue_full"] == drops["queue_full"].pkts


@pytest.mark.slow
@pytest.mark.parametrize("to", ["parquet", "csv", "pcapng"])
def test_memory_does_not_depend_on_the_length(tmp_path, to):
    """Ten million records, 320 MB, with far less memory; two million of pcapng, which is larger."""
    n = 10_000_000 if to != "pcapng" else 2_000_000
    packets = synthetic.empty("packets", n)
    packets["ts_ns"] = np.arange(n)
    packets["size_bytes"], packets["event"] = 1518, 2
    packets["flow_id"] = packets["pkt_id"] = np.arange(n) % 1000
    (tmp_path / "run").mkdir()
    synthetic.write_ring(tmp_path / "run/packets.ring", "packets", packets)
    code = (
        "import pathlib, re, sys, weir\n"
        "run = weir.open(sys.argv[1])\n"
        "weir.export.write(run, sys.argv[2], sys.argv[1])\n"
        "run.packets.percentile('sojourn_ns', 99)\n"
        "status = pathlib.Path('/proc/self/status').read_text()\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', status)[1])\n"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "run"), to]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=280)
    used_kb = int(done.stdout)
    assert used_kb < 600_000
