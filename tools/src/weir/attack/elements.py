# SPDX-License-Identifier: BSD-3-Clause
"""The elements of a box: each is one thing that a network may do."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import ClassVar

from weir.attack.element import (
    BACK,
    PATH,
    Bounds,
    Element,
    at,
    link_of,
    log_between,
    rate_text,
    rounded,
    stages,
    time_text,
)
from weir.base import units
from weir.base.configs import Config

BURSTS_MAX = 2000  # flows of a group


class Rate(Element, keys={"pieces": "8", "low": "50%", "high": "100%"}):
    """The link's rate in equal parts of the run, as shares of its own."""

    def _read(self, of: Bounds) -> None:
        self.low, self.high = of.number("low", "ratio"), of.number("high", "ratio")
        if not 0 < self.low <= 1 <= self.high:
            raise of.fail("low", "above 0 and at most 100%, with high at least 100%")
        own = (1 - self.low) / (self.high - self.low) if self.high > self.low else 1.0
        for piece in range(of.count("pieces", 64)):
            self.amount(f"rate in part {piece + 1}", own)

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Sets the link's own rate for the first part, and changes it for the others."""
        _, link = link_of(config)
        before = 1.0
        for piece, part in enumerate(x):
            share = self.low + part * (self.high - self.low)
            share = 1.0 if abs(share - 1) < 0.005 else rounded(share, 2)
            if share == before:
                continue
            text = rate_text(self.network.rate_bps * share)
            if piece == 0:
                link["rate"] = text
            else:
                at(config, self.network.duration_ns * piece / len(x), f"{PATH}.link.rate", text)
            before = share


class Buffer(Element, keys={"low": "0.1", "high": "4"}):
    """The size of the link's queue, in BDP."""

    def _read(self, of: Bounds) -> None:
        self.low, self.high = (self._bdp(of, key) for key in ("low", "high"))
        if not 0 < self.low <= self.high:
            raise of.fail("low", "above 0 and at most high")
        self.place("size of the buffer")

    @staticmethod
    def _bdp(of: Bounds, key: str) -> float:
        match = re.fullmatch(r"([0-9.]+) ?(?:BDP)?", str(of.values[key]))
        if match is None:
            raise of.fail(key, "a number of BDP")
        return float(match[1])

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Sets the limit of the queue and keeps the discipline."""
        _, link = link_of(config)
        queue = link.get("queue", "fifo")
        name, params = (queue, {}) if isinstance(queue, str) else next(iter(queue.items()))
        limit = f"{rounded(log_between(self.low, self.high, x[0]), 2):g}BDP"
        link["queue"] = {name: {**params, "limit": limit}}


class Delay(
    Element,
    keys={"most": "20ms", "pieces": "6", "period": "[20ms, 2s]", "flows": "all", "path": PATH},
):
    """A delay up to a bound, in order: the service of the link, late by at most `most` (CCAC)."""

    def _read(self, of: Bounds) -> None:
        self.most_ns = of.number("most", "time")
        self.pieces = of.count("pieces", 64)
        self.period_ns = of.interval("period", "time")
        self.path = of.choice("path", (PATH, BACK))
        each = of.choice("flows", ("all", "each")) == "each"
        self.groups: tuple[int | None, ...] = self.network.victims if each else (None,)
        for group in self.groups:
            own = "" if group is None else f" of group {group + 1}"
            self.place(f"period{own}")
            for piece in range(self.pieces):
                self.amount(f"delay{own} in part {piece + 1}")

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Adds a stage periodic_delay for all flows, or a path of its own for each group."""
        size = 1 + self.pieces
        for number, group in enumerate(self.groups):
            stage = self._stage(x[number * size : (number + 1) * size])
            if stage is None:
                continue
            if group is None:
                self._insert(config, stage)
            else:
                self._own_path(config, group, stage)

    def _stage(self, x: Sequence[float]) -> Config | None:
        # A step of a 20th of the bound, so that what is found can be read.
        delays = [rounded(round(part * 20) / 20 * self.most_ns) for part in x[1:]]
        if not any(delays):
            return None
        period_ns = rounded(log_between(*self.period_ns, x[0]))
        if len(set(delays)) == 1:
            return {"delay": {"delay": time_text(delays[0])}}
        words = " ".join(time_text(delay) for delay in delays)
        return {"periodic_delay": {"period": time_text(period_ns), "delays": words}}

    def _insert(self, config: Config, stage: Config) -> None:
        place = link_of(config)[0] + 1 if self.path == PATH else 0
        params = next(iter(stage.values()))
        stages(config, self.path).insert(place, {next(iter(stage)): {"name": "late", **params}})

    def _own_path(self, config: Config, group: int, stage: Config) -> None:
        name = f"late{group + 1}"
        config["paths"][name] = [stage]
        flow = config["flows"][group]
        route = flow.setdefault("path", {PATH: [PATH], BACK: [BACK]})
        route[self.path].append(name)


