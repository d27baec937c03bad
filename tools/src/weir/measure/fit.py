# SPDX-License-Identifier: BSD-3-Clause
"""weir fit: a link, a delay and random loss that would explain a measured path.

rate     of IP, in windows of 0.5 s: the 75th percentile of what arrived while UDP kept the queue
         full; without UDP the 95th percentile of what TCP delivered over its queue
base RTT the smallest round trip of a ping, less the time that the link takes to send it
buffer   (round trip of pings while the queue was full - smallest) * rate, in frames of the MTU
loss     of UDP at half of the rate, which leaves the queue empty
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np

from weir import api
from weir.analysis import folder, latency, measured
from weir.analysis.measured import PING_BYTES, STARTED_S, Measured, Trial
from weir.analysis.ring import Values
from weir.base import units
from weir.base.errors import UserError, one_line
from weir.base.page import Column, Table
from weir.measure.measure import IDLE_S

FRAME = 18  # bytes of Ethernet around an IP packet: a queue's limit counts them
WAITS_MIN = 5  # pings in a full queue
STANDING = 0.05  # of the base RTT: a queue that is less may be noise
LEVEL = 0.95  # of the interval of the loss
NEAR = 0.9  # of the rate
CALM = 0.7  # of the rate: less leaves the queue empty
RARE = 1e-4  # a chance that is none
KNOWN = {"reno": "newreno"}  # Linux's names of controls that have another here
CONTROLS = ("newreno", "cubic", "bbr", "vegas", "westwood", "illinois", "dctcp", "copa")


class Fitted(msgspec.Struct):
    """A model of a path; None: not known, and `unknown` has a sentence on why."""

    rate_bps: float | None = None  # of IP packets
    rate_at_least_bps: float | None = None
    base_rtt_ns: float | None = None
    buffer_bytes: float | None = None  # as a queue's limit counts: with Ethernet's 18 bytes
    buffer_at_least_bytes: float | None = None
    loss: float | None = None
    loss_low: float | None = None
    loss_high: float | None = None
    unknown: list[str] = []

    @property
    def table(self) -> Table:
        return Table(COLUMNS, [self])


COLUMNS = (
    Column("rate", "rate_bps"),
    Column("base RTT", "base_rtt_ns"),
    Column("buffer", "buffer_bytes"),
    Column("loss", "loss", "%"),
    Column("at least", "loss_low", "%"),
    Column("at most", "loss_high", "%"),
)


def fit(found: Measured) -> Fitted:
    """Returns the model of a measurement. UserError: not even a round trip was measured."""
    least_ns = found.least_rtt_ns
    if least_ns is None:
        raise UserError("no round trip was measured: neither pings nor tcp_info", 1)
    model = Fitted()
    filled = [trial for trial in found.trials if trial.is_full and trial.arrived]
    # The first is short, that of a search; where less arrived, a host stood still.
    filled = [
        t for t in filled[1:] if t.arrived * found.mtu_bytes * 8 > NEAR * found.rate_bps
    ] or filled
    by_udp(model, found, filled) if filled else by_tcp(model, found, least_ns)
    rate_bps = model.rate_bps or model.rate_at_least_bps or 0.0
    pinged = PING_BYTES * 8e9 / rate_bps if rate_bps and found.pings else 0.0
    model.base_rtt_ns = max(least_ns - pinged, 1.0)
    random_loss(model, found)
    model.unknown.append(
        "Not known: cross traffic, which counts as a lower rate; how a link counts a packet"
        " (rates are of IP); which of both directions has the delay (each has half of it here)."
    )
    return model


def by_udp(model: Fitted, found: Measured, filled: list[Trial]) -> None:
    """Fits rate and buffer to trials that kept the queue full."""
    model.rate_bps = found.rate_bps
    waits = np.concatenate([found.waits(trial) for trial in filled])
    if waits.size < WAITS_MIN:
        model.unknown.append("Buffer not known: too few pings were answered while it was full.")
        return
    if (spread := measured.spread(waits)) > measured.STEADY:
        model.unknown.append(
            f"Rate and buffer are uncertain: the full queue's delay varied by"
            f" {units.percent(spread, 0)}, as on hosts with other work."
        )
    # A ping waits for the packets in the queue and the rest of the one before them. The limit is a
    # quarter of a packet more on average: a queue is of whole packets, and one has just left it.
    packet_ns = found.mtu_bytes * 8e9 / model.rate_bps
    packets = densest(waits, packet_ns) / packet_ns + 0.25
    model.buffer_bytes = packets * (found.mtu_bytes + FRAME)
    if packets < 10:
        model.unknown.append(f"A buffer of {packets:.0f} packets is known to half a packet only.")


def densest(values: Values, width: float) -> float:
    """Returns the mean of the values in that window of a width in which most of them are.

    A queue that stays full has one delay, to within a packet's time; what a busy host adds or takes
    is of all sizes. Where no window holds an eighth of the values, it is wider.
    """
    ordered = np.sort(values)
    count = max(ordered.size // 8, WAITS_MIN)
    width = max(width, float((ordered[count - 1 :] - ordered[: ordered.size - count + 1]).min()))
    after = np.searchsorted(ordered, ordered + width, "right")
    first = int(np.argmax(after - np.arange(ordered.size)))
    return float(ordered[first : after[first]].mean())


def by_tcp(model: Fitted, found: Measured, least_ns: float) -> None:
    """Fits rate and buffer to the load: both are known only if its queue was there, and full."""
    begin_s, end_s = found.load_s
    waits = found.rtts(begin_s + STARTED_S, end_s) - least_ns
    if not found.load_rates_bps:
        raise UserError("what arrived is not known: iperf3's server said nothing of it", 1)
    wire = found.mtu_bytes / (found.mtu_bytes - measured.HEADERS)
    rate_bps = measured.percentile(found.load_rates_bps, 95) * wire
    if not waits.size or np.median(waits) < STANDING * least_ns:
        model.rate_at_least_bps = rate_bps
        model.unknown.append("Rate and buffer not known: TCP alone kept no queue there.")
        return
    model.rate_bps = rate_bps
    largest = float(waits.max()) * rate_bps / 8e9 * (1 + FRAME / found.mtu_bytes)
    if found.lost_segs or found.retransmits:
        model.buffer_bytes = largest
    else:
        model.buffer_at_least_bytes = largest
        model.unknown.append("Buffer not known: it never filled, as nothing was lost.")


def random_loss(model: Fitted, found: Measured) -> None:
    """Fits the loss to trials that left the queue empty, but for intervals with bursts of it."""
    from scipy import stats

    calm = [t for t in found.trials if model.rate_bps and t.rate_bps < CALM * model.rate_bps]
    counts = [(c.lost or 0, (c.received or 0) + (c.lost or 0)) for t in calm for c in t.counted]
    counts = sorted((each for each in counts if each[1]), key=lambda each: each[0] / each[1])
    if not counts:
        model.unknown.append("Random loss not known: no UDP was sent below the rate.")
        return
    bursts = 0
    while len(counts) > 1:  # a host that stood still sends much at once, and fills a short queue
        lost, sent = map(sum, zip(*counts[:-1], strict=True))
        most = stats.binom.isf(RARE, counts[-1][1], (lost + 1) / sent)
        if counts[-1][0] <= most:
            break
        counts.pop()
        bursts += 1
    lost, sent = map(sum, zip(*counts, strict=True))
    ends = stats.binomtest(lost, sent).proportion_ci(LEVEL)
    model.loss, model.loss_low, model.loss_high = lost / sent, float(ends.low), float(ends.high)
    if bursts:
        model.unknown.append(f"Loss is without that of {bursts} intervals that had bursts of it.")
    if lost <= 1:
        model.unknown.append(
            f"Loss is not known below {units.percent(model.loss_high)}: {lost} of {sent:,} packets."
        )


def config_text(found: Measured, model: Fitted) -> str:
    """Returns the model as a config, with what is not known in its comment."""
    rate_bps = model.rate_bps or model.rate_at_least_bps or 0.0
    frame = found.mtu_bytes + FRAME
    limit = max(model.buffer_bytes or model.buffer_at_least_bytes or 0.0, frame)
    if model.buffer_bytes is None and model.buffer_at_least_bytes is None:
        limit = max(rate_bps * (model.base_rtt_ns or 0.0) / 8e9, frame)  # a BDP, for want of better
    named = KNOWN.get(found.control or "", found.control or "cubic")
    notes = list(model.unknown)
    if named not in CONTROLS:
        notes.append(f"There is no {named} here: the model's flow is cubic.")
        named = "cubic"
    way = "{delay: {delay: %.0fns}}" % ((model.base_rtt_ns or 0.0) / 2)
    length_s = IDLE_S + found.load_s[1] - found.load_s[0]
    pings = "{request: {think: 50ms, times: fixed, sizes: {law: fixed, mean: 32B}}}"
    comment = "".join(f"# {note}\n" for note in notes)
    return f"""# The path to {one_line(found.host)}, fitted to a measurement.
{comment}seed: 1
duration: {length_s:g}s
warmup: {IDLE_S + STARTED_S:g}s
paths:
  forward:
    - loss: {{rate: {model.loss or 0.0:.8f}}}
    - link: {{rate: {rate_bps:.0f}bit, framing: ip, queue: {{fifo: {{limit: {limit:.0f}B}}}}}}
    - {way}
  reverse:
    - {way}
