# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a run in their order, with their captions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weir.analysis import metrics, segments, summary, windows
from weir.analysis.header import NO_LINK
from weir.base import units
from weir.report import balance, bottleneck, figures, lateness, segment_sections, theme
from weir.report.data import FlowData, RunData, busiest_link, chosen_records
from weir.report.figure import Figure, named
from weir.report.scene import BANDS, Scene, flow_styles, split_by

if TYPE_CHECKING:
    from weir.analysis.folder import Run

EVENTS_SHOWN = ("reduction", "timeout", "cc_mode", "spurious", "undo")  # of events.ring
EVERY_PACKET = 3  # telemetry level
CWND_FLOWS = 6
SEQUENCE_FLOWS = 4
SEQUENCE_POINTS = 1000  # of each flow, in time; of each kind
# Fields of `cc` records that have a figure of their own, or none.
CC_CWND = ("ts_ns", "flow_id", "group", "cwnd_segs")
CC_ELSEWHERE = (*CC_CWND, "state")
UNSET_SEGS = 1e9  # SSTHRESH_UNSET_SEGS of sender/cc/slow_start.h
# States of a flow by names of states after an ACK, and of events.
RECOVERY_STATES = {name: name for name in ("open", "recovery", "loss")}
RECOVERY_STATES |= {"reduction": "recovery", "timeout": "loss", "recovered": "open", "undo": "open"}
CC_OWN = ("obs0", "obs1", "obs2", "obs3")  # named by each congestion control


# Called with what is being done, how many steps of it are done, and of how many.
Progress = Callable[[str, int, int], None]


def in_steps(
    parts: Sequence[Callable[[], Iterator[Figure]]], on_progress: Progress | None
) -> Iterator[Figure]:
    """Yields the figures of all parts; on_progress gets how many are done, and of how many."""
    for done, part in enumerate(parts):
        if on_progress is not None:
            on_progress("drawing", done, len(parts))
        yield from part()
    if on_progress is not None:
        on_progress("drawing", len(parts), len(parts))


def draw(data: RunData, on_progress: Progress | None = None) -> Iterator[Figure]:
    """Yields each figure that the run has data for, with its caption."""
    flows, links = data.flows, data.links
    parts: list[Callable[[], Iterator[Figure]]] = []
    if flows is not None:
        parts.append(partial(draw_rates, data, flows))
    if links is not None:
        parts.append(partial(draw_links, data, links))
    if flows is not None:
        of_flows = [draw_shares, draw_base_rtts, draw_balance, draw_sequence]
        of_flows += [segment_sections.draw, draw_acks]
        parts += [partial(each, data, flows) for each in of_flows]
    rest = (draw_completion, draw_observed, draw_events, draw_lateness)
    parts += [partial(each, data) for each in rest]
    yield from in_steps(parts, on_progress)


def draw_rates(data: RunData, flows: FlowData) -> Iterator[Figure]:
    """Yields throughput and RTT over time."""
    yield named(
        "goodput",
        figures.throughput(flows.rated, flows.each, bottleneck_rates(data), data.scene),
        f"Goodput over time. Each value is a mean of {units.time(flows.length_ns)}; the areas add"
        " up to the goodput of all flows."
        + ("" if flows.few else f" At the right is the goodput per flow. {flows.drawn}")
        + bottleneck.payload_most(data.run.config, data.numbers),
    )
    if bool((flows.rated["rtt_samples"] > 0).any()):
        yield named(
            "rtt",
            figures.rtt(
                flows.rated, flows.each, bottleneck.propagation_ns(data.run.config), data.scene
            ),
            "Round-trip time over time. "
            + (
                "It is the time from a segment to its ACK in the capture"
                if data.captured
                else "The senders measured it"
            )
            + f"; each value is a mean of {units.time(flows.length_ns)}."
            + ("" if flows.few else f" {flows.drawn} The table's mean is of all samples."),
        )


def bottleneck_rates(data: RunData) -> pl.DataFrame | None:
    """Returns the busiest link's rate at the end of each interval: a schedule may change it."""
    found = busiest_link(data)
    ends = (pl.col("ts_ns") / metrics.NS_PER_S).alias("end_s")
    return found[1].select(ends, "rate_bps") if found else None