class Bursts(
    Element, keys={"rate": "", "share": "20%", "period": "[100ms, 5s]", "shortest": "1ms"}
):
    """Cross traffic: bursts of UDP, one each period, of at most a share of the link on average."""

    def _read(self, of: Bounds) -> None:
        rate = of.values["rate"]
        self.rate_bps = of.number("rate", "rate") if rate else 2 * self.network.rate_bps
        self.share = of.number("share", "ratio")
        self.period_ns = of.interval("period", "time")
        self.shortest_ns = of.number("shortest", "time")
        if self.network.duration_ns / self.period_ns[0] > BURSTS_MAX:
            raise of.fail("period", f"at least {time_text(self.network.duration_ns / BURSTS_MAX)}")
        self.place("period of the bursts")
        self.amount("length of the bursts")
        self.place("first burst")

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Adds a group of flows, in which each burst is a flow."""
        period_ns = rounded(log_between(*self.period_ns, x[0]))
        most_ns = period_ns * min(1.0, self.share * self.network.rate_bps / self.rate_bps)
        length_ns = min(rounded(x[1] * most_ns, 2), most_ns)
        if length_ns < self.shortest_ns:
            return
        start_ns = rounded(x[2] * period_ns)
        count = max(1, math.ceil((self.network.duration_ns - start_ns) / period_ns))
        config["flows"].append(
            {
                "name": "bursts",
                "source": {"udp": {"rate": rate_text(self.rate_bps)}},
                "count": str(count),
                "start": time_text(start_ns),
                "stagger": time_text(period_ns),
                "stop": time_text(start_ns + length_ns),
                "stop_stagger": time_text(period_ns),
            }
        )


class Losses(
    Element, keys={"count": "4", "longest": "50ms", "from": "0s", "until": "", "path": PATH}
):
    """Times at which all packets of the path are lost: which ones is their placement."""

    def _read(self, of: Bounds) -> None:
        self.longest_ns = of.number("longest", "time")
        self.from_ns = of.number("from", "time")
        until = of.values["until"]
        self.until_ns = of.number("until", "time") if until else self.network.duration_ns
        self.path = of.choice("path", (PATH, BACK))
        if not self.from_ns < self.until_ns <= self.network.duration_ns:
            raise of.fail("from", "before `until` and the end of the run")
        for loss in range(of.count("count", 64)):
            self.place(f"time of loss {loss + 1}")
            self.amount(f"length of loss {loss + 1}")

    def _spans(self, x: Sequence[float]) -> list[tuple[float, float]]:
        """Returns the times of losses, overlapping ones joined."""
        end_ns = self.until_ns
        found: list[tuple[float, float]] = []
        for when, long in sorted(zip(x[::2], x[1::2], strict=True)):
            begin = rounded(self.from_ns + when * (end_ns - self.from_ns), 5)
            end = min(begin + rounded(long * self.longest_ns, 2), end_ns)
            if end - begin < 1e5:
                continue
            if found and begin <= found[-1][1]:
                found[-1] = (found[-1][0], max(end, found[-1][1]))
            else:
                found.append((begin, end))
        return found

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Adds a stage `loss` before the link, which is switched on and off."""
        spans = self._spans(x)
        if not spans:
            return
        stages(config, self.path).insert(0, {"loss": {"name": "lost", "rate": "0%"}})
        items = config.setdefault("schedule", [])
        for begin, end in spans:
            for when, rate in ((begin, "100%"), (end, "0%")):
                items.append({"at": time_text(when), f"{self.path}.lost.rate": rate})


