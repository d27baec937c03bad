# SPDX-License-Identifier: BSD-3-Clause
"""weir measure: a path between two hosts, and a run folder of what was measured.

    idle     pings alone
    load     one TCP flow of iperf3, with pings, tcp_info, and captures where they are permitted
    search   UDP at rising rates for a second each, until a quarter of it is lost
    fill     UDP at 1.6 times the rate that arrived: keeps the bottleneck's queue full
    half     UDP at half of it: keeps the queue empty, so that what is lost is lost at random

Without UDP (`tcp_only`) the last three are left out, and less can be known.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.console import Console

from weir.analysis import captures, folder, imported, measured, run_summary
from weir.analysis.measured import Measured
from weir.base.errors import UserError
from weir.base.signals import held
from weir.identify import table
from weir.measure import far
from weir.runner import pcap
from weir.runner.session import end_if_interrupted

CAPTURED_S = 1.2  # until tcpdump has written all: it takes packets from the kernel each second
FILES = ("near.pcap", "far.pcap", "iperf3.json")
IDLE_S, SEARCH_S, FILL_S, HALF_S = 2.0, 1.0, 4.0, 3.0
FACTOR = 4.0  # between two trials of the search
FILLS_MAX = 3
OVER, UNDER = 1.6, 0.5  # of the rate that arrived
HEADERS = {4: 28, 6: 48}  # bytes of IP and UDP


@dataclass(frozen=True)
class Wanted:
    """Options of a call of `weir measure`."""

    host: str
    ssh: str | None  # the command; None: a server runs there
    port: int
    seconds: float
    control: str | None
    download: bool
    tcp_only: bool
    most_bps: float
    mtu_bytes: int


def measure(wanted: Wanted, place: Path, console: Console) -> Measured:
    """Measures, with captures and iperf3's result in `place`. UserError: it cannot be measured."""
    address = far.resolved(far.address_of(wanted.ssh, wanted.host) if wanted.ssh else wanted.host)
    flow_port = far.free_port()
    client = far.Client(wanted.host, address, wanted.port, wanted.download)
    near_file, far_file = place / "near.pcap", place / "far.pcap"
    with ExitStack() as stack:
        other = None
        if wanted.ssh:
            other = stack.enter_context(far.Far(wanted.ssh, wanted.host, wanted.port, flow_port))
        since = time.time()
        with held():  # or it would be left behind where a signal comes as it starts
            pings = stack.enter_context(far.Pings(address))
        console.print(f"{IDLE_S:.0f} s without load", soft_wrap=True)
        time.sleep(IDLE_S)
        console.print(f"{wanted.seconds:g} s of one TCP flow", soft_wrap=True)
        more = ("-C", wanted.control) if wanted.control else ()
        with ExitStack() as loaded:
            if shutil.which("tcpdump"):
                with held():
                    capture = loaded.enter_context(far.Capture(near_file, flow_port))
                capture.wait_ready()
            begin, _, result = client.run(wanted.seconds, "--cport", str(flow_port), *more)
            (place / "iperf3.json").write_text(client.text)
            time.sleep(CAPTURED_S)
        group = imported.summary(place / "iperf3.json")["groups"][0]
        found = Measured(
            host=wanted.host,
            address=address,
            download=wanted.download,
            control=result.end.sender_tcp_congestion if result.end else None,
            mtu_bytes=wanted.mtu_bytes,
            load_s=(begin - since, begin - since + wanted.seconds),
            pings=[],
            samples=result.samples(),
            counted=result.counted(wanted.download),
            trials=[],
            goodput_bps=group["goodput_bps"],
            retransmits=group["retransmits"],
        )
        if not wanted.tcp_only:
            try_udp(client, wanted, found, pings, since, console)
        pings.stop()
        found.pings = pings.answered(since)
        if other and not other.capture(far_file):
            found.notes.append("no capture at the other end: tcpdump is not there or not permitted")
    if not near_file.exists() or near_file.stat().st_size == 0:
        near_file.unlink(missing_ok=True)
        found.notes.append("no capture here: tcpdump is not there or not permitted")
    if not found.pings:
        found.notes.append("no ping was answered: round trips are TCP's, whose queue is in them")
    return found


