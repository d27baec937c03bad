# SPDX-License-Identifier: BSD-3-Clause
"""summary.json as tables for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec import UNSET, to_builtins
from rich.console import Console

from weir.analysis import model_parts as parts
from weir.analysis.model_parts import Fact, Group, IpFlow, Limits, Link, PathLedger, Why
from weir.analysis.run_summary import RunLedger, RunSummary
from weir.base import units
from weir.base.errors import one_line
from weir.base.foreign import Json
from weir.base.page import Column, Table
from weir.base.terminal import print_table

GROUPS = (
    Column("group"),
    Column("cc"),
    Column("flows", unit="count"),
    Column("goodput", "goodput_bps"),
    Column("share", unit=partial(units.percent, decimals=1)),
    Column("JFI", unit="ratio"),
    Column("mean RTT", "rtt_mean_ns"),
    Column("drops", unit="count"),  # of the paths
    Column("retransmits", unit="count"),
    Column("bytes resent", "rtx_overhead", "%"),
    Column("window reductions", "cwnd_reductions", "count"),
)
LINKS = (
    Column("link"),
    Column("rate", unit=""),
    Column("used", "utilisation", "%"),
    Column("mean queue", "queue_mean_pkts", "pkt"),
    Column("delay", "queue_mean_ns"),
    Column("p99 delay", "sojourn_p99_ns"),
    Column("drops", unit="count"),
    Column("marks", unit="count"),
)
CARDS = (
    Column("cards", "side"),
    Column("hosts", unit="count"),
    Column("interrupts", unit="count"),
    Column("packets per interrupt"),
    Column("segments joined", "segs_per_handover"),
    Column("drops", unit="count"),
    Column("processors busy", "busy", "%"),
    Column("busiest", "busy_max", "%"),
)
EMULATION = (
    Column("emulation error", "name"),
    Column("median", "p50_ns"),
    Column("p99", "p99_ns"),
    Column("p99.9", "p999_ns"),
    Column("largest", "max_ns"),
    Column("rate", unit=""),
)

NEVER_ENDED = "did not end by itself"
SEED_UNUSED = "the seed changes nothing (no loss, no jitter, nothing random was drawn)"
ANALYSER = "weir-pcap"  # a summary's `program` of a capture
SIMULATOR = "weir-sim"  # a summary's `program` in virtual time


def group_names(summary: RunSummary) -> list[str]:
    """Returns the groups' names; those of several groups with their place among all."""
    names = [group.name or group.cc or str(index) for index, group in enumerate(summary.groups)]
    alike = Counter(names)
    return [
        f"{name}, group {index}" if alike[name] > 1 else name for index, name in enumerate(names)
    ]


def total(values: Iterable[float | None]) -> float | None:
    """Returns the sum of numbers; None if one of them is not known, or there is none."""
    every = list(values)
    known = [value for value in every if value is not None]
    return sum(known) if known and len(known) == len(every) else None


def of_flows(summary: RunSummary, number: Callable[[Group], float | None]) -> float | None:
    """Returns a number's sum over all groups, or None (see total)."""
    return total(map(number, summary.groups))


def groups(summary: RunSummary) -> Table:
    """Returns the table of groups of flows, with what came back and what was not TCP."""
    rows: list[Json] = []
    for index, (name, group) in enumerate(zip(group_names(summary), summary.groups, strict=True)):
        rows.append(own_row(name, group))
        if group.back:  # what the side that was opened has sent
            rows.append(own_row(f"{name}, back", group.back))
        kinds: dict[str, list[IpFlow]] = {}
        for flow in summary.ip_flows:
            if flow.group == index and not counted_as_flow(group, flow):
                back = " back" if flow.direction == "reverse" else ""
                kinds.setdefault(f"{name}, {flow.protocol}{back}", []).append(flow)
        rows += [ip_row(kind, flows) for kind, flows in kinds.items()]
    if total_bps := total(row.get("goodput_bps") for row in rows):
        for row in rows:
            row["share"] = row["goodput_bps"] / total_bps
    return Table(GROUPS, rows, left=2)


