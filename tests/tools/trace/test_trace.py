# SPDX-License-Identifier: BSD-3-Clause
"""weir trace: recordings whose rates are known, by each format; statistics; models of a trace."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frames import ETHER, MS, pcap
from scapy.layers.inet import IP, UDP
from scapy.packet import Raw
from typer.testing import CliRunner
from weir.base.errors import UserError
from weir.cli.app import app
from weir.trace import fit, formats, statistics, steps

# Opportunities of 1500 bytes in each 100 ms, 0.12 Mbit/s each; 0 is an outage. 101: no percentile
# is between two of them.
COUNTS = np.random.default_rng(1).integers(0, 40, 101)
COUNTS[[10, 11, 12, 50]] = 0
COUNTS[-1] = 7  # a round of mahimahi ends with its last packet
RATES = COUNTS * 1500 * 8 * 10.0
STEP_MS = 100


def times_ms() -> list[int]:
    """Of all packets: those of a step within it, the last at its end."""
    found = []
    for step, count in enumerate(COUNTS):
        end = STEP_MS * (step + 1)
        found += [end - STEP_MS * (count - 1 - k) // max(1, count) for k in range(count)]
    return found


def in_csv(file: Path) -> list[str]:
    rows = [f"{5 + i / 10},x,{rate / 1e3}" for i, rate in enumerate(RATES)]
    file.write_text("\n".join(["Time,Cell,DL", *rows]) + "\n")
    return ["--at", "Time:s", "--rate", "DL:kbps"]


def in_mahimahi(file: Path) -> list[str]:
    file.write_text("\n".join(map(str, times_ms())) + "\n")
    return []


def in_leocc(file: Path) -> list[str]:
    delays = file.with_suffix(".delay")
    delays.write_text("\n".join(str(20 + i % 7) for i in range(1010)) + "\n")
    return [*in_mahimahi(file), "--delays", str(delays)]


def in_pantheon(file: Path) -> list[str]:
    lines = ["# mahimahi mm-link"]
    for at in times_ms():
        lines += [f"{at - 30} + 1500 1", f"{at} # 1500", f"{at} - 1500 {25 + at % 10} 1"]
    lines.append("0 # 0")
    file.write_text("\n".join(sorted(lines, key=lambda line: (line[0] != "#", when(line)))) + "\n")
    return []


def when(line: str) -> float:
    return 0.0 if line.startswith("#") else float(line.split()[0])


def in_iperf3(file: Path) -> list[str]:
    sums = [
        {"start": i / 10, "end": (i + 1) / 10, "bits_per_second": rate, "lost_percent": 2.5}
        for i, rate in enumerate(RATES)
    ]
    file.write_text(json.dumps({"intervals": [{"sum": s} for s in sums]}))
    return []


def in_theaterq(file: Path) -> list[str]:
    rows = [f"100000,5000000,{int(rate)},{2**31},300" for rate in RATES]
    file.write_text("\n".join(["KEEP,LATENCY,RATE,LOSS,LIMIT", *rows]) + "\n")
    return []


def in_pcap(file: Path) -> list[str]:
    frame = bytes(ETHER / IP(src="192.0.2.1", dst="192.0.2.2") / UDP() / Raw(bytes(1458)))
    assert len(frame) == 1500
    # Time begins with the first frame; the others have left the link when their interval ends.
    first, *rest = times_ms()
    assert first < STEP_MS
    file.write_bytes(pcap([(0, frame), *((at * MS - 100, frame) for at in rest)]))
    return []


def in_5g(file: Path) -> list[str]:
    rows = [f"1,{i},walking,{rate / 1e6}" for i, rate in enumerate(RATES)]
    file.write_text("\n".join(["run_num,seq_num,mobility_mode,Throughput", *rows]) + "\n")
    return []


MAKERS = {
    "csv": in_csv,
    "mahimahi": in_mahimahi,
    "leocc": in_leocc,
    "pantheon": in_pantheon,
    "iperf3": in_iperf3,
    "theaterq": in_theaterq,
    "pcap": in_pcap,
    "5g": in_5g,
}


def command(*argv: object) -> Any:
    return CliRunner().invoke(app, ["trace", *map(str, argv)])


def numbers(*argv: object) -> dict[str, Any]:
    done = command("show", *argv, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_there_is_a_file_of_each_format() -> None:
    assert set(MAKERS) | {"steps"} == set(formats.FORMATS)
    said = command("import", "--help").output
    assert [name for name in formats.FORMATS if name not in said] == []


@pytest.mark.parametrize("name", MAKERS)
def test_percentiles_are_those_of_the_rates(
    name: str, tmp_path: Path, build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of numpy's on the rates that the file was made of, after import as before."""
    monkeypatch.setenv("WEIR_BUILD", str(build))
    out = tmp_path / "steps.csv"
    options = MAKERS[name](tmp_path / "recording")
    done = command("import", tmp_path / "recording", "--from", name, "--out", out, *options)
    assert done.exit_code == 0, done.output + str(done.exception)
    found = numbers(out)
    assert found["duration_s"] == pytest.approx(101 if name == "5g" else 10.1)
    wanted = {f"p{100 * q:g}": q for q in statistics.QUANTILES}
    for key, q in wanted.items():
        rate = np.quantile(RATES, q, method="inverted_cdf")
        assert found["rate_bps"][key] == pytest.approx(rate, abs=1), key
    assert found["rate_bps"]["mean"] == pytest.approx(RATES.mean(), abs=1)
    assert found["outages"]["count"] == outages()
    assert found["outages"]["total_s"] == pytest.approx(
        np.count_nonzero(RATES == 0) * (1 if name == "5g" else 0.1)
    )


