# SPDX-License-Identifier: BSD-3-Clause
"""A run's folder, made from those of all hosts: summary, ledger, clocks, streams.

hosts/NAME/         what NAME wrote: a run folder of its own, with what its program said
summary.json        of all of them
STREAM-NAME.ring    the streams of the switch and, if there is but one of each, of the others
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from weir.analysis import folder
from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.hosts import clocks
from weir.hosts.check import Discipline
from weir.hosts.deployment import Deployment
from weir.hosts.inventory import Host
from weir.runner.options import Options

End = tuple[str, str]  # a host and its port
SUMS = ("flows", "segments", "receivers")  # counts, which add up over hosts
LISTS = ("groups", "sender_ports")


def make_folder(options: Options) -> None:
    """Makes the run folder, empty. UserError: there is a run in it already."""
    out = options.out
    if not options.force and folder.written(out):
        raise UserError(f"{out}: there is a run in it: choose another --out, or --force")
    folder.clear(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{out}: {error.strerror}", 1) from None


def drop_folder(options: Options) -> None:
    """Removes an empty folder, as nothing ran."""
    if not any(options.out.iterdir()):
        options.out.rmdir()


def write(
    options: Options, deployment: Deployment, said: Mapping[str, Discipline], failure: str
) -> None:
    """Writes the top of the folder."""
    parts = {name: part(options.out / "hosts" / name) for name in deployment.hosts}
    lift(options.out, deployment.hosts, parts)
    merged = summary(deployment.hosts, parts, failure)
    if merged is None:
        return
    merged["hosts"] = {
        name: about(host, parts[name], said.get(name)) for name, host in deployment.hosts.items()
    }
    for name, clock in measured(options.out, deployment, parts).items():
        merged["hosts"][name] |= {"frames": clock.frames, **asdict(clock)}
    text = json.dumps(merged, indent=1)
    folder.write_whole(options.out / folder.SUMMARIES[0], text + "\n")


def part(path: Path) -> Json:
    """Reads a host's own summary, empty if it wrote none."""
    found = [path / name for name in folder.SUMMARIES[1:] if (path / name).exists()]
    return folder.read_summary(found[0]) if found else {}


def lift(out: Path, hosts: Mapping[str, Host], parts: Mapping[str, Json]) -> None:
    """Links what readers look for at the top: manifests, the config, streams."""
    alone = sum(host.role == "sender" and not host.kernel for host in hosts.values()) <= 1
    for name, host in hosts.items():
        below = out / "hosts" / name
        for stream in below.glob("*.ring") if alone or host.role == "switch" else ():
            kind = stream.stem.split("-")[0]
            link(stream, out / f"{kind}-{name}.ring")
        if host.role != "receiver":
            for file in (*folder.MANIFESTS[1:], "config.yaml"):
                if (below / file).exists() and not (out / file).exists():
                    link(below / file, out / file)


def link(old: Path, new: Path) -> None:
    """Gives a file another name, or copies it where there are no links."""
    try:
        os.link(old, new)
    except OSError:
        shutil.copy(old, new)


def summary(hosts: Mapping[str, Host], parts: Mapping[str, Json], failure: str) -> Json | None:
    """Returns the summary of all hosts; None if no host wrote one."""
    by_role = {
        role: {
            name: parts[name] for name, host in hosts.items() if host.role == role and parts[name]
        }
        for role in ("switch", "sender", "receiver")
    }
    if not any(by_role.values()):
        return None
    switch, sender, receiver = (combined(by_role[r]) for r in ("switch", "sender", "receiver"))
    merged = folder.merge_summaries(switch, sender, {}, receiver)
    present = {name: each for name, each in parts.items() if each}
    between = list(cables(hosts, present))
    ours = [name for name, host in hosts.items() if not host.kernel]
    programs = {
        name: bool(parts[name]["ledger"]["balanced"]) if parts[name] else None for name in ours
    }
    merged["ledger"] |= {
        "balanced": folder.all_of([*programs.values(), arrived(between)]),
        "programs": programs,
        "between_hosts": between,
    }
    merged["telemetry"]["streams"] = {
        f"{stream}-{name}": counts
        for name, each in present.items()
        for stream, counts in each["telemetry"]["streams"].items()
    }
    gone = sum(one["lost"] or one.get("lost_at_least", 0) for one in between)
    merged["faults"] = [
        *facts(hosts, present, "faults"),
        *lost(between),
        *folder.unseen_losses(merged, present.values(), gone),
    ]
    merged["verdicts"] = verdicts(hosts, parts, failure)
    merged["verdict"] = folder.verdict(merged["verdicts"])
    return merged


def combined(parts: Mapping[str, Json]) -> Json:
    """Joins the summaries of hosts of one role: the first one's, with lists and sums of all."""
    each = list(parts.values())
    if not each:
        return {}
    made = dict(each[0])
    if len(each) == 1:
        return made
    for key in LISTS:
        if key in made:
            made[key] = [item for one in each for item in one.get(key, ())]
    for key in SUMS:
        if key in made:
            made[key] = {name: sum(one[key][name] for one in each) for name in made[key]}
    if "jfi" in made:
        made["jfi"] = None  # of several hosts' flows nobody has computed it
    made.pop("limits", None)
    return made


