# SPDX-License-Identifier: BSD-3-Clause
"""The report: one file, whole, for every kind of run."""

import io
import json
import re
import shutil
import time
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from synthetic import empty, make_run, write_ring
from weir.analysis import folder, summary
from weir.analysis.run_summary import decode
from weir.report import artists, bottleneck, figures, grey, lateness, page, paper, sections, theme
from weir.report.data import read
from weir.report.figure import Axis, Line, Panel, floats, key, numbers
from weir.report.scene import Scene, flow_styles
from weir.runner.bar import Count


class Page(HTMLParser):
    """What a browser would load, and whether elements close."""

    void = frozenset({"meta", "br"})

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.refs, self.loads, self.figures = [], [], [], [], 0
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.figures += tag == "figure"
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            elif name in ("href", "xlink:href", "src") and value:
                (self.refs if value.startswith("#") else self.loads).append(value)
            self.refs += re.findall(r"url\((#[^)]+)\)", value or "")
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.void:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def without_scripts(text):
    return re.sub(r"<script\b.*?</script>", "", text, flags=re.S)


def page_of(run):
    return page.write(folder.load(run)).read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"groups": (("", "copa", 1),)},
        {"level": 3},
        {"groups": (("a", "copa", 4), ("b", "newreno", 4))},
        {"groups": (("a", "copa", 40), ("b", "copa", 40)), "warmup_s": 0},
        {"seconds": 1, "interval_ms": 1000, "warmup_s": 0},
    ],
)
def test_the_page_is_one_whole_file(tmp_path, options):
    text = page_of(make_run(tmp_path / "r", **options))
    page = Page(text)
    assert page.figures >= 6
    assert set(page.loads) == {p.name for p in (tmp_path / "r").iterdir()} - {"report.html"}
    text = without_scripts(text)
    assert "@import" not in text
    assert all(u.startswith(("#", "data:")) for u in re.findall(r"url\(([^)]+)\)", text))
    assert len(set(page.ids)) == len(page.ids)
    assert {ref[1:] for ref in page.refs} <= set(page.ids)
    for words in ("Ledger: balanced", "Jain", "goodput", "commit", "0123abc", "weir-sim x.yaml"):
        assert words in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "source"),
    [
        ({"level": 3}, "every recorded packet."),
        ({}, "all packets; each delay is known to within 3 %."),
        ({"with_summary": False}, "means of intervals"),
        ({"level": 3, "with_summary": False}, "every recorded packet."),
    ],
)
def test_queueing_delay_comes_from_the_best_there_is(tmp_path, options, source):
    assert source in page_of(make_run(tmp_path / "r", **options))


@pytest.mark.slow
def test_the_ledger_shows_what_is_missing(tmp_path):
    run = make_run(tmp_path / "r")
    summary = json.loads((run / "summary.json").read_text())
    summary["ledger"]["balanced"] = False
    summary["ledger"]["paths"]["forward"]["in"]["pkts"] += 3
    (run / "summary.json").write_text(json.dumps(summary))
    text = page_of(run)
    assert "not balanced" in text
    assert re.search(r">=</td><td class=\"r\">3</td>", text)


@pytest.mark.slow
def test_a_live_run_says_what_fell_behind(tmp_path):
    run = make_run(tmp_path / "run")
    assert "Verdict" not in page_of(run)  # virtual time: nothing can
    path = run / "summary.json"
    summary = json.loads(path.read_text())
    summary |= {"program": "weir-switch"}
    path.write_text(json.dumps({**summary, "verdicts": []}))
    assert "<h2>Verdict: nothing fell behind</h2>" in page_of(run)
    said = [
        {"program": "switch", "cause": "port", "sentence": f"port <{n}> was full"} for n in "ab"
    ]
    path.write_text(json.dumps({**summary, "verdict": said[0]["sentence"], "verdicts": said}))
    page = page_of(run)
    Page(page)
    items = "".join(f"<li>weir-switch: port &lt;{n}&gt; was full</li>" for n in "ab")
    assert f"<ul>{items}</ul>" in page


@pytest.mark.slow
def test_text_of_the_user_is_escaped(tmp_path):
    run = make_run(tmp_path / "r", groups=(("<b>$x$_{</b>", "copa", 3),))
    (run / "config.yaml").write_text("title: <script>alert(1)</script>\n")
    text = page_of(run)
    assert "<script>alert" not in text
    assert "<b>$x$" not in text


