# SPDX-License-Identifier: BSD-3-Clause
"""weir qlog: what is read of qlog 0.3 and of the newer drafts, and what is no qlog."""

import json

import pytest
from typer.testing import CliRunner
from weir.analysis import folder, model_parts, qlog
from weir.analysis.run_summary import decode
from weir.base.errors import UserError
from weir.cli.app import app
from weir.report import comparison, page

HEADS = {
    "0.3": {"qlog_format": "JSON-SEQ", "qlog_version": "0.3"},
    "newer": {"file_schema": "urn:ietf:params:qlog:file:sequential"},
}
CLIENT = {"trace": {"vantage_point": {"name": "x", "type": "client"}}}


def packet(number, kind="1RTT", **data):
    return {"header": {"packet_type": kind, "packet_number": number}, **data}


def ack(*blocks):
    return packet(0, frames=[{"frame_type": "ack", "acked_ranges": [list(b) for b in blocks]}])


EVENTS = [
    ("recovery:metrics_updated", {"smoothed_rtt": 333, "latest_rtt": 0}),  # before any sample
    *(("transport:packet_sent", packet(number)) for number in range(10)),
    ("recovery:metrics_updated", {"min_rtt": 20, "smoothed_rtt": 21}),
    ("recovery:metrics_updated", {"min_rtt": 19.5, "smoothed_rtt": 24}),
    ("recovery:packet_lost", packet(3)),
    ("recovery:packet_lost", packet(6)),
    ("recovery:packet_lost", packet(1, "initial")),
    ("transport:packet_received", ack((5, 7), (2,))),  # 6 was not lost
    ("transport:packet_received", ack((5, 7))),
    ("recovery:metrics_updated", {"congestion_window": 15000}),
]


def written(path, head, separator="\x1e", end="\n"):
    records = [head | CLIENT] + [{"time": 0, "name": n, "data": d} for n, d in EVENTS]
    path.write_text("".join(separator + json.dumps(record) + "\n" for record in records)[:-1] + end)
    return path


@pytest.mark.parametrize("version", HEADS)
@pytest.mark.parametrize("separator", ["\x1e", ""])
def test_figures_of_a_connection(tmp_path, version, separator):
    found = qlog.read(written(tmp_path / "x.sqlog", HEADS[version], separator))
    assert (found.by, found.sent, found.lost, found.spurious) == ("client", 10, 3, 1)
    assert found.unacked == 3  # 0, 1 and 4; 3 was lost, and of 8 and 9 nothing is known yet
    assert (found.min_rtt_ns, found.smoothed_rtt_ns) == (19.5e6, 22.5e6)


def test_losses_that_a_stack_does_not_log_are_unknown(tmp_path):
    found = qlog.read(written(tmp_path / "x.sqlog", HEADS["newer"] | {"title": "quiche"}))
    assert (found.sent, found.lost, found.spurious, found.unacked) == (10, None, None, None)


def test_a_record_that_was_cut_off_is_left_out(tmp_path):
    path = written(tmp_path / "x.sqlog", HEADS["0.3"], end='\n\x1e{"time": 3, "na')
    assert qlog.read(path).lost == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no json", "record 1 is no JSON object"),
        ("[1]", "record 1 is no JSON object"),
        ("{}", "names no qlog version"),
        ("", "names no qlog version"),
        ('{"qlog_version": "0.3"}\n{"name\n{}', "record 2 is no JSON object"),
    ],
)
def test_what_is_no_qlog_is_said(tmp_path, text, said):
    (tmp_path / "x.qlog").write_text(text)
    with pytest.raises(UserError, match=said):
        qlog.read(tmp_path / "x.qlog")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("packet_sent", {"header": {"packet_type": "1RTT"}}),
        ("packet_sent", packet([])),
        ("packet_sent", []),
        ("packet_received", packet(0, frames=[{"frame_type": "ack", "acked_ranges": [["a"]]}])),
        ("packet_received", packet(0, frames=[{"frame_type": "ack", "acked_ranges": [[]]}])),
        ("metrics_updated", {"min_rtt": 1, "smoothed_rtt": "1"}),
    ],
)
def test_an_event_of_another_shape_is_one_sentence(tmp_path, name, data):
    events = [("packet_sent", packet(1)), (name, data)]
    records = [HEADS["0.3"]] + [{"name": of, "data": what} for of, what in events]
    (tmp_path / "x.qlog").write_text("\n".join(map(json.dumps, records)))
    with pytest.raises(
        UserError, match=r"x\.qlog: an event has another shape than qlog's: "
    ) as error:
        qlog.read(tmp_path / "x.qlog")
    assert "\n" not in str(error.value)


