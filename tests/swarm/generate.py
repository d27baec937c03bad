# SPDX-License-Identifier: BSD-3-Clause
"""Makes a random valid experiment from a seed and from what `weir-sim --list --json` offers.

Stages, disciplines, controls, sources and parameters come from the programs' own tables, so that a
new one takes part by being listed. Values stay in their documented ranges and near one scale per
experiment: a number of packets is drawn first, then a rate, and the duration follows from both, so
that a run costs about as much at 1 kbit/s as at 1 Tbit/s.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Config = dict[str, Any]
Params = dict[str, dict[str, Any]]

FRAME_BITS = 1538 * 8
TRACES = ("mahimahi_link", "replay")
BITS_MIN = 9200 * 8  # a queue holds the largest frame
DURATION_NS_MAX = 100e9
STEPS_MAX = 2e5  # windows of virtual time: the duration over the longer one-way delay
UNITS = {
    "ns": [("ns", 1), ("us", 1e3), ("ms", 1e6), ("s", 1e9)],
    "bit/s": [("bit", 1), ("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9), ("Tbit", 1e12)],
    "B": [("B", 1), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)],
}


def registry(program: Path) -> dict[str, dict[str, Params]]:
    """Parameters by kind and name: registry["cc"]["copa"]["delta"]["max"]."""
    listed = subprocess.run(
        [program, "--list", "--json"], capture_output=True, text=True, check=True, timeout=60
    )
    return {
        kind: {name: plugin.get("params", {}) for name, plugin in plugins.items()}
        for kind, plugins in json.loads(listed.stdout).items()
    }


def text(value: float, unit: str) -> str:
    """A number of three digits as a config has it: 20300000 ns is "20.3ms"."""
    units = UNITS[unit]
    suffix, factor = next(((s, f) for s, f in reversed(units) if value >= f), units[0])
    number = float(f"{value / factor:.3g}") if factor > 1 else round(value)
    return f"{int(number) if number == int(number) else number}{suffix}"


@dataclass
class Scale:
    """What the experiment's numbers are near to."""

    packets: float  # in the whole run
    rate_bps: float  # of the bottleneck
    duration_ns: float
    delay_ns: float  # the longer one-way delay
    flows: int

    @property
    def bdp_bits(self) -> float:
        """At least: what the bottleneck sends in the longer one-way delay."""
        return self.rate_bps * self.delay_ns / 1e9

    def bounds(self, unit: str) -> tuple[float, float]:
        """Between which values a quantity is of use and bounded work."""
        return {
            "ns": (self.delay_ns / 1e3, 10 * self.duration_ns),
            "bit/s": (self.rate_bps / 10, self.rate_bps * 10),
            "B": (1.0, max(1e4, self.packets * 1500)),
            "": (0.0, max(20.0, self.packets / self.flows)),
            "ratio": (0.0, 1.0),
        }[unit]