@pytest.mark.slow
def test_a_run_that_was_killed_is_reported_with_a_note(tmp_path):
    run = make_run(tmp_path / "r", with_summary=False)
    (run / "manifest.json").unlink()
    (run / "config.yaml").unlink()
    whole = (run / "interval.ring").read_bytes()
    (run / "interval.ring").write_bytes(whole[:-100])  # half a record
    text = page_of(run)
    assert Page(text).figures >= 6
    assert "did not end by itself" in text
    assert re.search(r"interval\.ring: truncated: \d+ of \d+ records are there", text)
    assert "link 0" in text  # tables from telemetry
    assert "100 Mbit/s" in text


@pytest.mark.slow
def test_a_folder_with_the_reports_name(weir, tmp_path):
    run = make_run(tmp_path / "r")
    (run / "report.html").mkdir()
    said = weir("report", run).refused(1)
    assert said == f"weir: {run}/report.html: a folder has the report's name"
    assert not list(run.glob(".report*"))


def test_packets_that_did_not_wait(recwarn):
    """All of them at the axis's end: nothing to scale by, and no warning."""
    figures.delay_cdf([figures.Cdf("forward", np.zeros(1), np.ones(1))])
    assert [str(warning.message) for warning in recwarn] == []


@pytest.mark.slow
def test_rings_that_cannot_be_read_are_named_and_skipped(weir, tmp_path):
    run = make_run(tmp_path / "r")
    (run / "links.ring").write_bytes(b"")
    (run / "interval.ring").write_bytes(b"no ring at all" * 1000)
    done = weir("report", run).worked()
    notes = done.err.splitlines()
    assert len(notes) == 2
    assert all(name in done.err for name in ("links.ring", "interval.ring"))
    assert all(name in (run / "report.html").read_text() for name in ("links.ring", "interval"))


def test_a_run_without_records_still_has_tables(tmp_path):
    run = make_run(tmp_path / "r")
    for stream in ("interval", "links", "events"):
        write_ring(run / f"{stream}.ring", stream, empty(stream, 0))
    page = Page(page_of(run))
    assert page.figures == 0


def test_a_run_folder_with_only_a_manifest(tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "r/manifest.json").write_text('{"program": "weir-sim"}')
    assert "did not end by itself" in page_of(tmp_path / "r")


@pytest.mark.slow
def test_flows_that_never_move_data(tmp_path):
    run = make_run(tmp_path / "r")
    silent = empty("interval", 40)
    silent["ts_ns"] = np.repeat(np.arange(1, 11) * 100_000_000, 4)
    silent["flow_id"] = np.tile(np.arange(4), 10)
    write_ring(run / "interval.ring", "interval", silent)
    assert Page(page_of(run)).figures >= 4


@pytest.mark.slow
def test_a_live_run_reads_the_rings_of_both_programs(tmp_path):
    run = make_run(tmp_path / "r")
    (run / "links.ring").rename(run / "links-switch.ring")
    (run / "interval.ring").rename(run / "interval-sender.ring")
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").unlink()
    parts = {"switch": {"links"}, "sender": {"groups", "jfi"}}
    for name, own in parts.items():
        part = {k: v for k, v in summary.items() if k in own | {"ledger", "wall_s", "program"}}
        (run / f"summary-{name}.json").write_text(json.dumps(part))
    assert Page(page_of(run)).figures >= 6


@pytest.mark.slow
def test_the_same_run_gives_the_same_report(tmp_path):
    run = make_run(tmp_path / "r", level=3)
    assert page_of(run) == page_of(run)


@pytest.mark.slow
def test_5000_flows_take_seconds(tmp_path):
    run = make_run(tmp_path / "r", groups=(("", "copa", 5000),), seconds=60, rate_bps=10e9)
    began = time.process_time()
    text = page_of(run)
    assert time.process_time() - began < 60  # four; a loop over records would take minutes
    assert len(text) < 4_000_000
    shutil.rmtree(run)


def test_groups_are_told_apart():
    def colours(*groups):
        return [style.colour for style in theme.group_styles(groups)]

    copa, reno = colours(("", "copa"), ("", "newreno"))
    assert colours(("", "newreno"), ("", "copa")) == [reno, copa]  # by algorithm, not by place
    assert len(set(colours(("a", "copa"), ("b", "copa"), ("c", "copa")))) == 3
    assert [s.label for s in theme.group_styles([("", "copa"), ("x", "newreno")])] == ["Copa", "x"]