def outages() -> int:
    """Runs of rates of 0."""
    down = np.concatenate(([0], RATES == 0))
    return int(np.count_nonzero(np.diff(down) == 1))


def test_what_else_a_recording_has(tmp_path: Path) -> None:
    """Delays and losses: of each 10 ms, of each interval, the smallest of a log."""

    def read(name: str) -> steps.Steps:
        options = MAKERS[name](tmp_path / name)
        delays = Path(options[-1]) if name == "leocc" else None
        return formats.read(tmp_path / name, name, formats.Reading(delays=delays))

    leocc = read("leocc")
    at = np.arange(1010) * 10 * MS + 1
    place = np.searchsorted(leocc.at_ns, at, side="right") - 1
    assert (leocc.delay_ns[place] == (20 + np.arange(1010) % 7) * MS).all()
    assert np.allclose(leocc.rate_bps[place], np.repeat(RATES, 10))
    assert set(read("iperf3").loss) == {0.025}
    assert set(read("pantheon").delay_ns) == {25 * MS}
    theaterq = read("theaterq")
    assert set(theaterq.delay_ns) == {5 * MS}
    assert theaterq.loss[0] == pytest.approx(0.5)
    assert set(theaterq.limit_pkts) == {300}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Also by the stage, to which steps shorter than 1 us are as good."""
    made = steps.make(
        [0, 1000, 1500], 2_000_000.25 * 1e3, [1e9, 999, 2.5e6], [0, 1.5e3, 7], [0, 0.5, 1e-6], 3
    )
    steps.write(made, tmp_path / "a.csv")
    found = steps.read(tmp_path / "a.csv")
    assert list(found.rate_bps) == [1e9, 0, 2.5e6]  # below 1 kbit/s is an outage
    for name in ("at_ns", "delay_ns", "loss", "limit_pkts"):
        assert np.allclose(getattr(found, name), getattr(made, name), atol=1e-9), name
    assert found.end_ns == made.end_ns


def test_the_stage_reads_what_is_written(tmp_path: Path, build: Path) -> None:
    """A run on an imported trace: the link's mean rate and time without one are the trace's."""
    options = in_leocc(tmp_path / "bw")
    out = tmp_path / "steps.csv"
    assert (
        command("import", tmp_path / "bw", "--from", "leocc", "--out", out, *options).exit_code == 0
    )
    (tmp_path / "x.yaml").write_text(
        "duration: 10100ms\npaths:\n  forward: [{replay: {file: steps.csv, framing: ip}}]\n"
        "  reverse: [{delay: {delay: 5ms}}]\nflows: [{cc: cubic}]\n"
    )
    argv = [build / "tools/sim/weir-sim", "x.yaml", "--out", "run", "--json"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    link = json.loads(done.stdout)["links"]["forward"]
    assert link["rate_mean_bps"] == pytest.approx(RATES.mean(), rel=1e-6)
    assert link["down_ns"] == np.count_nonzero(RATES == 0) * 100 * MS


def test_a_figure_and_bars(tmp_path: Path) -> None:
    """A line of 72 blocks, blank where the link is down all the time; SVG and the data."""
    in_theaterq(tmp_path / "x.csv")
    for end in (".svg", ".csv"):
        done = command(
            "show", tmp_path / "x.csv", "--from", "theaterq", "--out", tmp_path / f"y{end}"
        )
        assert done.exit_code == 0, done.output
        assert (tmp_path / f"y{end}").stat().st_size > 1000
    assert "5.00 ms" in done.output
    line = next(line for line in done.output.splitlines() if "▇" in line)
    assert len(line) <= statistics.LINE
    assert line[8] == " "  # 1.11 to 1.25 s


def two_states(seed: int = 3) -> steps.Steps:
    """20 and 4 Mbit/s, each exponential, with means of 2 s and 0.5 s, for 2000 s."""
    model = fit.Markov(20e6, 4e6, 2e9, 0.5e9)
    rates = model.draw(20_000, 1e8, np.random.default_rng(seed))
    return steps.make(np.arange(20_000) * 1e8, 2000e9, rates)


def test_a_fit_finds_the_two_states_a_trace_was_drawn_from() -> None:
    """Within what 100 ms blur: intervals with a change in them have rates between the two."""
    found = fit.fit(two_states(), "markov", 1e8, 1, 1, 1000)
    assert isinstance(found.model, fit.Markov)
    assert found.model.good_bps == pytest.approx(20e6, rel=0.03)
    assert found.model.bad_bps == pytest.approx(4e6, rel=0.2)
    assert found.model.good_mean_ns == pytest.approx(2e9, rel=0.1)
    assert found.model.bad_mean_ns == pytest.approx(0.5e9, rel=0.1)
    assert found.error.distribution < 0.03
    assert found.error.autocorrelation < 0.03
    assert found.model.stage("").startswith("- markov_link: {good: 19.")


def test_an_autoregression_keeps_distribution_and_correlation() -> None:
    """Of a lognormal rate whose logarithm is an autoregression with a = 0.9."""
    rng = np.random.default_rng(5)
    x = np.zeros(20_000)
    for i in range(1, len(x)):
        x[i] = 0.9 * x[i - 1] + np.sqrt(1 - 0.81) * rng.normal()
    trace = steps.make(np.arange(len(x)) * 1e8, len(x) * 1e8, 1e7 * np.exp(0.5 * x))
    found = fit.fit(trace, "ar", 1e8, 2, 1, 1000)
    assert isinstance(found.model, fit.Autoregression)
    assert found.model.coefficients == pytest.approx([0.9, 0.0], abs=0.02)
    assert found.error.distribution < 0.03
    assert found.error.autocorrelation < 0.03


@pytest.mark.slow
def test_a_fit_prints_a_stage_that_runs(tmp_path: Path, build: Path) -> None:
    """Both models, in a config of their own."""
    steps.write(two_states(), tmp_path / "t.csv")
    markov = command("fit", tmp_path / "t.csv")
    model = command("fit", tmp_path / "t.csv", "--model", "ar", "--out", tmp_path / "m.csv")
    second = command("fit", tmp_path / "t.csv", "--model", "ar", "--out", tmp_path / "m.csv")
    assert "is there already" in str(second.exception)
    assert steps.read(tmp_path / "m.csv").end_ns == 600e9
    for done in (markov, model):
        assert done.exit_code == 0, done.output
        stage, said = done.output.splitlines()
        assert said.startswith("# error: distribution ")
        argv = [build / "tools/sim/weir-sim", "-", "--check"]
        text = f"paths: {{forward: [{stage[2:]}], reverse: [{{delay: {{delay: 1ms}}}}]}}\n"
        text += "duration: 1s\nflows: [{cc: cubic}]\n"
        checked = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=60)
        assert checked.returncode == 0, checked.stderr


BAD = {
    ("mahimahi", "5\n3\n"): "no times in ms that never fall, the last above 0",
    ("mahimahi", "5\nx\n"): ":2: 'x' is not a number",
    ("csv", "a,b\n1,2\n"): "say with --at and --rate which columns are time and rate",
    ("csv", "at_s,rate_mbps\n1,2\n0,2\n"): "its times do not rise from row to row",
    ("csv", "at_s,rate_mbps\n1,2\n2,fast\n"): ":3: rate_mbps: 'fast' is not a number",
    ("csv", "at_s,rate_furlongs\n1,2\n2,3\n"): "'rate_furlongs' is not a column",
    ("iperf3", "{}"): "no result of iperf3 --json with intervals",
    ("leocc", "1\n2\n"): "name the file of one-way delays with --delays",
    ("pantheon", "1 ? 1500\n"): ":1: not 'ms # bytes'",
    ("5g", "a,b\n1,2\n"): "no column is Throughput or DL_bitrate",
    ("theaterq", ",2,3,4,5\n"): "no steps in it",
    ("theaterq", "1,2,3\n"): ":1: 3 columns, not the five",
    ("steps", "1\n2\n"): "say with --from what it is",
    ("steps", "at_us,rate_bps\n0,0\n9\n"): "no step has a rate",
    ("steps", "at_us,rate_bps,at_ms\n0,1,0\n9\n"): "two columns are one and the same",
    ("steps", "at_us,rate_bps\n0,1Mbit\n5,2Mbit\n5\n"): "times begin with 0 and rise",
    ("mahimahi", "1\nnan\n"): "is negative or no number",
    ("mahimahi", "1\n1e400\n"): "is negative or no number",
    ("5g", "Throughput\n5\n-1\n"): "is negative or no number",
    ("csv", "at_s,rate_mbps\n1,nan\n2,3\n"): "is negative or no number",
    ("iperf3", '{"intervals": [{"sum": 1}]}'): "has another shape than it should",
    ("iperf3", '{"intervals": ' + "[" * 10**5): "has another shape than it should",
    ("steps", "at_us,rate_bps\n0,-1Mbit\n5\n"): "'-1Mbit' is not a number",
    ("vhs", ""): "--from: 'vhs' is not a format; there is steps, mahimahi",
}


@pytest.mark.parametrize(("name", "text"), BAD)
def test_bad_recordings_are_one_sentence(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text(text)
    with pytest.raises(UserError, match=r"\S") as caught:
        formats.read(tmp_path / "bad", name, formats.Reading())
    assert BAD[name, text] in str(caught.value)
    assert caught.value.status == 2


def test_what_iperf3_omits_and_what_mm_link_drops_is_left_out(tmp_path: Path) -> None:
    """The times of what `iperf3 -O` counts begin again; a drop is `ms d pkts bytes`."""
    ends = [(0, 1, True), (1, 2, True), (0.1, 1, False), (1, 2, False)]
    sums = [
        {"start": a, "end": b, "bits_per_second": (n + 1) * 1e6, "omitted": omitted}
        for n, (a, b, omitted) in enumerate(ends)
    ]
    (tmp_path / "i.json").write_text(json.dumps({"intervals": [{"sum": s} for s in sums]}))
    found = formats.read(tmp_path / "i.json", "iperf3", formats.Reading())
    assert list(found.rate_bps) == [3e6, 4e6]
    (tmp_path / "log").write_text("0 + 1500\n0 # 1500\n4 d 1 1500\n100 # 1500\n100 - 1500 9\n")
    found = formats.read(tmp_path / "log", "pantheon", formats.Reading())
    assert (found.end_ns, list(found.delay_ns)) == (100 * MS, [9 * MS])
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbf50\n100\n")
    assert formats.read(tmp_path / "bom", "mahimahi", formats.Reading()).end_ns == 100 * MS


def test_bad_options_are_one_sentence(tmp_path: Path, weir: Any) -> None:
    in_theaterq(tmp_path / "x.csv")
    command("import", tmp_path / "x.csv", "--from", "theaterq", "--out", tmp_path / "t.csv")
    (tmp_path / "flat.csv").write_text("at_s,rate_bps\n0,1Mbit\n100\n")
    for argv, sentence in (
        (["show", "none.csv"], "none.csv: cannot be read: No such file or directory"),
        (["show", "t.csv", "--step", "soon"], "--step: 'soon' is not a time"),
        (["fit", "t.csv", "--model", "magic"], "'magic' is not a model; there is markov, ar"),
        (["fit", "t.csv", "--model", "ar"], "name a file for a trace of it with --out"),
        (["fit", "t.csv", "--step", "5s"], "2 intervals of 5.00 s are too few for a model"),
        (["fit", "flat.csv", "--step", "1s"], "the rate never changes"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)
            done = command(*argv)
        assert sentence in str(done.exception), argv
        assert getattr(done.exception, "status", None) == 2
    done = weir("trace", "import", "t.csv", "--from", "steps", "--out", "t.csv")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "is there already" in done.err