def ports(summary: Json) -> dict[str, tuple[int, int]]:
    """Returns the frames that each port has sent, and those received or missed."""
    listed = summary.get("ports") or summary.get("sender_ports") or ()
    return {
        one["name"]: (
            one.get("tx_pkts", one.get("tx_frames", 0)),
            one.get("rx_pkts", one.get("rx_frames", 0)) + (one["driver_missed"] or 0),
        )
        for one in listed
    }


def cables(hosts: Mapping[str, Host], parts: Mapping[str, Json]) -> Iterator[Json]:
    """Yields what left a host and what reached the next, in each direction of each cable.

    An Ethernet switch that joins several hosts to one port is one cable with several ends. It adds
    frames of its own and copies what it floods: of those that were lost only the least is known.
    """
    counted = {(name, port): n for name in parts for port, n in ports(parts[name]).items()}
    for name, host in hosts.items():
        for port, ends in sorted(host.cables.items()):
            here = [(name, port)]
            if len(ends) > 1:
                yield from row(counted, here, ends)
                yield from row(counted, ends, here)
            elif len(hosts[ends[0][0]].cables[ends[0][1]]) == 1:
                yield from row(counted, here, ends)


def row(counted: Mapping[End, tuple[int, int]], source: list[End], to: list[End]) -> Iterator[Json]:
    """Yields one direction of a cable, if the numbers of all its ends are known."""
    if not counted.keys() >= {*source, *to}:
        return
    sent, received = sum(counted[end][0] for end in source), sum(counted[end][1] for end in to)
    missing, joined = max(sent - received, 0), len(source) + len(to) > 2
    yield {
        "from": ", ".join(f"{name}/{port}" for name, port in source),
        "to": ", ".join(f"{name}/{port}" for name, port in to),
        "sent": sent,
        "received": received,
        "lost": None if joined else missing,
    } | ({"lost_at_least": missing} if joined else {})


def arrived(between: list[Json]) -> bool:
    """Returns whether nothing arrived that had not been sent."""
    known = (one for one in between if one["lost"] is not None)
    return all(one["sent"] == one["received"] + one["lost"] for one in known)


def lost(between: list[Json]) -> Iterator[Json]:
    """Yields a fault for each direction of a cable that lost frames."""
    for one in between:
        if missing := one["lost"] or one.get("lost_at_least"):
            least = "" if one["lost"] else "at least "
            sentence = (
                f"{least}{missing} of {one['sent']} frames that left {one['from']} "
                f"did not reach {one['to']}"
            )
            counts = {"count": missing, "of": one["sent"]}
            yield {"cause": "between_hosts", "sentence": sentence, **counts}


def facts(hosts: Mapping[str, Host], parts: Mapping[str, Json], key: str) -> Iterator[Json]:
    """Yields facts of all hosts, each with its host."""
    for name, each in parts.items():
        for fact in each.get(key, ()):
            if (hosts[name].role, fact["cause"]) == ("receiver", "port_down"):
                continue  # as the sender ends
            yield {"host": name, "program": hosts[name].role, **fact}


def verdicts(hosts: Mapping[str, Host], parts: Mapping[str, Json], failure: str) -> list[Json]:
    """Returns how the run ended, then what fell behind on each host."""
    ends = [{"cause": "host", "sentence": failure}] if failure else []
    for name, host in hosts.items():
        if not parts[name] and not host.kernel and not failure:
            sentence = f"{name}: its {host.role} wrote no summary"
            ends.append({"cause": "no_summary", "host": name, "sentence": sentence})
    found = list(facts(hosts, {name: each for name, each in parts.items() if each}, "verdicts"))
    stopped = [one for one in found if one["cause"] == "interrupted"]
    by_sender = [one for one in stopped if one["program"] == "sender"]
    # A switch or a receiver is stopped when the senders have ended: as it should be.
    ends += by_sender[:1] if not ends else []
    return [*ends, *(one for one in found if one["cause"] != "interrupted")]


def about(host: Host, part: Json, clock: Discipline | None) -> Json:
    """Returns the part of the summary about a host."""
    return {
        "role": host.role,
        "command": " ".join(host.command) or None,
        "balanced": bool(part["ledger"]["balanced"]) if part else None,
        "verdict": part.get("verdict"),
        "disciplined_by": clock and clock["by"],
        "clock_error_ns": clock and clock["error_ns"],
    }


def stamps_ns(part: Json) -> float | None:
    """Returns how far a program's times may be from its kernel's clock; None: it does not know."""
    clock: Json = part.get("clock") or part.get("sender_clock") or {}
    return clock.get("error_max_ns")


def measured(
    out: Path, deployment: Deployment, parts: Mapping[str, Json]
) -> dict[str, clocks.Clock]:
    """Measures the clock of each host against the switch's, over the cable between them."""
    found = {}
    for name, host in deployment.hosts.items():
        for port, their, end in host.joined():
            mine, other = (out / "hosts" / n / "capture.pcapng" for n in (name, their))
            unsure = [stamps_ns(parts[n]) for n in (name, their)]
            known = [error for error in unsure if error is not None]
            both = mine.exists() and other.exists() and len(known) == 2
            if deployment.hosts[their].role == "switch" and both:
                found[name] = clocks.measure(other, end, mine, port, sum(known))
    return found