@pytest.mark.parametrize("names", [
    ["bbr", "mine"], ["mine", "other", "third", "cubic", "bbr"], ["copa", "copa", "newreno"],
    [f"mine{n}" for n in range(16)] + ["bbr", "copa", "cubic", "newreno"], list(theme.STYLES)[8:20],
    [f"mine{n}" for n in range(27)], ["copa", "cubic", "bbr", "newreno"] * 5,
], ids=lambda names: f"{len(names)} with {names[0]}")  # fmt: skip
def test_looks_in_use_are_given_to_nothing_else(names):
    """A control of one's own had BBR's colour, marker and dash where it was the fourth."""
    found = theme.group_styles([("", name) for name in names])
    own = {
        name: style for name, style in zip(names, found, strict=True) if name not in theme.STYLES
    }
    for name in theme.CONTROLS:
        known = theme.style(name)
        assert name not in names or known in found or len(names) == 20
        assert (known.marker, known.dash) not in {(s.marker, s.dash) for s in own.values()}
    assert len({(style.marker, style.dash) for style in found}) == len(names)
    colours = min(len(names), 8) if own else 1
    assert len({style.colour for style in found}) >= colours
    lines = [Line(floats(0), floats(0), style, markers=1) for style in found]
    assert list(grey.alike(Panel(Axis(), Axis(), lines))) == []


def test_many_groups_are_told_apart():
    """Twenty of four algorithms, twenty of one, and names that several groups have."""
    four = [(f"g{i}", ("newreno", "cubic", "copa", "bbr")[i % 4]) for i in range(20)]
    for groups in (four, [(f"g{i}", "copa") for i in range(20)]):
        styles = theme.group_styles(groups)
        assert len({(style.colour, style.dash) for style in styles}) == 20
        assert len({style.colour for style in styles}) == 20
        assert [style.label for style in styles] == [name for name, _ in groups]
    named = decode({"groups": [{"name": "copa"}, {"name": "bbr"}, {"name": "copa"}]}, "x")
    assert summary.group_names(named) == ["copa, group 0", "bbr", "copa, group 2"]
    assert [row[0] for row in summary.groups(named).rows] == summary.group_names(named)


@pytest.mark.slow
@pytest.mark.parametrize("each", [1, 5])
@pytest.mark.parametrize("count", [1, 2, 6, 20])
def test_no_word_hides_data_and_no_legend_takes_the_room_of_axes(tmp_path, count, each):
    """With 20 groups a legend left axes of a few pixels; labels of lines stood in the data."""
    groups = [(f"newreno at {5 * i} ms", "newreno", each) for i in range(count)]
    run = make_run(tmp_path / "r", groups=groups)
    drawn = drawn_of(run)
    assert len(drawn) == 8 + (count * each > 1) + ("state" in drawn)
    of_flows = "Line: median flow" in drawn["rtt"].caption
    assert of_flows == (count * each > 10) == ("table's mean is of all" in drawn["rtt"].caption)
    for one in drawn.values():
        caption = one.caption
        with artists.settings():
            figure = artists.draw(one)
            figure.draw_without_rendering()
        keys = [legend.get_window_extent() for legend in figure.legends]
        for box in keys:
            assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1, caption
            assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1, caption
        for panel in figure.axes:
            inside = panel.get_window_extent()
            least = 0.3 if any(w in caption for w in ("Losses, m", "When ", "Shares")) else 1.2
            assert inside.height / figure.dpi > least, caption
            assert inside.width / figure.dpi > 2.3, caption
            assert not any(box.overlaps(panel.get_tightbbox()) for box in keys), caption
            assert not panel.texts or "Shares" in caption  # numbers beside bars


def test_lines_differ_in_dash():
    """Two algorithms whose lines lie on each other."""
    styles = theme.group_styles([("", cc) for cc in ("copa", "newreno", "cubic", "bbr")])
    assert len({style.dash for style in styles}) == 4
    flows = pl.DataFrame({"flow_id": [0, 1, 2], "group": [0, 0, 0]})
    styles = list(flow_styles(flows, Scene(groups=[], duration_s=1.0)).values())
    assert len({style.colour for style in styles}) == len({style.dash for style in styles}) == 3