class Loss(Element, keys={"most": "1%", "path": PATH}):
    """Random loss of packets before the link, or of ACKs."""

    def _read(self, of: Bounds) -> None:
        self.most = of.number("most", "ratio")
        self.path = of.choice("path", (PATH, BACK))
        self.amount("random loss" if self.path == PATH else "loss of ACKs")

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Adds a stage `loss`."""
        rate = rounded(100 * x[0] * self.most, 2)
        if rate > 0:
            name = "random" if self.path == PATH else "random_acks"
            stages(config, self.path).insert(0, {"loss": {"name": name, "rate": f"{rate:g}%"}})


class Start(Element, keys={"most": "1s"}):
    """Later starts of the groups after the first."""

    def _read(self, of: Bounds) -> None:
        self.most_ns = of.number("most", "time")
        self.groups = self.network.victims[1:]
        for group in self.groups:
            self.amount(f"start of group {group + 1}")

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Starts groups later than the config says."""
        for group, part in zip(self.groups, x, strict=True):
            later_ns = rounded(part * self.most_ns)
            if later_ns >= 1e6:
                own = units.config_time_ns(config["flows"][group].get("start", "0s")) or 0
                config["flows"][group]["start"] = time_text(own + later_ns)


class Reorder(Element, keys={"most": "2%", "late_by": "[1ms, 100ms]"}):
    """Packets that others overtake behind the link."""

    def _read(self, of: Bounds) -> None:
        self.most = of.number("most", "ratio")
        self.late_ns = of.interval("late_by", "time")
        self.amount("packets that are late")
        self.place("how late they are")

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Adds a stage `delay` of which only late packets see anything."""
        late = rounded(100 * x[0] * self.most, 2)
        if late > 0:
            late_by = time_text(rounded(log_between(*self.late_ns, x[1])))
            stage = {"name": "overtaken", "delay": "0s", "late": f"{late:g}%", "late_by": late_by}
            stages(config, PATH).insert(link_of(config)[0] + 1, {"delay": stage})


class Step(Element, keys={"most": "", "from": "0s"}):
    """A change for the rest of the run, from a time that is free."""

    unit: ClassVar[str]
    what: ClassVar[str]

    def _read(self, of: Bounds) -> None:
        self.most = of.number("most", self.unit)
        self.from_ns = of.number("from", "time")
        if not self.from_ns < self.network.duration_ns:
            raise of.fail("from", "before the end of the run")
        self.amount(self.what)
        self.place(f"time of the {self.what}")

    def _when_ns(self, x: Sequence[float]) -> float:
        return rounded(self.from_ns + x[1] * (self.network.duration_ns - self.from_ns))


class Longer(Step, keys={"most": "200ms", "from": "0s"}):
    """A path that becomes longer, as by another route."""

    unit, what = "time", "longer path"

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Adds a stage `delay` behind the link."""
        longer_ns = rounded(x[0] * self.most)
        if longer_ns >= 1e5:
            stage = {"delay": {"name": "longer", "delay": "0s"}}
            stages(config, PATH).insert(link_of(config)[0] + 1, stage)
            at(config, self._when_ns(x), f"{PATH}.longer.delay", time_text(longer_ns))


