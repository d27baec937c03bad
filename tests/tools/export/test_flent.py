# SPDX-License-Identifier: BSD-3-Clause
"""flent's data files: what is written is what was recorded, and flent and `weir import` read it."""

import gzip
import json
import subprocess

import numpy as np
import pytest
import weir
from synthetic import ROOT
from weir.analysis import folder, imported, labels, model, run_summary, summary
from weir.base import units
from weir.base.errors import UserError
from weir.export import flent
from weir.report import page

IPERF3 = {
    "start": {"test_start": {"protocol": "TCP", "duration": 10}},
    "end": {
        "streams": [
            {
                "sender": {"retransmits": 3, "mean_rtt": 20000, "sender": True},
                "receiver": {"bytes": 1000, "bits_per_second": 6e6, "sender": True},
            },
            {
                "sender": {"retransmits": 4, "mean_rtt": 30000, "sender": True},
                "receiver": {"bytes": 3000, "bits_per_second": 2e6, "sender": True},
            },
            {
                "sender": {"sender": False},
                "receiver": {"bytes": 5000, "bits_per_second": 5e6, "sender": False},
            },
        ],
        "sender_tcp_congestion": "cubic",
    },
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A short rrul of less than a second of processor time."""
    out = tmp_path_factory.mktemp("flent") / "short"
    overrides = {"duration": "8s", "telemetry.interval": "200ms"}
    return weir.run(ROOT / "configs/flent/rrul.yaml", overrides=overrides, out=out)


@pytest.fixture(scope="module")
def document(run):
    return flent.document(run, ())


def test_a_file_has_the_members_of_format_version_4(document):
    assert set(document) == {"version", "metadata", "x_values", "results", "raw_values"}
    assert document["version"] == 4
    assert document["metadata"]["NAME"] == "rrul"
    assert document["x_values"] == pytest.approx(np.arange(1, 41) * 0.2)
    assert {len(values) for values in document["results"].values()} == {40}


def test_its_series_are_those_of_flents_test(document):
    ways = [f"TCP {way} {mark}" for way in ("upload", "download") for mark in RRUL]
    pings = ["Ping (ms) UDP EF", "Ping (ms) UDP BK", "Ping (ms) UDP BE", "Ping (ms) ICMP"]
    assert sorted(document["raw_values"]) == sorted([*ways, *pings])
    derived = {"TCP upload avg", "TCP upload sum", "TCP download avg", "TCP download sum"}
    derived |= {"TCP totals", "Ping (ms) avg"}
    assert set(document["results"]) - set(document["raw_values"]) == derived


RRUL = ("BE", "BK", "CS5", "EF")


def test_its_rates_are_those_of_the_run(run, document):
    """Delivered bytes of the flow, in all intervals."""
    interval = run.interval.to_polars()
    for flow, mark in enumerate(RRUL):
        own = interval.filter(interval["flow_id"] == flow)
        bits = sum(v or 0 for v in document["results"][f"TCP upload {mark}"]) * 0.2 * 1e6
        assert bits == pytest.approx(float(own["delivered_bytes"].sum()) * 8)


def test_its_pings_are_those_of_the_run(run, document):
    transfers = run.stream("transfers").to_polars()
    group = [g.name for g in run.summary.groups].index(PING)
    own = transfers.filter((transfers["group"] == group) & (transfers["event"] == 2))
    values = [point["val"] for point in document["raw_values"]["Ping (ms) ICMP"]]
    assert values == pytest.approx(((own["ts_ns"] - own["start_ns"]) / 1e6).to_list())


def test_a_series_has_null_where_nothing_ended():
    one = flent.Series("Ping (ms) ICMP", "ms", [0.1, 0.2, 0.9], [10.0, 30.0, 50.0])
    assert flent.on_grid(one, 5, 0.2) == [20.0, None, None, None, 50.0]
    rows = {"TCP upload::1": [1.0, None], "TCP upload::2": [3.0, None]}
    made = flent.totals(rows)
    assert made == {
        "TCP upload avg": [2.0, None],
        "TCP upload sum": [4.0, None],
        "TCP totals": [4.0, None],
    }


def test_export_writes_it_and_import_reads_it_for_compare(run, weir, tmp_path):
    done = weir("export", run.path, "--to", "flent").worked()
    done = weir("import", done.out.strip(), "--out", "back")
    assert (done.status, done.out) == (0, "back\n"), done.err
    done = weir("compare", run.path, "back", "--json").worked()
    rows = {row["name"]: row["values"] for row in json.loads(done.out)["numbers"]}
    assert all(value is None or value >= 0 for value in rows["goodput, TCP upload EF"])
    assert rows["Jain's index"][1] is None  # of all flows: flent does not say it
    imported_run = folder.load(tmp_path / "back")
    assert page.verdicts(imported_run, imported_run.summary) is None
    listed = json.loads(weir("ls", ".", "--json").out)
    assert [one["verdict"] for one in listed] == [None]  # nobody judged it
    assert "nobody has judged it" in page.status(imported_run.summary).text
    back = json.loads((tmp_path / "back/summary.json").read_text())
    model.decode(json.dumps(back))
    assert summary.end_of(run_summary.decode(back, "back")) == units.NONE
    total = sum(g["goodput_bps"] for g in back["groups"] if g["name"].startswith("TCP upload"))
    sums = [v for v in flent.document(run, ())["results"]["TCP upload sum"] if v is not None]
    assert total == pytest.approx(np.mean(sums) * 1e6, rel=0.02)


def test_flent_reads_it(run, tmp_path):
    """Debian's flent 2.1: its summary, and the plot of its own test as a file."""
    file = tmp_path / "run.flent"
    flent.write(run, file, ())
    done = subprocess.run(
        ["flent", "-i", file, "-f", "summary"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "Summary of rrul test run" in done.stdout
    mean = np.mean([p["val"] for p in json.loads(file.read_text())["raw_values"][PING]])
    shown = next(line for line in done.stdout.splitlines() if line.strip().startswith(PING))
    assert float(shown.partition(":")[2].split()[0]) == pytest.approx(mean, abs=0.01)


PING = "Ping (ms) ICMP"


def test_iperf3_is_imported_with_what_it_says(tmp_path):
    file = tmp_path / "i.json"
    file.write_text(json.dumps(IPERF3))
    found = imported.summary(file)
    assert found["wall_s"] == 10
    there, back = found["groups"]
    assert (there["name"], there["flows"], there["goodput_bps"]) == ("cubic", 2, 8e6)
    assert (there["rtt_mean_ns"], there["retransmits"], there["acked_bytes"]) == (25e6, 7, 4000)
    assert there["jfi"] == pytest.approx(64 / (2 * 40))
    assert (back["name"], back["goodput_bps"]) == ("cubic, to the client", 5e6)
    assert back["rtt_mean_ns"] is None
    assert back["retransmits"] is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", ": not JSON: "),
        (b"[]", ": has another shape than it should: Expected `object`, got `array`"),
        (b'{"a": 1}', ": neither a data file of flent nor the JSON of iperf3 (-J)"),
        (b'{"start": {}, "end": {}, "error": "refused"}', ": iperf3 failed: refused"),
        (b'{"start": {}, "end": {}}', ": iperf3 has measured nothing in it"),
        (b'{"version": 5, "metadata": {}, "results": {}}', ": flent's format version 5; 2, 3 and"),
        (b"\x1f\x8b\x08", ": cannot be read: "),
    ],
)
def test_what_is_no_result_is_one_sentence(content, says, tmp_path):
    file = tmp_path / "x.json"
    file.write_bytes(content)
    with pytest.raises(UserError) as error:
        imported.summary(file)
    assert str(error.value).startswith(f"{file}{says}")
    assert "\n" not in str(error.value)
    assert error.value.status == 1


@pytest.mark.parametrize("meta", [{}, {"SERIES_META": {}}])
@pytest.mark.parametrize("raw", [True, False])
def test_statistics_of_sockets_and_sums_are_no_flows(meta, raw, tmp_path):
    """Goodput is the mean of flent's own sum, in which a flow that has no rate adds nothing."""
    rates = {"TCP upload::1": [4.0, 8.0, None], "TCP upload::2": [None, 2.0, None]}
    derived = {"TCP upload avg": [4.0, 5.0, None], "TCP upload sum": [4.0, 10.0, None]}
    derived |= {"TCP upload fairness": [1.0, 0.7, None], "TCP upload total": [4.0, 10.0, None]}
    sockets = ("tcp_rtt", "tcp_cwnd", "tcp_delivery_rate", "tcp_pacing_rate")
    statistics = {f"{name}::{what}": [9.0, 9.0, 9.0] for name in rates for what in sockets}
    others = {"HTTP latency": [5.0, 5.0, 5.0], "cpu_stats_192.0.2.1::load": [0.1, 0.1, 0.1]}
    samples = {name: [{"t": 1, "val": 4.0}, {"t": 1, "tcp_rtt": 80.0}] for name in rates}
    document = {
        "version": 4, "metadata": meta, "x_values": [0.0, 0.2, 0.4],
        "results": {**rates, **derived, **statistics, **others},
    }  # fmt: skip
    document |= {"raw_values": samples | {name: [] for name in statistics}} if raw else {}
    if meta:
        meta["SERIES_META"] |= {name: {"UNITS": "Mbits/s"} for name in [*rates, *derived]}
        document["results"]["TCP upload::3"] = [9.0, 9.0, 9.0]
        meta["SERIES_META"]["TCP upload::3"] = {"UNITS": "ms"}
    (tmp_path / "x.flent").write_text(json.dumps(document))
    (found,) = imported.summary(tmp_path / "x.flent")["groups"]
    assert (found["name"], found["flows"], found["goodput_bps"]) == ("TCP upload", 2, 7e6)
    assert found["jfi"] == pytest.approx(49 / (2 * 37))
    assert found["rtt_mean_ns"] == (80e6 if raw else None)
    document["x_values"].append(0.6)
    (tmp_path / "x.flent").write_text(json.dumps(document))
    with pytest.raises(UserError, match="series 'TCP upload::1' has 3 values for 4 times"):
        imported.summary(tmp_path / "x.flent")


def udp(sender, lost, **more):
    """A stream of UDP at 4 Mbit/s for a second, as iperf3 3.12 writes it."""
    said = {"bytes": 500_000, "bits_per_second": 4e6, "packets": 400, "lost_packets": lost}
    return {"udp": said | {"sender": sender} | more}


def test_goodput_of_udp_is_what_came(tmp_path):
    """By stream, what was sent less what was lost; since 3.10 there is what receivers counted."""
    end = {"streams": [udp(True, 100), udp(True, 100), udp(False, 200)]}
    file = tmp_path / "i.json"
    start = {"test_start": {"protocol": "UDP", "duration": 1}}
    file.write_text(json.dumps({"start": start, "end": end}))
    there, back = imported.summary(file)["groups"]
    assert (there["flows"], there["goodput_bps"], there["acked_bytes"]) == (2, 6e6, 750_000)
    assert (back["flows"], back["goodput_bps"], back["acked_bytes"]) == (1, 2e6, 250_000)
    end["sum_received"] = {"bytes": 749_000, "bits_per_second": 5.9e6}
    end["sum_received_bidir_reverse"] = {"bytes": 251_000, "bits_per_second": 2.1e6}
    file.write_text(json.dumps({"start": start, "end": end}))
    there, back = imported.summary(file)["groups"]
    assert (there["goodput_bps"], there["acked_bytes"], there["jfi"]) == (5.9e6, 749_000, 1)
    assert (back["goodput_bps"], back["acked_bytes"]) == (2.1e6, 251_000)
    end = {"streams": [udp(True, 100), udp(True, 0, packets=0)]}
    file.write_text(json.dumps({"start": start, "end": end}))
    (there,) = imported.summary(file)["groups"]
    assert (there["goodput_bps"], there["jfi"], there["acked_bytes"]) == (None, None, None)


def test_import_leaves_a_folder_alone_that_is_there(weir, tmp_path):
    packed = tmp_path / "i.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(IPERF3).encode()))
    assert imported.write(packed, tmp_path / "one") == tmp_path / "one"
    assert "--force replaces it" in weir("import", packed, "--out", "one").refused()


def test_import_replaces_a_run_and_what_was_said_of_it(tmp_path):
    file, out = tmp_path / "i.json", tmp_path / "one"
    file.write_text(json.dumps(IPERF3))
    imported.write(file, out)
    labels.tag(out, ["keep"])
    (out / "cc.ring").touch()
    (out / "mine.txt").touch()
    assert imported.write(file, out, force=True) == out
    assert labels.read(out) == labels.Labels()
    assert not (out / "cc.ring").exists()
    assert (out / "mine.txt").exists()