def names(run):
    return list(drawn_of(run))


@pytest.mark.slow
def test_a_live_run_shows_its_own_error(tmp_path):
    run = make_run(tmp_path / "r", seconds=10)
    assert "emulation" not in names(run)
    assert "Virtual time: there is no emulation error." in page_of(run)
    path = run / "summary.json"
    report = json.loads(path.read_text())
    cdf = [[1023, 0.5], [1_000_000, 1.0]]
    report |= {"program": "weir-sender + weir-switch", "emulation": {"delay_error_cdf": cdf}}
    path.write_text(json.dumps(report))
    assert names(run)[-1] == "emulation"
    assert "Virtual time" not in page_of(run)
    packets = empty("packets", 1000)
    packets["ts_ns"] = np.linspace(0, 10e9, packets.size)
    packets["event"] = np.where(np.arange(packets.size) % 2, 5, 2)  # departures and others
    packets["sojourn_ns"] = np.where(packets["event"] == 5, 700, 9_000_000)
    packets["sojourn_ns"][501] = 50_000
    write_ring(run / "packets.ring", "packets", packets)
    timed = lateness.in_stretches(folder.load(run), 10.0)
    assert timed["largest_ns"].max() == 50_000
    assert timed["mean_ns"].min() == 700
    (tail,) = lateness.tails(decode(report, "x"), lateness.KNOWN)
    figure = lateness.of_a_run([tail], timed, Scene(groups=[], duration_s=10.0))
    left, right = figure.panels
    [line] = left.marks
    assert (line.x[0], line.y[0], line.x[-1]) == (1.008, 1.0, 1000.0)  # µs
    assert len(right.marks) == 2


def test_flows_show_when_they_recovered(tmp_path):
    run = make_run(tmp_path / "r", groups=(("", "newreno", 2),), seconds=5)
    happened = [  # s, flow, event
        (1.0, 0, 1),
        (1.5, 0, 3),
        (2.0, 0, 2),
        (2.5, 0, 1),  # while it recovers
        (3.0, 0, 10),
        (4.0, 1, 1),  # until the end
    ]
    events = empty("events", len(happened))
    for name, values in zip(
        ("ts_ns", "flow_id", "event"), zip(*happened, strict=True), strict=True
    ):
        events[name] = np.array(values) * (1e9 if name == "ts_ns" else 1)
    write_ring(run / "events.ring", "events", events)
    data = read(folder.load(run))
    rows = sections.recoveries(data, [0, 1]).rows()
    assert rows == [
        (0, 1.0, 1.5, "recovery"),
        (0, 2.0, 2.5, "loss"),
        (0, 2.5, 3.0, "recovery"),
        (1, 4.0, 5.0, "recovery"),
    ]
    assert "state" in names(run)
    acks = empty("cc", 4)  # after each ACK: also of controls that do not reduce their window
    acks["ts_ns"], acks["flow_id"] = [1e9, 2e9, 3e9, 1e9], [0, 0, 0, 1]
    acks["state"], acks["cwnd_segs"] = [1, 1, 0, 0], 10
    write_ring(run / "cc.ring", "cc", acks)
    assert sections.recoveries(read(folder.load(run)), [0, 1]).rows() == [(0, 1.0, 3.0, "recovery")]


@pytest.mark.slow
def test_a_capture_says_what_it_saw(tmp_path):
    run = make_run(tmp_path / "r", warmup_s=0)
    path = run / "summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "program": "weir-pcap"}))
    text = page_of(run)
    assert "<b>Figure 2. Round-trip time over time.</b> It is the time from a segment to" in text
    assert "Data in flight over time" in text
    assert "Congestion window" not in text
    assert "warm-up" not in text