flows:
  - {{name: load, cc: {named}, host: linux, start: {IDLE_S:g}s}}
  - {{name: pings, cc: newreno, source: {pings}}}
telemetry: {{level: 1, interval: 100ms}}
"""


class Compared(msgspec.Struct):
    """A number as measured and as the model's run has it."""

    name: str
    unit: str
    measured: float | None
    model: float | None

    @property
    def residual(self) -> float | None:
        """The model's, relative to the measurement."""
        if self.measured is None or self.model is None or not self.measured:
            return None
        return self.model / self.measured - 1


def table(rows: list[Compared]) -> Table:
    """Returns the table of measurement, model and residual."""
    columns = ("", "measured", "model", Column("residual", unit="%"))
    values = [
        [
            one.name,
            units.shown(one.measured, one.unit),
            units.shown(one.model, one.unit),
            one.residual,
        ]
        for one in rows
    ]
    return Table(columns, values)


def write(place: Path, text: str, found: Measured, run: bool, force: bool) -> list[Compared]:
    """Writes the config; with `run` returns what its run gives, which stands beside it.

    However that ends early, neither is there: the next call begins anew.
    """
    out = place.with_suffix("")
    if out == place:
        raise UserError(f"--out: {place}: write a name that ends with .yaml")
    for taken, there in ((place, place.exists()), (out, run and folder.is_run(out))):
        if there and not force:
            raise UserError(f"{taken} is there already: --force replaces it")
    folder.write_whole(place, text)
    try:
        return compare(found, place, out, force) if run else []
    except BaseException:
        place.unlink()
        if folder.is_run(out):
            folder.clear(out)
            with suppress(OSError):
                out.rmdir()
        raise


def compare(found: Measured, config: Path, out: Path, force: bool) -> list[Compared]:
    """Runs the model in virtual time, and returns both sides' numbers."""
    run = api.run(config, out=out, force=force)
    load = run.summary.groups[0]
    under, real = latency.under_load(run) or latency.UnderLoad(*[None] * 6), found.under_load
    resent = [one.retransmits or 0 for one in found.samples if one.end_s > STARTED_S]
    pairs = {
        "idle RTT": (real.idle_ns, under.idle_ns, "ns"),
        "RTT under load": (real.median_ns, under.median_ns, "ns"),
        "p95": (real.p95_ns, under.p95_ns, "ns"),
        "goodput": (
            float(np.mean(found.load_rates_bps)) if found.load_rates_bps else None,
            load.goodput_bps,
            "bit/s",
        ),
        "retransmits": (sum(resent) if resent else None, load.retransmits, "count"),
    }
    return [Compared(name, unit, a, b) for name, (a, b, unit) in pairs.items()]
