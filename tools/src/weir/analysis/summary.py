# SPDX-License-Identifier: BSD-3-Clause
"""summary.json as tables for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from weir.base import units
from weir.base.errors import one_line
from weir.base.page import Column, Table
from weir.base.terminal import print_table

GROUPS = (
    Column("group"),
    Column("cc"),
    Column("flows", unit="count"),
    Column("goodput", "goodput_bps"),
    Column("share", unit=partial(units.percent, decimals=1)),
    Column("JFI", unit="ratio"),
    Column("mean RTT", lambda of: of.get("rtt_mean_ns") or None, "ns"),  # 0: nothing measured one
    Column("drops", unit="count"),  # of the paths
    Column("retransmits", unit="count"),
    Column("bytes resent", "rtx_overhead", "%"),
    Column("window reductions", "cwnd_reductions", "count"),
)
LINKS = (
    Column("link"),
    Column("rate", lambda of: link_rate(of), ""),
    Column("used", "utilisation", "%"),
    Column("mean queue", "queue_mean_pkts", "pkt"),
    Column("delay", "queue_mean_ns"),
    Column("p99 delay", "sojourn_p99_ns"),
    Column("drops", unit="count"),
    Column("marks", unit="count"),
)
EMULATION = (
    Column("emulation error", "name"),
    Column("median", "p50_ns"),
    Column("p99", "p99_ns"),
    Column("p99.9", "p999_ns"),
    Column("largest", "max_ns"),
    Column("rate", unit=""),
)

SEED_UNUSED = "the seed changes nothing (no loss, no jitter, nothing random was drawn)"
ANALYSER = "weir-pcap"  # a summary's `program` of a capture
SIMULATOR = "weir-sim"  # a summary's `program` in virtual time


def group_names(summary: dict[str, Any]) -> list[str]:
    """The groups' names; those of several groups with their place among all."""
    names = [
        str(group.get("name") or group.get("cc") or index)
        for index, group in enumerate(summary.get("groups", []))
    ]
    alike = Counter(names)
    return [
        f"{name}, group {index}" if alike[name] > 1 else name for index, name in enumerate(names)
    ]