def test_a_window_without_a_limit_yet_does_not_hide_the_others():
    """CUBIC's ssthresh before the first loss is 1e9: the axis went to a thousand million."""
    acks = sections.without_unset(pl.DataFrame({"ts_ns": [1, 2], "obs0": [1e9, 50.0]}))
    assert acks["obs0"].to_list() == [None, 50.0]


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 6, 9, 19])
@pytest.mark.parametrize("width", ["column", "page"])
def test_a_figure_for_a_paper_is_no_taller_than_a_page(count, width):
    """`acks` was 15 inches tall."""
    frame = pl.DataFrame({"time_s": [0.0, 1.0]} | {f"q{i}": [0.0, i] for i in range(count)})
    shown = [figures.Quantity.of(f"q{i}") for i in range(count)]
    scene = Scene(groups=[theme.style("cubic")], duration_s=1.0, links=[])
    figure = figures.panels(shown, [(theme.style("cubic"), frame)], scene)
    shape = paper.Shape(width)
    made = artists.draw(paper.fit(figure, shape), shape.width_in)
    made.draw_without_rendering()
    assert made.get_figheight() <= paper.PAGE_IN
    places = {(round(p.x0, 3), round(p.y0, 3)) for p in (a.get_position() for a in made.axes)}
    assert len(places) == count  # none covers another


@pytest.mark.slow
def test_drawing_says_how_far_it_is(tmp_path):
    """On a terminal; `weir report` into a file or a pipe says nothing."""
    steps = []
    run = make_run(tmp_path / "run")
    page.write(folder.load(run), on_progress=lambda *step: steps.append(step))
    parts = len(steps) - 1
    assert parts >= 3
    assert steps == [("drawing", done, parts) for done in range(parts + 1)]
    for terminal in (True, False):
        screen = io.StringIO()
        console = Console(file=screen, force_terminal=terminal, width=120)
        with Count(console, "parts") as bar:
            bar.update("drawing", 2, 8)
        assert ("2 of 8 parts" in screen.getvalue()) == terminal