class Generator:
    """One experiment; the same seed makes the same one as long as the tables stay the same."""

    def __init__(self, seed: int, kinds: dict[str, dict[str, Params]]) -> None:
        self.random = random.Random(seed)
        # An experiment is one file, without traces.
        stages = {name: table for name, table in kinds["stage"].items() if name not in TRACES}
        self.kinds = {**kinds, "stage": stages}
        self.seed = seed

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def log(self, low: float, high: float) -> float:
        """Between low and high, each decade as likely as the next."""
        return math.exp(self.random.uniform(math.log(low), math.log(max(low, high))))

    def ratio(self) -> float:
        """A share: mostly small, sometimes anything, sometimes nothing or all."""
        low, high = self.random.choice([(1e-5, 0.03), (1e-5, 0.03), (0.01, 0.99)])
        return self.random.choice([0.0, 1.0]) if self.chance(0.05) else self.log(low, high)

    def limit(self, scale: Scale) -> str:
        """A queue's size."""
        kind = self.random.choice(["pkt", "tiny", "B", "ns", "BDP"])
        if kind == "tiny":
            return f"{self.random.randint(1, 4)}pkt"
        pkts = self.log(1, scale.packets)
        bits = max(pkts * FRAME_BITS, BITS_MIN)
        if kind == "B":
            return text(bits / 8, "B")
        if kind == "ns":
            return text(bits / scale.rate_bps * 1e9 + 1, "ns")
        if kind == "BDP" and bits < 20 * scale.bdp_bits:
            return f"{bits / scale.bdp_bits:.3g}BDP"
        return f"{round(pkts)}pkt"

    def number(self, p: dict[str, Any], scale: Scale) -> str:
        """Within the documented range and the scale: an end of it, near the default, anywhere."""
        low, high = scale.bounds(p["unit"])
        low = max(low, p["min"] or 0.0)
        high = max(low, min(high, math.inf if p["max"] is None else p["max"]))
        if p["unit"] == "ratio" and low == 0.0:
            value = min(self.ratio(), high)
        elif self.chance(0.1):
            value = self.random.choice([low if p["min"] else 0.0, high])
        else:
            value = self.log(max(low, min(1e-3, high)) if p["type"] == "f64" else max(low, 1), high)
        if p["unit"] in ("", "ratio"):
            return f"{round(value)}" if p["type"] == "u64" else f"{value:.4g}"
        return text(value, p["unit"])

    def value(self, p: dict[str, Any], scale: Scale) -> str:
        """A value of any parameter."""
        match p["type"]:
            case "bool":
                return self.random.choice(["yes", "no"])
            case "enum":
                return str(self.random.choice(p["choices"]))
            case "limit":
                return self.limit(scale)
            case _:
                return self.number(p, scale)

    def plugin(self, kind: str, name: str, scale: Scale, share: float = 0.25) -> Config:
        """All required parameters and some of the others."""
        return {
            key: self.value(p, scale)
            for key, p in self.kinds[kind][name].items()
            if p["default"] is None
            or (p["type"] == "limit" and scale.bdp_bits < BITS_MIN)
            or (self.chance(share) and p["type"] not in ("text", "map"))
        }

    def scale(self) -> Scale:
        packets = self.log(20, 8000)
        rate_bps = self.log(*self.random.choice([(1e3, 1e12), (1e6, 1e10), (1e6, 1e9)]))
        duration_ns = min(packets * FRAME_BITS / rate_bps * 1e9, DURATION_NS_MAX)
        duration_ns = max(duration_ns, 2e3)
        delay_ns = duration_ns * self.log(1 / STEPS_MAX, 0.5)
        flows = round(self.log(1, max(1, min(200, packets / 4))))
        return Scale(packets, rate_bps, duration_ns, min(delay_ns, 10e9), flows)

    def stage(self, name: str, scale: Scale) -> Config:
        params = self.plugin("stage", name, scale)
        if name == "link":
            params["rate"] = text(
                min(1e12, scale.rate_bps * self.random.choice([1, 1, 1, 2, 10])), "bit/s"
            )
            aqm = self.random.choice(list(self.kinds["aqm"]))
            params["queue"] = {aqm: self.plugin("aqm", aqm, scale)}
        if name == "loss_mask":
            params["mask"] = hex(self.random.getrandbits(64))
        if name == "loss_markov":  # at most 1 leave a state
            for first, second in (("p13", "p14"), ("p31", "p32")):
                if float(params[first]) + float(params.get(second, 0)) > 1:
                    params[second] = "0"
        if name == "loss_periodic":  # no more than all
            params["lost"] = f"{min(int(params.get('lost', 1)), int(params['every']))}"
        if name == "markov_link":
            params["good"] = text(min(1e12, 2 * scale.rate_bps), "bit/s")
            params["bad"] = self.random.choice(["0", text(scale.rate_bps, "bit/s")])
            params.pop("slot", None)
            params["good_mean"] = text(max(1e6, scale.duration_ns / 10), "ns")
            aqm = self.random.choice(list(self.kinds["aqm"]))
            params["queue"] = {aqm: self.plugin("aqm", aqm, scale)}
            params["queue"][aqm]["limit"] = f"{self.random.randint(1, 100)}pkt"
        if name == "policer":
            params = self.policer(params, scale)
        if name == "jitter" and params.get("distribution") == "table":
            params["distribution"] = "pareto"
        if name == "jitter":  # in proportion to the delays
            params["mean"] = text(scale.delay_ns * self.random.choice([0, 0.1, 1]), "ns")
            params["spread"] = text(scale.delay_ns * self.log(1e-3, 1), "ns")
        if name == "wifi_jitter":  # the constants of its model
            params = {k: v for k, v in params.items() if not k.startswith(("short_", "long_"))}
        if name == "leo_handover":  # an outage and what follows fit into the period
            params.pop("period", None)
        if name == "delay":
            params["delay"] = text(scale.delay_ns * self.random.choice([0, 0.1, 0.5, 1]), "ns")
        return {name: params}

    def needs_file(self, stage: str) -> bool:
        """Whether a stage reads a file, which no experiment here has."""
        file = self.kinds["stage"][stage].get("file")
        return file is not None and file["default"] is None

    def policer(self, params: Config, scale: Scale) -> Config:
        """One whose buckets hold the largest frame, with one rate or two."""
        keys = ("red", "yellow", "framing")
        made = {key: value for key, value in params.items() if key in keys}
        made["rate"] = text(scale.rate_bps, "bit/s")
        made["burst"] = text(self.log(BITS_MIN / 8, 1e6), "B")
        if self.chance(0.5):
            peak = {"peak": text(min(1e12, 3 * scale.rate_bps), "bit/s"), "peak_burst": "20kB"}
            return {**made, "meter": "trtcm", **peak}
        return {**made, "excess": text(self.log(1, 1e6), "B")} if self.chance(0.5) else made

    def path(self, scale: Scale, names: list[str]) -> list[Config]:
        """The stages named, and up to three of any kind, in any order."""
        kinds = [kind for kind in self.kinds["stage"] if not self.needs_file(kind)]
        names += self.random.choices(kinds, k=self.random.choice([0, 0, 1, 3]))
        self.random.shuffle(names)
        return [self.stage(name, scale) for name in names]

    def paths(self, scale: Scale) -> Config:
        paths = {
            "forward": self.path(scale, ["link"] if self.chance(0.9) else ["edges"]),
            "reverse": self.path(scale, ["delay"] if self.chance(0.9) else ["loss"]),
        }
        where = self.random.choice(list(paths.values()))
        where.append({"delay": {"delay": text(scale.delay_ns, "ns")}})
        return paths

    def topology(self, config: Config, scale: Scale) -> None:
        """More than one bottleneck: hops that groups share, ways back, traffic both ways."""
        hops = [f"hop{i + 1}" for i in range(self.random.randint(1, 4))]
        backs = [f"back{i + 1}" for i in range(self.random.randint(1, 2))]
        one_order = self.chance(0.8)  # else hops are in a circle, which their delays break
        config["paths"] = {hop: self.path(scale, ["link"]) for hop in hops}
        config["paths"] |= {back: self.path(scale, ["delay"]) for back in backs}
        for name in config["paths"] if not one_order else backs:
            config["paths"][name].append({"delay": {"delay": text(scale.delay_ns, "ns")}})
        left = {*hops, *backs}
        for group in config["flows"]:
            last = group is config["flows"][-1]
            route = []
            for names in (hops, backs):
                some = self.random.sample(names, self.random.randint(1, len(names)))
                some += [name for name in names if last and name in left and name not in some]
                left -= set(some)
                some = sorted(some) if one_order else some
                route.append(some[0] if len(some) == 1 and self.chance(0.5) else some)
            if self.chance(0.15):
                route.reverse()
                # Data without a bottleneck would grow for as long as the run is.
                config["paths"][some[0]].append(self.stage("link", scale))
            group["path"] = {"forward": route[0], "reverse": route[1]}

    def base_rtt(self, scale: Scale) -> str | Config:
        """Of all flows of a group, or a distribution, none of which is longer than the run."""
        low_ns = min(6e10, scale.delay_ns * self.random.uniform(5, 20))
        high_ns = min(6e10, low_ns * self.log(1.1, 100))
        if self.chance(0.4) or low_ns < 1000 or high_ns > 0.9 * scale.duration_ns:
            return text(low_ns, "ns")
        law = self.random.choice([law for law in self.kinds["base_rtt"] if law != "table"])
        params = self.plugin("base_rtt", law, scale, 0)
        middle_ns = (low_ns + high_ns) / 2
        given = {"min": low_ns, "max": high_ns, "mean": middle_ns, "sd": high_ns - low_ns}
        params |= {"max": ""} | ({"shape": f"{self.log(0.1, 5):.3f}"} if law == "pareto" else {})
        return {
            law: {key: text(given[key], "ns") if key in given else params[key] for key in params}
        }

    def group(self, scale: Scale, count: int) -> Config:
        """A flow group: how many flows, when, how much, under which control."""
        cc = self.random.choice(list(self.kinds["cc"]))
        group: Config = {"count": count, **self.plugin("flows", "flows", scale, 0.1)}
        group["count"] = str(count)
        params = self.plugin("cc", cc, scale, 0.15)
        if "min_rate" in self.kinds["cc"][cc]:
            # What the network never carries of a rate that never falls would fill any scoreboard.
            least_bps = scale.rate_bps / (100 * scale.flows)
            params["min_rate"] = text(max(least_bps, 1000), "bit/s")
            if least_bps < 1000:
                cc, params = "newreno", {}
        if cc == "vivace" and "c" in params:  # a loss that costs nothing is no bound
            params["c"] = str(max(float(params["c"]), 1))
        group["cc"] = {cc: params}
        for key in ("start", "stop", "stop_stagger", "stagger", "jitter", "base_rtt"):
            group.pop(key, None)
        if group.keys() & {"rwnd", "rmem", "wmem"}:
            group["mss"] = "1000B"
        start_ns = 0.0 if self.chance(0.5) else self.random.uniform(0, 0.9) * scale.duration_ns
        if start_ns > 0:
            group["start"] = text(start_ns, "ns")
        if self.chance(0.15):
            stop_ns = self.random.uniform(1.1 * start_ns, 1.5 * scale.duration_ns)
            group["stop"] = text(max(stop_ns, 1), "ns")
        if self.chance(0.2):
            left_ns = scale.duration_ns / count
            group[self.random.choice(["stagger", "jitter"])] = text(self.log(1, left_ns + 1), "ns")
        if self.chance(0.1):
            group["base_rtt"] = self.base_rtt(scale)
        if self.chance(0.4):
            source = self.random.choice(list(self.kinds["source"]))
            part = Scale(scale.packets / scale.flows, *list(vars(scale).values())[1:])
            group["source"] = {source: self.plugin("source", source, part)}
            if source == "poisson":  # either interval or load, and starts of its own
                interval_ns = max(100.0, scale.duration_ns / self.log(1, 200))
                group["source"] = {source: {"interval": text(interval_ns, "ns")}}
                group.pop("stagger", None)
                group.pop("jitter", None)
            if source == "media":  # whose bounds and whose times must be in order
                for name in ("min", "max", "pause", "resume"):
                    group["source"][source].pop(name, None)
            if source == "udp":  # nothing controls it, and it sends at any size what it says
                group.pop("cc")
                group["ecn"] = self.random.choice(["off", "ect0"])
                group["ecn_unheard"] = "allow"
                rate_bps = min(1e11, scale.rate_bps * self.log(0.01, 2) / count)
                parts = group["source"][source]
                parts |= {"rate": text(max(1000.0, rate_bps), "bit/s")}
                parts |= {"size": text(self.log(200, 1472), "B")}
        once = {"bulk", "size", "udp"}
        if {"stop", "stagger"} <= set(group) and once >= set(group.get("source", ())):
            group["stop_stagger"] = group["stagger"]
        return group

    def schedule(self, config: Config, scale: Scale) -> list[Config]:
        """Changes of what may change while running."""
        live = []
        for path, stages in config["paths"].items():
            seen: dict[str, int] = {}
            for name in (next(iter(stage)) for stage in stages):
                seen[name] = seen.get(name, 0) + 1
                place = f"{path}.{name}{seen[name] if seen[name] > 1 else ''}"
                params = self.kinds["stage"][name].items()
                live += [(f"{place}.{key}", p) for key, p in params if p["live"]]
        near = Scale(scale.packets, scale.rate_bps, scale.delay_ns, scale.delay_ns, scale.flows)
        items: list[Config] = []
        for _ in range(self.random.randint(1, 4)):
            at_ns = self.random.uniform(0, 1) * scale.duration_ns
            chosen = self.random.sample(live, k=min(len(live), self.random.choice([1, 1, 2])))
            items.append(
                {"at": text(at_ns, "ns"), **{key: self.value(p, near) for key, p in chosen}}
            )
        return items

    def telemetry(self, scale: Scale, flows: int) -> Config:
        interval_ns = max(
            1e4, scale.duration_ns * flows / 2e4, scale.duration_ns * self.log(1e-3, 2)
        )
        telemetry = {
            "level": str(self.random.randint(0, 3)),
            "interval": text(interval_ns, "ns"),
        }
        if self.chance(0.3):
            telemetry["sample"] = f"{self.ratio():.4g}"
        if self.chance(0.2):
            telemetry["arrivals"] = "yes"
        return telemetry

    def experiment(self) -> Config:
        """The whole config."""
        scale = self.scale()
        groups = self.random.randint(1, min(4, scale.flows))
        counts = [max(1, scale.flows // groups)] * groups
        config: Config = {
            "seed": str(self.seed),
            "duration": text(scale.duration_ns, "ns"),
            "paths": self.paths(scale),
            "flows": [self.group(scale, count) for count in counts],
            "telemetry": self.telemetry(scale, sum(counts)),
        }
        if self.chance(0.25):
            self.topology(config, scale)
        elif self.chance(0.2):
            self.hosts(config, scale)
        if self.chance(0.4):
            config["warmup"] = text(scale.duration_ns * self.random.uniform(0, 0.95), "ns")
        if self.chance(0.3):
            config["schedule"] = self.schedule(config, scale)
        if self.chance(0.1):
            config["stop"] = self.plugin("run", "stop", scale, 0.7)
            config["stop"]["over"] = text(
                min(8e13, max(1e6, scale.duration_ns * self.log(0.05, 1))), "ns"
            )
        if self.chance(0.15):
            self.to_the_end(config, scale)
        return config

    def hosts(self, config: Config, scale: Scale) -> None:
        """Cards that the flows share, at both sides."""
        sides = ("sending", "receiving")
        config["hosts"] = {s: self.plugin("run", f"hosts.{s}", scale, 0.4) for s in sides}
        for group in config["flows"]:
            group.pop("gro", None)

    def to_the_end(self, config: Config, scale: Scale) -> None:
        """Finite flows, nothing random on the way, and far more time than they need."""
        for key in ("stop", "schedule"):
            config.pop(key, None)
        for path, stages in config["paths"].items():
            kept = [stage for stage in stages if set(stage) <= {"link", "delay"}]
            config["paths"][path] = kept or [{"delay": {"delay": "1us"}}]
            for params in (next(iter(stage.values())) for stage in kept):
                params.pop("late", None)
                if "queue" in params:
                    pkts = round(self.log(4 * scale.flows, 100 * scale.flows))
                    params["queue"] = {"fifo": {"limit": f"{pkts}pkt"}}
        for group in config["flows"]:
            for key in ("stop", "stop_stagger", "retries", "rto_initial", "rto_max"):
                group.pop(key, None)
            if "fixed" in group.get("cc", "fixed"):  # source: udp has none
                group["cc"] = "newreno"
            bytes_ = self.log(1, 1460 * scale.packets / scale.flows)
            group["source"] = {"size": {"bytes": text(bytes_, "B")}}
        config["duration"] = text(max(100 * scale.duration_ns, 600e9), "ns")
        config["telemetry"]["interval"] = "10s"