def draw_shares(data: RunData, flows: FlowData) -> Iterator[Figure]:
    """Yields the flows' shares of goodput, their windows and their recoveries."""
    count = flows.each.height
    index = metrics.jfi(flows.each["goodput_bps"].to_numpy())
    yield named(
        "shares",
        figures.shares(flows.each, data.scene),
        f"Shares of {units.count(count)} flow{'s' * (count != 1)}. Each flow's goodput"
        + (" after the warm-up" if data.scene.warmup_s else "")
        + f" is divided by the mean; Jain's index of the flows that have begun is"
        f" {units.ratio(index)}.",
    )
    chosen = metrics.typical_flows(flows.each, CWND_FLOWS)
    groups = flows.each["group"].n_unique()
    few = (
        ""
        if count <= CWND_FLOWS
        else " Each group is shown by its flows of median, least and best goodput."
    )
    if groups > CWND_FLOWS:
        few = f" Shown are the median flows of the first {CWND_FLOWS} groups."
    samples = window_samples(data.run, flows.rated, chosen)
    label, said = "cwnd", "Congestion window over time."
    if data.captured:
        label = "in flight"
        said = "Data in flight over time. Each value is the largest of an interval."
    yield named("cwnd", figures.cwnd(samples, chosen, data.scene, label), f"{said}{few}")
    episodes = recoveries(data, chosen)
    if episodes.height > 0:
        styles = flow_styles(samples.select("flow_id", "group").unique(), data.scene, chosen)
        yield named(
            "state",
            figures.states(episodes, styles, data.scene),
            "When these flows recovered from losses. They did so"
            f" {units.count(episodes.height)} time{'s' * (episodes.height != 1)}.",
        )


def draw_base_rtts(data: RunData, flows: FlowData) -> Iterator[Figure]:
    """Yields goodput against base RTT, where flows have one of their own."""
    own = base_rtts(data)
    if own is None:
        return
    shown = flows.each.join(own, on="flow_id").filter(pl.col("goodput_bps") > 0)
    if shown.height == 0:
        return
    names = summary.group_names(data.numbers)
    drawn = [
        f"{name}: {of.distribution}, {units.time(of.min_ns)} to {units.time(of.max_ns)},"
        f" median {units.time(of.median_ns)}"
        for name, group in zip(names, data.numbers.groups, strict=True)
        if (of := group.base_rtt)
    ]
    yield named(
        "base_rtt",
        figures.base_rtts(shown, data.scene),
        f"Goodput by base RTT. Each dot is a flow. Base RTTs were drawn from: {'; '.join(drawn)}.",
    )


def base_rtts(data: RunData) -> pl.DataFrame | None:
    """Returns flow_id and base_rtt_ns of the flows that drew one. None: no flow did."""
    number = data.run.values("events", "event").get("base_rtt")
    recorded = data.run.frame("events")
    if recorded is None or number is None:
        return None
    own = recorded.filter(pl.col("event") == number)
    if own.height == 0:
        return None
    return own.select("flow_id", base_rtt_ns="value").unique("flow_id", maintain_order=True)


def recoveries(data: RunData, chosen: Collection[int]) -> pl.DataFrame:
    """Returns recoveries of some flows: flow_id, from_s, to_s and state, recovery or loss.

    From the state after each ACK where it was recorded (level 2 and 3), else from the events: these
    lack the recoveries of congestion controls that do not reduce their window.
    """
    names = data.run.values("cc", "state")
    found = chosen_records(data.run, "cc", ("ts_ns", "flow_id", "state"), chosen) if names else None
    if found is None or found.height == 0 or found["flow_id"].n_unique() < len(chosen):
        names = data.run.values("events", "event")
        found = chosen_records(data.run, "events", ("ts_ns", "flow_id", "event"), chosen)
        if found.height == 0:
            return pl.DataFrame()
        found = found.rename({"event": "state"})
    state = {number: RECOVERY_STATES.get(name) for name, number in names.items()}
    named = found.with_columns(
        pl.col("state").replace_strict(state, default=None, return_dtype=pl.String)
    )
    return metrics.episodes(named.drop_nulls("state"), data.scene.duration_s)