def counted_as_flow(group: Group, flow: IpFlow) -> bool:
    """Returns whether the group's own figures have it: a connection of a QUIC stack by name."""
    quic = group.stack not in (None, UNSET, "weir", "linux")
    return quic and flow.protocol == "udp" and flow.direction == "forward"


def own_row(name: str, sent: Group | parts.Back) -> Json:
    """Returns a row without its share of the goodput: a group's, or its opened side's."""
    rtt_ns = sent.rtt_mean_ns or None  # 0: nothing measured one
    return {**to_builtins(sent), "group": name, "cc": sent.cc or None, "rtt_mean_ns": rtt_ns}


def ip_row(name: str, flows: Sequence[IpFlow]) -> Json:
    """Returns the row of a group's flows of a protocol and direction beside TCP."""
    goodput, drops = sum(flow.goodput_bps for flow in flows), sum(flow.drops for flow in flows)
    return {"group": name, "flows": len(flows), "goodput_bps": goodput, "drops": drops}


def links(summary: RunSummary) -> Table:
    """Returns the table of links."""
    each = summary.links.items()
    rows = [{**to_builtins(link), "link": name, "rate": link_rate(link)} for name, link in each]
    return Table(LINKS, rows)


def cards(summary: RunSummary) -> Table:
    """Returns the table of the hosts' cards, for what arrives."""
    return Table(CARDS, [{"side": n, **to_builtins(one)} for n, one in summary.cards.items()])


def busiest(summary: RunSummary) -> tuple[str, Link] | None:
    """Returns the link with the highest utilisation, and its name."""
    return max(summary.links.items(), key=lambda item: item[1].utilisation or 0.0, default=None)


def link_rate(link: Link) -> str:
    """Returns a link's rate, or from which to which it was changed while it was measured.

    The smallest is 0 of an outage.
    """
    low, high = link.rate_min_bps, link.rate_max_bps
    if low is not None and high is not None and low != high:
        return f"{units.rate(low)} to {units.rate(high)}"
    return units.rate(high or link.rate_bps)


def seed(summary: RunSummary) -> str:
    """Returns the seed, and whether it decided anything; empty where there is none."""
    if summary.seed_used is False:
        return f"{summary.seed} (nothing random was drawn: any other gives the same run)"
    return "" if summary.seed is None else str(summary.seed)


def emulation(summary: RunSummary) -> Table:
    """Returns the table of how late a live run's packets left, and how wrong its rate was."""
    found = summary.emulation
    kinds: list[tuple[str, object, str]] = [
        ("delay, all packets", found, "delay_error"),
        ("delay, undisturbed", found.undisturbed, "delay_error"),
        ("pacing, all packets", found, "pacing_error"),
        ("pacing, undisturbed", found.pacing_undisturbed, "pacing_error"),
    ]
    rows: list[list[object]] = []
    for name, part, what in kinds:
        late = [getattr(part, f"{what}_{q}_ns", UNSET) for q in ("p50", "p99", "p999", "max")]
        if late[0] is not UNSET:
            rows.append([name, *map(units.known, late), ""])
    rate_error = units.known(found.rate_error_ppm)
    if rows and rate_error is not None:
        rows[0][-1] = f"{units.number(rate_error)} ppm"
    return Table(EMULATION, rows)


def drops(path: PathLedger) -> list[tuple[str, int, int]]:
    """Returns a path's drops: reason, packets, bytes; reasons without any are left out."""
    counts = ((reason, counted.pkts, counted.bytes) for reason, counted in path.drops.items())
    return [(reason, pkts, size) for reason, pkts, size in counts if pkts or size]