def transfers_ring(path):
    """Four pages and three video segments of 1 s, the last half a second late for its player."""
    second = 1_000_000_000
    records = empty("transfers", 7)
    records["group"] = [0, 0, 0, 0, 1, 1, 1]
    records["flow_id"] = [0, 0, 1, 1, 4, 4, 4]
    records["number"] = [0, 1, 0, 1, 0, 1, 2]
    records["size_bytes"] = [5_000, 5_000, 200_000, 20_000_000, 125_000, 250_000, 250_000]
    records["gap_ns"] = second
    records["start_ns"] = np.array([3, 4, 5, 6, 3, 4, 5]) * second
    took = [0.02, 0.04, 0.25, 2.0, 0.1, 0.2, 1.7]
    records["ts_ns"] = records["start_ns"] + (np.array(took) * second).astype(np.uint64)
    records["ideal_ns"] = [second // 100, second // 100, second // 8, second, 0, 0, 0]
    records["event"] = 2
    write_ring(path / "transfers.ring", "transfers", records)
    return records


@pytest.mark.slow
def test_the_page_has_completion_times_by_size_and_video_streams(tmp_path):
    """By hand: bins, percentiles, slowdowns; bitrates and how long playback stood still."""
    path = tmp_path / "r"
    make_run(path, groups=(("pages", "cubic", 4), ("live", "copa", 1)))
    transfers_ring(path)
    config = path / "config.yaml"
    config.write_text("flows: [{cc: cubic, source: poisson}, {cc: copa, source: {video: {}}}]\n")
    data = read(folder.load(path))
    (_, times), (_, video) = page.transfers(data)

    assert [row[:3] for row in times.rows] == [
        ["pages", "to 10 kB", "2"],
        ["pages", "100 kB to 1 MB", "1"],
        ["pages", "above 10 MB", "1"],
        ["live", "100 kB to 1 MB", "3"],
    ]
    # The median of two is the lower, as the summary has it; none is unfinished.
    assert times.rows[0][3:] == ["0", "30.0 ms", "20.0 ms", "40.0 ms", "40.0 ms", "3.00", "4.00"]
    assert times.rows[1][-2:] == ["2.00", "2.00"]
    assert times.rows[3][-2:] == ["–", "–"]
    # Playback starts at 4.2 s, so the third is due at 6.2 s; it is there at 6.7 s.
    assert video.rows == [["live", "1", "3", "1.67 Mbit/s", "1", "1", "16.67 %"]]
    assert "Completion times by size" in page_of(path)
    assert page.transfers(read(folder.load(make_run(tmp_path / "none")))) == []


@pytest.mark.slow
def test_transfers_without_an_empty_path_or_data_have_their_figure(tmp_path):
    """An on-off source knows no slowdown; held back, it sends nothing while it is on."""
    path = tmp_path / "r"
    make_run(path, groups=(("pages", "cubic", 4), ("live", "copa", 1)))
    records = transfers_ring(path)
    records["ideal_ns"] = 0
    records["size_bytes"][0] = 0
    write_ring(path / "transfers.ring", "transfers", records)
    assert "Completion time by size." in page_of(path)

    records["size_bytes"] = 0
    write_ring(path / "transfers.ring", "transfers", records)
    assert "Completion time by size." not in page_of(path)


def drawn_of(run):
    """The run's figures by name."""
    return {one.name: one for one in sections.draw(read(folder.load(run)))}


def test_a_stack_has_its_total(tmp_path):
    """What flows have together stood nowhere in figures: it was to be added up."""
    figure = drawn_of(make_run(tmp_path / "r", seconds=5, groups=(("", "copa", 3),)))["goodput"]
    rows = numbers(figure)
    assert [row[0] for row in rows] == ["flow 0", "flow 1", "flow 2", "total", "link, 100 Mbit/s"]
    assert {row[1] for row in rows} == {"goodput, stacked (Mbit/s)"}
    means = [float(row[4]) for row in rows[:4]]
    assert sum(means[:3]) == pytest.approx(means[3], abs=0.2)
    assert means[3] == pytest.approx(82, abs=1)  # 96.5 Mbit/s times the mean of the ramp


def test_typical_flows_are_labelled_as_what_they_are(tmp_path):
    run = make_run(tmp_path / "r", seconds=5, groups=(("a", "copa", 9), ("b", "cubic", 1)))
    labels = [mark.style.label for mark in key(drawn_of(run)["cwnd"])]
    flows = {label.partition(" (")[0] for label in labels}
    assert flows == {"a, median", "a, least", "a, best", "b", "end of the warm-up"}
    assert all(re.fullmatch(r"a, \w+ \(flow \d\)", label) for label in labels[:3])


def test_goodput_is_explained_by_the_links_rate():
    """Of 10 Gbit/s 9.41 can be goodput: 1448 of 1538 bytes; without timestamps 1460."""
    link = {"link": {"rate": "10Gbit", "framing": "ethernet", "overhead": "24B"}}
    group = {"mss": "1460B", "timestamps": "yes"}
    config = {"paths": {"forward": [link, {"delay": {}}]}, "flows": [group]}
    report = decode({"links": {"forward": {"rate_bps": 10e9, "utilisation": 0.9}}}, "x")
    said = bottleneck.payload_most(config, report)
    assert "at most 94.1 % (9.41 Gbit/s) can be goodput" in said
    assert "1,448 of the 1,538 bytes" in said
    group["timestamps"] = "no"
    assert "1,460 of the 1,538 bytes" in bottleneck.payload_most(config, report)
    config["flows"] = [group, {**group, "mss": "536B"}]
    assert bottleneck.payload_most(config, report) == ""
    assert bottleneck.payload_most({}, decode({}, "x")) == ""


def test_distributions_have_the_value_on_x_and_a_dash_each(tmp_path):
    run = make_run(tmp_path / "r", seconds=5, groups=(("a", "copa", 20), ("b", "cubic", 20)))
    left, right = drawn_of(run)["shares"].panels
    assert left.x == right.x
    assert left.x.label.startswith("goodput / mean goodput")
    assert left.y.label == "share of flows"
    for line in left.marks[:2]:
        assert (np.diff(line.x) >= 0).all()
        assert (line.y[0], line.y[-1]) == (0, 1)
    several = [
        figures.Cdf(name, np.array([1.0, 2e6]), np.array([0.5, 1.0]), [("p99", 2e6, 0.99)])
        for name in ("forward", "reverse", "fifo", "codel")
    ]
    drawn = figures.delay_cdf(several)
    keys = [mark.style.label for mark in key(drawn)]
    assert keys == ["forward", "reverse", "fifo", "codel", "p99"]  # and what the circles are
    assert len({mark.style.dash for mark in drawn.panels[1].marks if isinstance(mark, Line)}) == 4
    assert len({str(style.dash) for style in lateness.KNOWN.values()}) == 4


@pytest.mark.slow
def test_captions_and_tables_have_no_riddles(tmp_path):
    text = without_scripts(page_of(make_run(tmp_path / "r", seconds=5)))
    for riddle in ("What happened when", "within 1/32", ">of all<", ">overhead<", ">per s<"):
        assert riddle not in text
    assert "Losses, marks and reactions over time" in text