def windowed(data: RunData, flows: FlowData) -> tuple[pl.DataFrame, float]:
    """Returns each flow in each window, and the windows' length in seconds."""
    length = windows.length_s(data.scene.duration_s, flows.length_ns)
    return windows.windows(flows.rated, length, data.scene.duration_s), length


def measured(windowed: pl.DataFrame, length_s: float, warmup_s: float) -> pl.DataFrame:
    """Returns the windows that begin when the warm-up has ended, or later."""
    begin = (pl.col("time_s") / length_s).floor() * length_s
    return windowed.filter(begin >= warmup_s - length_s * 1e-6)


def draw_balance(data: RunData, flows: FlowData) -> Iterator[Figure]:
    """Yields fairness over time, and throughput against delay."""
    each, length_s = windowed(data, flows)
    length = units.time(length_s * metrics.NS_PER_S)
    if flows.each.height > 1:
        parts = [(data.scene.group(g), part) for g, part in split_by(each, "group")]
        several = [(style, part) for style, part in parts if part["flow_id"].n_unique() > 1]
        every = [(theme.style("forward", "all flows"), each)] if len(parts) > 1 else []
        yield named(
            "fairness",
            balance.fairness([*every, *several[:BANDS]], data.scene),
            f"Jain's index of goodput over time. Each value is of the flows that were open in a"
            f" window of {length}.",
        )
    late = measured(each, length_s, data.scene.warmup_s)
    tradeoff = balance.tradeoff(
        [(data.scene.group(g), part) for g, part in split_by(late, "group")][:BANDS]
    )
    if tradeoff is not None:
        yield named(
            "tradeoff",
            tradeoff,
            "Goodput against RTT. A marker is the mean, and an ellipse one standard deviation, of a"
            f" group's flows in windows of {length}"
            + (" after the warm-up" if data.scene.warmup_s else "")
            + " in which they measured an RTT. Better is up and to the right.",
        )


def window_samples(run: Run, rated: pl.DataFrame, chosen: Collection[int]) -> pl.DataFrame:
    """Returns windows after each ACK where recorded (level 2 and 3), else at interval ends."""
    columns = ["time_s", "flow_id", "group", "cwnd_segs"]
    at_end = pl.col("ts_ns") / metrics.NS_PER_S
    acks = chosen_records(run, "cc", CC_CWND, chosen)
    if acks.height > 0 and acks["flow_id"].n_unique() == len(chosen):
        return acks.with_columns(time_s=at_end).select(columns)
    kept_rows = rated.filter(pl.col("flow_id").is_in(list(chosen)))
    return kept_rows.with_columns(time_s=at_end).select(columns)


def draw_acks(data: RunData, flows: FlowData) -> Iterator[Figure]:
    """Yields the fields of `cc` records of a few flows, and what each control observed."""
    recorded = data.run.rings("cc")
    if not recorded:
        return
    schema = recorded[0].schema
    chosen = metrics.typical_flows(flows.each, CWND_FLOWS)
    names = [field.name for field in schema.fields]
    acks = chosen_records(data.run, "cc", names, chosen)
    if acks.height == 0:
        return
    acks = acks.with_columns(time_s=pl.col("ts_ns") / metrics.NS_PER_S)
    styles = flow_styles(acks.select("flow_id", "group").unique(), data.scene, chosen)
    shown = [
        figures.Quantity.of(field.name)
        for field in schema.fields
        if field.name not in CC_ELSEWHERE + CC_OWN and (acks[field.name] != 0).any()
    ]
    # Where 0 says that there is no number, the schema says so.
    none = [field.name for field in schema.fields if ", 0 if no" in field.meaning]
    acks = acks.with_columns(pl.when(pl.col(name) != 0).then(pl.col(name)) for name in none)
    acks = without_unset(acks)
    if not shown:
        return
    yield named(
        "acks",
        figures.panels(shown, by_flow(acks, styles), data.scene),
        "What the congestion controls were given. There is a value after each ACK.",
    )
    algorithms = [group.cc for group in data.numbers.groups]
    for observer in schema.observers:
        groups = [index for index, cc in enumerate(algorithms) if cc == observer.name]
        own = acks.filter(pl.col("group").is_in(groups))
        if own.height > 0:
            yield named(
                f"acks-{observer.name}",
                figures.panels(
                    [
                        figures.Quantity.of(*named)
                        for named in zip(CC_OWN, observer.observed, strict=False)
                    ],
                    by_flow(own, styles),
                    data.scene,
                ),
                f"What {theme.style(observer.name).label} observed. There is a value after each"
                " ACK.",
            )