class Mtu(Step, keys={"most": "60%", "from": "0s"}):
    """A path MTU of 1500 bytes that falls by up to a part of it."""

    unit, what = "ratio", "smaller MTU"

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Adds a stage `mtu` before the link."""
        if less := round(1500 * x[0] * self.most):
            stages(config, PATH).insert(0, {"mtu": {"mtu": "1500B"}})
            at(config, self._when_ns(x), f"{PATH}.mtu.mtu", f"{max(68, 1500 - less)}B")


class Marks(Element, keys={"low": "5%", "high": "100%"}, ours=True):
    """ECN instead of drops: a queue that marks above a threshold, in BDP."""

    def _read(self, of: Bounds) -> None:
        self.low, self.high = of.number("low", "ratio"), of.number("high", "ratio")
        if not 0 < self.low <= self.high:
            raise of.fail("low", "above 0 and at most high")
        self.amount("marks")

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Makes the link's queue a `step`, and lets the flows use ECN where they can."""
        if x[0] < 0.01:
            return
        _, link = link_of(config)
        queue = link.get("queue", "fifo")
        params = {} if isinstance(queue, str) else next(iter(queue.values()))
        threshold = f"{rounded(log_between(self.high, self.low, x[0]), 2):g}BDP"
        limit = params.get("limit", "1BDP")
        link["queue"] = {"step": {"limit": limit, "threshold": threshold}}
        for group in self.network.victims:
            config["flows"][group] |= {"ecn": "ect0", "ecn_unheard": "allow"}


class Stretch(Element, keys={"most": "32"}, ours=True):
    """Receivers that acknowledge many segments at once."""

    def _read(self, of: Bounds) -> None:
        self.most = of.count("most", 64)
        self.amount("segments per ACK")

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Sets ack_every, which else is the config's."""
        each = round(log_between(2, max(2, self.most), x[0]))
        for group in self.network.victims if each > 2 else ():
            config["flows"][group]["ack_every"] = str(each)


class Window(Element, keys={"low": "8kB", "high": "1MB"}, ours=True):
    """Receivers with a small window."""

    def _read(self, of: Bounds) -> None:
        self.low, self.high = of.number("low", "size"), of.number("high", "size")
        if not 2000 <= self.low <= self.high:
            raise of.fail("low", "at least 2kB and at most high")
        self.amount("smaller receive window")

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Sets rwnd."""
        for group in self.network.victims if x[0] >= 0.01 else ():
            bytes_ = rounded(log_between(self.high, self.low, x[0]), 2)
            config["flows"][group]["rwnd"] = f"{bytes_:.0f}B"


class Pauses(Element, keys={"most": "5s", "sizes": "[20kB, 20MB]"}, ours=True):
    """Applications that pause: each flow sends a piece, waits, and sends the next one."""

    def _read(self, of: Bounds) -> None:
        self.most_ns = of.number("most", "time")
        self.sizes = of.interval("sizes", "size")
        self.amount("pauses")
        self.place("size of the pieces")

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Makes the flows' source `closed`, over one connection."""
        pause_ns = rounded(x[0] * self.most_ns)
        if pause_ns < 1e6:
            return
        size = f"{rounded(log_between(*self.sizes, x[1]), 2):.0f}B"
        for group in self.network.victims:
            config["flows"][group]["source"] = {
                "closed": {
                    "sizes": {"mean": size},
                    "think": time_text(pause_ns),
                    "times": "fixed",
                    "connection": "keep",
                }
            }


ELEMENTS: dict[str, type[Element]] = {
    "rate": Rate,
    "buffer": Buffer,
    "delay": Delay,
    "acks": Delay,
    "bursts": Bursts,
    "losses": Losses,
    "loss": Loss,
    "ack_loss": Loss,
    "reorder": Reorder,
    "longer": Longer,
    "mtu": Mtu,
    "marks": Marks,
    "stretch": Stretch,
    "window": Window,
    "pauses": Pauses,
    "start": Start,
}