def port_terms(ledger: RunLedger) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Returns what came in at a switch's ports, and what became of it; drops are paths' too.

    Both are empty where there are no ports: in virtual time.
    """
    if ledger.received is None:
        return [], []
    made = {
        "replayed": ledger.replayed, "copied": ledger.copied, "duplicated": ledger.duplicated,
    }  # fmt: skip
    more = [(name, count) for name, count in made.items() if count]
    gone = {"transmitted": ledger.transmitted or 0, "inside": ledger.inside or 0} | ledger.drops
    return [("received", ledger.received), *more], list(gone.items())


def terms(of: list[tuple[str, int]]) -> str:
    """Returns a sum as text: 3 received + 1 copied."""
    return " + ".join(f"{count:,} {name}" for name, count in of)


def capture_terms(counts: dict[str, int]) -> str:
    """Returns the account of a capture: the packets that were read, and what became of them."""
    read, *rest = counts.items()
    shown = [(name.replace("_", " "), count) for name, count in rest if count]
    return f"{terms([read])} = {terms(shown) or 0}"


def balance(summary: RunSummary) -> str:
    """Says whether the ledger balances; if that is not known, of which program or host."""
    ledger = summary.ledger
    if ledger.balanced is None and ledger.programs:
        silent = [name for name, known in ledger.programs.items() if known is None]
        others = [name for name, known in ledger.programs.items() if known]
        well = f"; that of {', '.join(others)} balances" if others else ""
        return f"not known: {', '.join(silent)} wrote none{well}"
    return {True: "balanced", False: "NOT BALANCED", None: "none"}[ledger.balanced]


def ledger_lines(ledger: RunLedger) -> list[str]:
    """Returns the account of a switch's ports in a line, then each path's."""
    received, gone = port_terms(ledger)
    lines = [f"ports: {terms(received)} = {terms(gone)}"] if received else []
    if ledger.capture:
        lines.append(f"capture: {capture_terms(ledger.capture)}")
    for name, path in ledger.paths.items():
        twice = f" + {path.duplicated.pkts:,} duplicated" if path.duplicated.pkts else ""
        lost = [f"{count:,} {reason}" for reason, count, _ in drops(path)]
        lines.append(
            f"{name}: {path.entered.pkts:,} in{twice} = {path.out.pkts:,} out"
            f" + {path.inside.pkts:,} inside"
            + "".join(f" + {text}" for text in lost or ["0 dropped"])
        )
    for cable in ledger.between_hosts:
        ends = f"{cable.source} to {cable.to}: {cable.sent:,} sent"
        if cable.lost is None:
            least = units.count(units.known(cable.lost_at_least))
            lines.append(f"{ends}, {cable.received:,} received, at least {least} lost")
        else:
            lines.append(f"{ends} = {cable.received:,} received + {cable.lost:,} lost")
    return lines


def clock_lines(summary: RunSummary) -> list[str]:
    """Says by how much hosts' clocks were ahead of the switch's, and within which bound."""
    lines = []
    for name, host in summary.hosts.items():
        offsets = (units.known(each) for each in (host.offset_ns, host.offset_error_ns))
        ahead, error = map(units.time, offsets)
        drifts = (units.known(each) for each in (host.drift_ppm, host.drift_error_ppm))
        drift, wide = map(units.number, drifts)
        if ahead != units.NONE:
            lines.append(
                f"{name}: {ahead} ahead of the switch's, ± {error}; drift {drift} ppm, ± {wide} ppm"
            )
    return lines


def show(summary: RunSummary, out: Console) -> None:
    """Prints groups, links, cards, fairness, ledger and speed."""
    flows = groups(summary)
    if all(row[0] == row[1] for row in flows.rows):  # each group is called by its control
        flows = flows.without("cc")
    for each in (flows, links(summary), cards(summary)):
        if each:
            print_table(out, each)
            out.print()
    if len(flows.rows) > 1 and summary.jfi is not None:
        out.print(f"JFI of all flows that have begun {units.ratio(summary.jfi)}")
    if summary.stop is not None:
        out.print(stopped(summary.stop))
    if errors := emulation(summary):
        print_table(out, errors)
        out.print()
    for line in why_lines(summary):
        out.print(f"why: {line}", soft_wrap=True)
    for stream, counts in summary.telemetry.streams.items() if summary.telemetry else ():
        if counts.lost:
            out.print(
                f"telemetry: {counts.lost:,} of {counts.records + counts.lost:,}"
                f" {one_line(stream)} records lost",
                style="yellow",
            )
    balanced = summary.ledger.balanced
    for line in map(one_line, ledger_lines(summary.ledger)):
        out.print(f"ledger {line}", style="" if balanced else "red", soft_wrap=True)
    style = "green" if balanced else "bold red"
    out.print(f"ledger: {balance(summary)}", style=style, soft_wrap=True)
    if balanced is not None and (warmup_s := summary.warmup_s):
        late = units.time(1e9 * warmup_s)
        out.print(f"The ledger counts the whole run, the tables what came after {late} of warm-up.")
    for line in map(one_line, clock_lines(summary)):
        out.print(f"clock {line}", soft_wrap=True)
    out.print(speed(summary), soft_wrap=True)
    for fault in summary.faults:
        out.print(f"fault: {sentence(fault)}", style="yellow", soft_wrap=True)
    lines = verdict_lines(summary)
    if lines:
        more = f" (and {len(lines) - 1} more: see the report)" if len(lines) > 1 else ""
        out.print(f"verdict: {lines[0]}{more}", style="yellow", soft_wrap=True)


def sentence(fact: Fact | Why | Limits) -> str:
    """Returns what a fact says, and of which host or program if several are shown as one."""
    host, program = (getattr(fact, name, None) for name in ("host", "program"))
    prefix = f"{host}: " if host else f"weir-{program}: " if program else ""
    return one_line(f"{prefix}{fact.sentence}")


def verdict_lines(summary: RunSummary) -> list[str]:
    """Says how the run ended unless well, then what fell behind in it, worst first."""
    return [sentence(fact) for fact in summary.verdicts]


def end_of(summary: RunSummary) -> str:
    """Says how a run ended, in a line; a dash for a result that nobody has judged."""
    verdict = summary.verdict if summary.ended else NEVER_ENDED
    return "; ".join(verdict_lines(summary)) or verdict or units.NONE


def why_lines(summary: RunSummary) -> list[str]:
    """Says why no queue stood at a link, and what kept the flows from sending more."""
    behind = f"; {sentence(summary.limits)}" if summary.limits else ""
    return [sentence(fact) + behind for fact in summary.why]


def stopped(stop: parts.Stop) -> str:
    """Says how the stop rule ended the run."""
    end = "settled at" if stop.settled else "had not settled by"
    if isinstance(stop.interval, parts.StopInterval):
        found = (
            f"known to {units.percent(stop.interval.half_width)}"
            f" with {units.percent(stop.interval.confidence)} confidence"
        )
    else:
        found = f"moved by {units.percent(stop.moved)} in {units.number(stop.over_s)} s"
    return f"{stop.metric} {end} {units.number(stop.at_s)} s: {found}"


def speed(summary: RunSummary) -> str:
    """Says how long a run took, and how fast that was."""
    wall, virtual = summary.wall_s, summary.virtual_s
    if not wall:
        return ""
    if summary.captured is not None:
        read = summary.captured.packets
        speed = units.number(read / wall / 1e6)
        return f"{read:,} packets in {units.number(wall)} s ({speed} million/s)"
    if not virtual or summary.program != SIMULATOR:
        return f"took {units.number(wall)} s, seed {seed(summary)}"
    return (
        f"{units.number(virtual)} s of virtual time in {units.number(wall)} s"
        f" ({units.number(virtual / wall)} times real time), seed {seed(summary)}"
    )