def draw_sequence(data: RunData, flows: FlowData) -> Iterator[Figure]:
    """Yields time-sequence graphs, where segments were recorded (level 2 and 3)."""
    chosen = metrics.typical_flows(flows.each, SEQUENCE_FLOWS)
    names = ("ts_ns", "flow_id", "seq", "ack", "payload_bytes", "kind", "forward")
    found = chosen_records(data.run, "segments", names, chosen)
    if found.height == 0:
        return
    forward = pl.col("forward") == 1
    is_resent = (pl.col("kind") & segments.RETRANSMISSION) != 0
    top = pl.when(forward).then(pl.col("seq") + pl.col("payload_bytes")).otherwise("ack")
    bins = (pl.col("ts_ns") / (data.scene.duration_s * metrics.NS_PER_S) * SEQUENCE_POINTS).floor()
    numbered = found.sort("ts_ns").select(
        "flow_id",
        forward=forward,
        resent=forward & is_resent,
        data=~forward | (pl.col("payload_bytes") > 0),
        time_s=pl.col("ts_ns") / metrics.NS_PER_S,
        bin=bins,
        bytes=segments.unwrapped(top),
    )
    numbered = numbered.filter("data")
    # The last of each bin, as these numbers rise; dots for what was sent again, at most 3 in a bin.
    last = (
        numbered.filter(~pl.col("resent"))
        .group_by("flow_id", "forward", "bin", maintain_order=True)
        .agg(pl.col("time_s").last(), pl.col("bytes").max())
        .sort("flow_id", "time_s")
    )
    resent = numbered.filter("resent")
    dots = resent.group_by("flow_id", "bin", maintain_order=True).head(3)
    yield named(
        "sequence",
        figures.sequence(
            last.filter("forward"), last.filter(~pl.col("forward")), dots, chosen, data.scene
        ),
        "Time-sequence graphs. Sequence numbers are bytes from each connection's first;"
        f" {units.count(resent.height)} segments were sent again."
        + ("" if flows.each.height <= SEQUENCE_FLOWS else " The flows shown are typical ones."),
    )


def without_unset(acks: pl.DataFrame) -> pl.DataFrame:
    """Returns ACKs with null for the ssthresh before the first loss, which is no number."""
    own = [pl.col(name) for name in CC_OWN if name in acks.columns]
    return acks.with_columns(pl.when(column < UNSET_SEGS).then(column) for column in own)


def by_flow(
    acks: pl.DataFrame, styles: Mapping[int, theme.Style]
) -> list[tuple[theme.Style, pl.DataFrame]]:
    """Returns the look and the records of each flow that has any."""
    parts = ((style, acks.filter(pl.col("flow_id") == flow)) for flow, style in styles.items())
    return [(style, part) for style, part in parts if part.height > 0]


def draw_observed(data: RunData) -> Iterator[Figure]:
    """Yields what disciplines and stages observed, where something happened."""
    found = list(observations(data.run))
    moved = [
        o for o in found if any((o.numbers[name] != 0).any() for name in o.numbers.columns[1:])
    ]
    for n, o in enumerate(moved[: figures.LINKS_DRAWN], start=1):
        style = theme.style(o.name)
        quantities = [figures.Quantity.of(name) for name in o.numbers.columns[1:]]
        numbers = o.numbers.with_columns(time_s=pl.col("ts_ns") / metrics.NS_PER_S)
        yield named(
            f"observed-{o.name}-{n}",
            figures.panels(quantities, [(style, numbers)], data.scene),
            f"What {style.label} observed at {place(data, o)}. There is a value at each interval's"
            " end.",
        )


def observations(run: Run) -> Iterator[metrics.Observed]:
    """Yields what each discipline and stage observed."""
    for ring, events in run.frames("events"):
        observers = {o.number: (o.name, o.observed) for o in ring.schema.observers}
        event = ring.values("event").get("observed")
        if event is not None:
            yield from metrics.observed(events, event, observers)