def try_udp(
    client: far.Client,
    wanted: Wanted,
    found: Measured,
    pings: far.Pings,
    since: float,
    console: Console,
) -> None:
    """Adds the trials of UDP: a search, and if it found the rate some over and one under it."""
    payload = wanted.mtu_bytes - HEADERS[6 if ":" in found.address else 4]

    def trial(rate_bps: float, seconds: float) -> bool:
        """Returns whether the path was full."""
        console.print(f"{seconds:g} s of UDP at {rate_bps / 1e6:.3g} Mbit/s", soft_wrap=True)
        found.trials.append(client.trial(rate_bps, seconds, payload, since))
        found.pings = pings.answered(since)
        return found.trials[-1].is_full

    try:
        rate_bps = min(max(2 * found.rate_bps, 1e6), wanted.most_bps)
        while not trial(rate_bps, SEARCH_S):
            if rate_bps >= wanted.most_bps:
                found.notes.append(
                    f"UDP at {rate_bps / 1e6:g} Mbit/s did not fill the path: --most"
                )
                return
            rate_bps = min(rate_bps * FACTOR, wanted.most_bps)
        for _ in range(FILLS_MAX):  # where a host stands still, the path is not full all the time
            full = trial(min(OVER * found.rate_bps, wanted.most_bps), FILL_S)
            if full and measured.spread(found.waits(found.trials[-1])) <= measured.STEADY:
                break
        trial(UNDER * found.rate_bps, HALF_S)
    except UserError as error:
        found.notes.append(f"UDP was not measured: {error}")


def write(wanted: Wanted, out: Path, force: bool, console: Console) -> Path:
    """Measures, and writes a run folder; however it ends, that is complete or not there."""
    if out.exists() and not force:
        raise UserError(f"{out}: is there: choose another --out, or --force replaces it")
    with tempfile.TemporaryDirectory(prefix="weir-measure-") as temporary:
        place = Path(temporary)
        found = measure(wanted, place, console)
        run = place / "run"
        compared(found, place, console)
        sent = place / ("far.pcap" if wanted.download else "near.pcap")
        if not sent.exists():
            sent = place / "near.pcap"
        if sent.exists():
            settings = {"level": "1", "title": f"{wanted.host}, measured"}
            status = pcap.run_pcap("analyze", [str(sent)], run, settings, False, console)
            end_if_interrupted(status)
            if status != 0:
                raise UserError(f"{sent.name}: the capture could not be analysed", 1)
            identified(found, run, sent, console)
        else:
            imported.write(place / "iperf3.json", run)
        (run / measured.FILE).write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
        for name in FILES:
            if (place / name).exists():
                (place / name).replace(run / name)
        keep(run, out)
    return out


def keep(run: Path, out: Path) -> None:
    """Moves a run folder to its place; that of an earlier run is cleared before."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with folder.locked(out):
        if out.exists():
            folder.clear(out)
            for name in FILES:
                (out / name).unlink(missing_ok=True)
        try:
            shutil.copytree(run, out, dirs_exist_ok=True)
        except BaseException:
            folder.clear(out)
            raise


def compared(found: Measured, place: Path, console: Console) -> None:
    """Notes losses and the queueing delay between the captures of both ends."""
    files = [str(place / name) for name in ("near.pcap", "far.pcap")]
    if found.download:
        files.reverse()
    if not all(Path(file).exists() for file in files):
        return
    run = place / "compared"
    status = pcap.run_pcap("compare", files, run, {"level": "1"}, False, console)
    end_if_interrupted(status)
    if status != 0:
        found.notes.append("the captures of both ends could not be compared")
        return
    links = run_summary.comparison(folder.read_json(run / "summary.json"), str(run)).links
    data = links.get("forward")  # from the first capture, the sender's
    if data is not None and data.matched:
        found.sent_segs, found.lost_segs = data.entered, data.drops
        found.lost_by, found.queue_mean_ns = "both captures", data.queue_mean_ns


def identified(found: Measured, run: Path, sent: Path, console: Console) -> None:
    """Notes the control that the capture shows, and losses if the captures were not compared."""
    flows = table.of_captures([str(sent)], console)
    named = [flow.found for flow in flows if flow.found]
    if named:
        found.identified, found.confidence = named[0].control, named[0].confidence
    rows = captures.flows(folder.load(run))
    if found.lost_by is None and rows.height and "lost_segs" in rows.columns:
        found.sent_segs, found.lost_segs = (
            int(rows["sent_segs"].sum()),
            int(rows["lost_segs"].sum()),
        )
        found.lost_by = "the sender's capture"