def ip_flow_sums(flows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Goodput and drops of a group's flows beside TCP, by protocol and direction."""
    sums: dict[str, dict[str, Any]] = {}
    for flow in flows:
        kind = flow["protocol"] + (" back" if flow["direction"] == "reverse" else "")
        of = sums.setdefault(kind, {"flows": 0, "goodput_bps": 0, "drops": 0})
        of["flows"] += 1
        of["goodput_bps"] += flow["goodput_bps"]
        of["drops"] += flow["drops"]
    return sums


def total(groups: Sequence[Mapping[str, Any]], key: str) -> float | None:
    """The sum of a number over groups; None if that of one is not known, or there is none."""
    values = [units.known(group.get(key)) for group in groups]
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def groups(summary: dict[str, Any]) -> Table:
    """Returns the table of groups of flows, with what came back and what was not TCP."""
    found: list[dict[str, Any]] = summary.get("groups", [])
    rows: list[tuple[str, dict[str, Any]]] = []
    ip_flows: dict[int, list[dict[str, Any]]] = {}
    for flow in summary.get("ip_flows", []):
        ip_flows.setdefault(flow["group"], []).append(flow)
    for index, (name, group) in enumerate(zip(group_names(summary), found, strict=True)):
        rows.append((name, group))
        if group.get("back"):  # what the side that was opened has sent
            rows.append((f"{name}, back", group["back"]))
        sums = ip_flow_sums(ip_flows.get(index, []))
        rows += [(f"{name}, {kind}", those) for kind, those in sums.items()]
    total_bps = total([group for _, group in rows], "goodput_bps")
    records = [
        {**group, "group": name, "cc": group.get("cc") or None,
         "share": group["goodput_bps"] / total_bps if total_bps else None}
        for name, group in rows
    ]  # fmt: skip
    return Table(GROUPS, records, left=2)


def links(summary: dict[str, Any]) -> Table:
    """Returns the table of links."""
    found = summary.get("links", {})
    return Table(LINKS, [{**link, "link": name} for name, link in found.items()])


def link_rate(link: dict[str, Any]) -> str:
    """A link's rate, or from which to which it was changed while it was measured."""
    low, high = link.get("rate_min_bps"), link.get("rate_max_bps")
    if low and high and low != high:
        return f"{units.rate(low)} to {units.rate(high)}"
    return units.rate(high or link.get("rate_bps"))


def seed(summary: dict[str, Any]) -> str:
    """The seed, and whether it decided anything."""
    if summary.get("seed_used", True):
        return str(summary.get("seed", ""))
    return f"{summary.get('seed')} (nothing random was drawn: any other gives the same run)"


def emulation(summary: dict[str, Any]) -> Table:
    """Returns the table of how late a live run's packets left, and how wrong its rate was."""
    found = summary.get("emulation", {})
    parts = [
        ("delay, all packets", found, "delay_error"),
        ("delay, undisturbed", found.get("undisturbed"), "delay_error"),
        ("pacing, all packets", found, "pacing_error"),
        ("pacing, undisturbed", found.get("pacing_undisturbed"), "pacing_error"),
    ]
    records: list[dict[str, Any]] = []
    for name, part, what in parts:
        if isinstance(part, dict) and f"{what}_p50_ns" in part:
            late = {f"{q}_ns": part.get(f"{what}_{q}_ns") for q in ("p50", "p99", "p999", "max")}
            rate = (
                f"{units.number(found['rate_error_ppm'])} ppm"
                if not records and "rate_error_ppm" in found
                else ""
            )
            records.append({"name": name, "rate": rate, **late})
    return Table(EMULATION, records)


def drops(path: dict[str, Any]) -> list[tuple[str, int, int]]:
    """A path's drops: reason, packets, bytes; reasons without any are left out."""
    found = []
    for reason, counted in path.get("drops", {}).items():
        pkts, size = (counted.get("pkts", 0), counted.get("bytes", 0))
        if pkts or size:
            found.append((reason, int(pkts), int(size)))
    return found


def port_terms(ledger: dict[str, Any]) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """What came in at a switch's ports, and what became of it; drops are those of paths too.

    Both are empty where there are no ports: in virtual time.
    """
    if "received" not in ledger:
        return [], []
    gone = {"transmitted": ledger.get("transmitted", 0), "inside": ledger.get("inside", 0)}
    gone |= ledger.get("drops", {})
    made = [
        (key, int(ledger[key])) for key in ("replayed", "copied", "duplicated") if ledger.get(key)
    ]
    return [("received", int(ledger["received"])), *made], list(gone.items())


def terms(of: list[tuple[str, int]]) -> str:
    """3 received + 1 copied."""
    return " + ".join(f"{count:,} {name}" for name, count in of)


def balance(summary: dict[str, Any]) -> str:
    """Whether the ledger balances; if that is not known, of which program or host it is not."""
    ledger = summary.get("ledger", {})
    programs: dict[str, bool | None] = ledger.get("programs", {})
    if ledger.get("balanced") is None and programs:
        silent = [name for name, known in programs.items() if known is None]
        others = [name for name, known in programs.items() if known]
        well = f"; that of {', '.join(others)} balances" if others else ""
        return f"not known: {', '.join(silent)} wrote none{well}"
    return {True: "balanced", False: "NOT BALANCED"}.get(ledger.get("balanced"), "none")


def ledger_lines(summary: dict[str, Any]) -> list[str]:
    """The account of a switch's ports in a line, then each path's."""
    received, gone = port_terms(summary.get("ledger", {}))
    lines = [f"ports: {terms(received)} = {terms(gone)}"] if received else []
    if capture := summary.get("ledger", {}).get("capture"):
        read, *rest = ((name, int(count)) for name, count in capture.items())
        shown = [(name.replace("_", " "), count) for name, count in rest if count]
        lines.append(f"capture: {terms([read])} = {terms(shown) or 0}")
    for name, path in summary.get("ledger", {}).get("paths", {}).items():
        keys = ("in", "duplicated", "out", "inside")
        pkts = {key: path.get(key, {}).get("pkts", 0) for key in keys}
        twice = f" + {pkts['duplicated']:,} duplicated" if pkts["duplicated"] else ""
        lost = [f"{count:,} {reason}" for reason, count, _ in drops(path)]
        lines.append(
            f"{name}: {pkts['in']:,} in{twice} = {pkts['out']:,} out + {pkts['inside']:,} inside"
            + "".join(f" + {text}" for text in lost or ["0 dropped"])
        )
    for cable in summary.get("ledger", {}).get("between_hosts", ()):
        form = "{from} to {to}: {sent:,} sent = {received:,} received + {lost:,} lost"
        if cable["lost"] is None:
            form = "{from} to {to}: {sent:,} sent, {received:,} received, at least {least} lost"
        lines.append(form.format(**cable, least=units.count(cable.get("lost_at_least"))))
    return lines


def clock_lines(summary: dict[str, Any]) -> list[str]:
    """By how much hosts' clocks were ahead of the switch's, and within which bound."""
    lines = []
    for name, host in summary.get("hosts", {}).items():
        if host.get("offset_ns") is not None:
            ahead, error = (units.time(host.get(f"offset{what}_ns")) for what in ("", "_error"))
            drift, wide = (units.number(host.get(f"drift{what}_ppm")) for what in ("", "_error"))
            lines.append(
                f"{name}: {ahead} ahead of the switch's, ± {error}; drift {drift} ppm, ± {wide} ppm"
            )
    return lines


def show(summary: dict[str, Any], out: Console) -> None:
    """Prints groups, links, fairness, ledger and speed."""
    flows = groups(summary)
    if all(row[0] == row[1] for row in flows.rows):  # each group is called by its control
        flows = flows.without("cc")
    for each in (flows, links(summary)):
        if each:
            print_table(out, each)
            out.print()
    if len(flows.rows) > 1 and summary.get("jfi") is not None:
        out.print(f"JFI of all flows that have begun {units.ratio(summary['jfi'])}")
    if isinstance(stop := summary.get("stop"), dict):
        out.print(stopped(stop))
    if errors := emulation(summary):
        print_table(out, errors)
        out.print()
    for line in why_lines(summary):
        out.print(f"why: {line}", soft_wrap=True)
    for stream, counts in summary.get("telemetry", {}).get("streams", {}).items():
        if counts.get("lost"):
            out.print(
                f"telemetry: {counts['lost']:,} of {counts['records'] + counts['lost']:,}"
                f" {one_line(stream)} records lost",
                style="yellow",
            )
    balanced = summary.get("ledger", {}).get("balanced")
    for line in map(one_line, ledger_lines(summary)):
        out.print(f"ledger {line}", style="" if balanced else "red", soft_wrap=True)
    style = "green" if balanced else "bold red"
    out.print(f"ledger: {balance(summary)}", style=style, soft_wrap=True)
    if balanced is not None and (warmup_s := summary.get("warmup_s")):
        late = units.time(1e9 * warmup_s)
        out.print(f"The ledger counts the whole run, the tables what came after {late} of warm-up.")
    for line in map(one_line, clock_lines(summary)):
        out.print(f"clock {line}", soft_wrap=True)
    out.print(speed(summary), soft_wrap=True)
    for fault in summary.get("faults", []):
        out.print(f"fault: {sentence(fault)}", style="yellow", soft_wrap=True)
    lines = verdict_lines(summary)
    if lines:
        more = f" (and {len(lines) - 1} more: see the report)" if len(lines) > 1 else ""
        out.print(f"verdict: {lines[0]}{more}", style="yellow", soft_wrap=True)


def sentence(fact: dict[str, Any]) -> str:
    """What a fact says, and of which host or program if several are shown as one."""
    said = str(fact["sentence"])
    if "host" in fact:
        said = f"{fact['host']}: {said}"
    elif "program" in fact:
        said = f"weir-{fact['program']}: {said}"
    return one_line(said)


def verdict_lines(summary: dict[str, Any]) -> list[str]:
    """How the run ended unless well, then what fell behind in it, worst first."""
    return [sentence(fact) for fact in summary.get("verdicts", [])]


def end_of(summary: dict[str, Any]) -> str:
    """How a run ended, in a line; a dash for a result that nobody has judged."""
    verdict = summary.get("verdict", "did not end by itself")
    return "; ".join(verdict_lines(summary)) or str(units.NONE if verdict is None else verdict)


def why_lines(summary: dict[str, Any]) -> list[str]:
    """Why no queue stood at a link, and what kept the flows from sending more."""
    limits = summary.get("limits")
    behind = f"; {sentence(limits)}" if limits else ""
    return [sentence(fact) + behind for fact in summary.get("why", [])]


def stopped(stop: dict[str, Any]) -> str:
    """How the stop rule ended the run."""
    end = "settled at" if stop.get("settled") else "had not settled by"
    return (
        f"{stop.get('metric')} {end} {units.number(stop.get('at_s'))} s:"
        f" moved by {units.percent(stop.get('moved'))}"
        f" in {units.number(stop.get('over_s'))} s"
    )


def speed(summary: dict[str, Any]) -> str:
    """How long it took, and how fast that was."""
    wall, virtual = summary.get("wall_s"), summary.get("virtual_s")
    if not wall:
        return ""
    if summary.get("program") == ANALYSER and "capture" in summary:
        read = summary["capture"]["packets"]
        speed = units.number(read / wall / 1e6)
        return f"{read:,} packets in {units.number(wall)} s ({speed} million/s)"
    if not virtual or summary.get("program") != SIMULATOR:
        return f"took {units.number(wall)} s, seed {seed(summary)}"
    return (
        f"{units.number(virtual)} s of virtual time in {units.number(wall)} s"
        f" ({units.number(virtual / wall)} times real time), seed {seed(summary)}"
    )