def place(data: RunData, observed: metrics.Observed) -> str:
    """Returns the link or the path where something was observed."""
    if observed.link != NO_LINK:
        return link_name(data.scene, observed.link)
    paths = list(data.run.config.get("paths", {}))
    path = observed.path
    return f"path {paths[path]}" if path < len(paths) else f"path {path}"


def draw_links(data: RunData, links: pl.DataFrame) -> Iterator[Figure]:
    """Yields queue over time and the distribution of its delay."""
    length = metrics.step_ns(links)
    # Over the largest rate: one that was 0 at the end of an interval has still sent in it.
    busy = (
        links.group_by("link")
        .agg(load=pl.col("out_bytes").sum() * 8 / pl.col("rate_bps").max().clip(1))
        .filter(pl.col("load") > 0)
        .sort("load", descending=True)
    )
    if busy.height == 0:
        return
    top = float(busy["load"][0])
    kept = busy.filter(pl.col("load") > 0.05 * top)["link"].to_list()[: figures.LINKS_DRAWN]
    yield named(
        "queue",
        figures.queue(links.filter(pl.col("link").is_in(kept)), data.scene),
        f"Queue and queueing delay over time. Lines are means of {units.time(length)}; the shade"
        " above reaches to the largest value in each.",
    )
    distributions, caption = delays(data, links, kept)
    if distributions:
        yield named(
            "delay",
            figures.delay_cdf(distributions),
            "Distribution of queueing delay"
            + (" after the warm-up" if data.scene.warmup_s else "")
            + f", and its tail. {caption}",
        )


def delays(
    data: RunData, timed: pl.DataFrame, links: Iterable[int]
) -> tuple[list[figures.Cdf], str]:
    """Returns distributions of queueing delay from the best there is, and a sentence on it."""
    known = {name: link for name, link in data.numbers.links.items() if link.sojourn_cdf}
    telemetry = data.numbers.telemetry
    if not known or (telemetry and telemetry.level == EVERY_PACKET):
        packets = packet_delays(data, links)
        if packets:
            return packets, "It has every recorded packet."
    found = []
    for link in links:
        name = link_name(data.scene, link)
        if name in known:
            own = known[name]
            delay, share = np.asarray(own.sojourn_cdf, dtype=np.float64).T
            delay, share = metrics.within_bins(delay, share, own.sojourn_max_ns or np.inf)
            marks = (("median", own.sojourn_p50_ns, 0.5), ("p99", own.sojourn_p99_ns, 0.99))
            points = [(label, at, q) for label, at, q in marks if at is not None]
            found.append(figures.Cdf(name, delay, share, points, binned=True))
    if found:
        return found, "It has all packets; each delay is known to within 3 %."
    for link in links:
        part = metrics.between(timed, data.scene.warmup_s * metrics.NS_PER_S).filter(
            pl.col("link") == link
        )
        delay, share = metrics.ecdf(part["sojourn_mean_ns"], part["out_pkts"])
        if delay.size > 0:
            found.append(cdf_of(link_name(data.scene, link), delay, share))
    return found, "It has means of intervals, weighted by packets: single packets vary more."


def cdf_of(name: str, delay: metrics.Floats, share: metrics.Floats) -> figures.Cdf:
    """Returns a distribution with its median and 99th percentile marked."""
    points = [
        (label, value, q)
        for label, q in (("median", 0.5), ("p99", 0.99))
        if (value := metrics.quantile_of_cdf(delay, share, q)) is not None
    ]
    return figures.Cdf(name, delay, share, points)


def link_name(scene: Scene, link: int) -> str:
    return scene.links[link] if link < len(scene.links) else f"link {link}"


def packet_delays(data: RunData, links: Iterable[int]) -> list[figures.Cdf]:
    """Returns CDFs of time in the queue from packets.ring, if packets were recorded."""
    warmup_ns = data.scene.warmup_s * metrics.NS_PER_S
    delays = {link: metrics.Binned() for link in links}
    dequeue = data.run.values("packets", "event").get("dequeue", -1)
    for part in data.run.chunks("packets", ("ts_ns", "sojourn_ns", "event", "link")):
        left = (part["event"] == dequeue) & (part["ts_ns"] > warmup_ns)
        for link, found in delays.items():
            found.add(part["sojourn_ns"][left & (part["link"] == link)])
    distributions = []
    for link, found in delays.items():
        delay, share = found.cdf()
        if delay.size > 0:
            distributions.append(cdf_of(link_name(data.scene, link), delay, share))
    return distributions