def summary(files="guest-0"):
    def flow(direction, pkts, mean, drops):
        known = {
            "group": 0, "protocol": "udp", "direction": direction, "received_pkts": pkts,
            "delay_min_ns": 10_000_000, "delay_mean_ns": mean, "drops": drops, "goodput_bps": 1e6,
            "src": "a", "dst": "b", "flow_id": 0, "sent_pkts": pkts, "sent_bytes": 0,
            "received_bytes": 0, "ce_pkts": 0,
        }  # fmt: skip
        return dict.fromkeys(model_parts.IpFlow.__struct_fields__) | known

    program = {
        "guest": 0, "group": 0, "side": "stack", "run": "quic", "output": "guest-0.txt",
        "files": files, "status": 0, "ended_ns": 0,
    }  # fmt: skip
    flows = [
        flow("forward", 1, 12_000_000, 2),
        flow("forward", 3, 16_000_000, 1),
        flow("reverse", 5, 10_000_000, 0),
    ]
    return {"guests": {"programs": [program]}, "ip_flows": flows}


def test_the_paths_figures_stand_beside(tmp_path):
    (tmp_path / "guest-0").mkdir()
    written(tmp_path / "guest-0/x.sqlog", HEADS["newer"])
    (found,) = qlog.of_run(tmp_path, decode(summary(), "x"))
    assert found.path == qlog.PathFigures(3, 20_000_000, 25e6, 2e6)
    assert found.name == "guest-0/x.sqlog"
    assert qlog.table([found]).rows[0][:2] == [found.name, found.by]


def run_of(path, least_rtt_ms):
    """A run's folder: its summary, and one qlog of the opening side."""
    head = json.dumps(HEADS["newer"] | CLIENT)
    event = {"time": 0, "name": "recovery:metrics_updated", "data": {"min_rtt": least_rtt_ms}}
    (path / "guest-0").mkdir(parents=True)
    (path / "guest-0/x.sqlog").write_text(f"{head}\n{json.dumps(event)}\n")
    group = {"name": "quic", "cc": "reno", "flows": 1}
    (path / "summary.json").write_text(json.dumps(summary() | {"groups": [group]}))
    return folder.load(path)


def test_a_report_and_a_comparison_have_them(tmp_path):
    runs = [run_of(tmp_path / name, ms) for name, ms in (("a", 20), ("b", 30))]
    ((text, table),) = page.qlogs(runs[0])
    assert "qlogs" in text
    assert table.rows[0][0] == "guest-0/x.sqlog"
    numbers = {m.name: m.values for m in comparison.numbers(comparison.read(runs))}
    assert numbers["qlog: least RTT, quic"] == [20e6, 30e6]
    assert numbers["qlog: packets lost, less spurious, quic"] == [0, 0]


def test_a_report_names_a_file_that_is_no_qlog(tmp_path):
    run = run_of(tmp_path / "a", 20)
    (run.path / "guest-0/y.qlog").write_text("no json")
    ((text, table),) = page.qlogs(run)
    assert "y.qlog: record 1 is no JSON object" in text
    assert not table.rows


def test_a_run_without_qlogs_is_said(tmp_path):
    with pytest.raises(UserError, match=r"has written a qlog into \$WEIR_OUT"):
        qlog.of_run(tmp_path, decode(summary(None), "x"))


def test_a_folder_without_a_run_is_said(tmp_path):
    done = CliRunner().invoke(app, ["qlog", str(tmp_path / "none")])
    assert isinstance(done.exception, UserError)