def draw_events(data: RunData) -> Iterator[Figure]:
    """Yields drops, marks, window reductions, timeouts and mode changes as rates."""
    links, length_s = data.links, data.scene.duration_s / windows.WINDOWS
    if links is not None:  # whole intervals: else one bin has more of them than the next
        step_s = metrics.step_ns(links) / metrics.NS_PER_S
        length_s = max(1, round(length_s / step_s)) * step_s
    kinds = []
    if links is not None:
        kinds += [
            links.select("ts_ns", pl.lit(kind).alias("kind"), count=pl.col(kind).cast(pl.Float64))
            for kind in ("drops", "marks")
        ]
    recorded = data.run.frame("events")
    if recorded is not None:
        names = {number: name for name, number in data.run.values("events", "event").items()}
        kind = pl.col("event").replace_strict(names, default=None, return_dtype=pl.String)
        shown = recorded.select("ts_ns", kind=kind, count=pl.lit(1.0))
        kinds.append(shown.filter(pl.col("kind").is_in(EVENTS_SHOWN)))
    if not kinds:
        return
    number = ((pl.col("ts_ns") - 1) / (length_s * metrics.NS_PER_S)).floor()
    begin = pl.col("bin") * length_s
    # The last bin ends with the run; of a killed one, whose end is not known, with its last record.
    width = pl.min_horizontal(pl.lit(length_s), data.scene.duration_s - begin).clip(1e-9)
    counts = (
        pl.concat(kinds)
        .filter((pl.col("count") > 0) & (pl.col("ts_ns") > 0))
        .group_by("kind", bin=number)
        .agg(pl.col("count").sum())
        .with_columns(time_s=begin + width / 2, width_s=width, per_s=pl.col("count") / width)
    )
    if counts.height > 0:
        yield named(
            "events",
            figures.events(counts, data.scene),
            "Losses, marks and reactions over time. Each bar is the number per second in"
            f" {units.time(length_s * metrics.NS_PER_S)}.",
        )


def draw_completion(data: RunData) -> Iterator[Figure]:
    """Yields completion times of the transfers of sources with a schedule."""
    transfers = data.run.frame("transfers")
    if transfers is None:
        return
    closed = data.run.values("transfers", "event")["close"]
    warmup_ns = data.scene.warmup_s * metrics.NS_PER_S
    times = metrics.completion_times(transfers, closed, warmup_ns)
    unfinished = int(times["unfinished"].sum())
    times = times.filter(pl.col("mean_bytes") > 0)  # an application may have sent nothing
    if times.height > 0:
        yield named(
            "fct",
            figures.completion(times, data.scene),
            "Completion time by size. Solid lines are the median, of the slowdown the mean; dotted"
            f" ones the 99th percentile. There were {units.count(int(times['count'].sum()))}"
            " transfers. The slowdown is the time divided by that on an empty path."
            + (
                f" {units.count(unfinished)} others did not finish: theirs would be longer."
                if unfinished
                else ""
            ),
        )


def draw_lateness(data: RunData) -> Iterator[Figure]:
    """Yields a live run's own error; in virtual time there is none."""
    if data.run.summary.program == summary.SIMULATOR:
        return
    found = list(lateness.tails(data.numbers, lateness.KNOWN))
    timed = lateness.in_stretches(data.run, data.scene.duration_s)
    if found or timed is not None:
        said = []
        if found:
            said.append(
                "A line is the share of packets that were transmitted later than they should by"
                " more than a time; 'undisturbed' are those while the host left the programs their"
                " CPUs."
            )
        if timed is not None:
            said.append(
                "Over time, there are the largest and mean lateness of the switch's packets in each"
                f" {units.time(data.scene.duration_s / lateness.BINS * metrics.NS_PER_S)}."
            )
        yield named(
            "emulation",
            lateness.of_a_run(found, timed, data.scene),
            f"The run's own error. {' '.join(said)}",
        )
