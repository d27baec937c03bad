# SPDX-License-Identifier: BSD-3-Clause
"""The scenarios of draft-huitema-ccwg-c4-test and their published times (study c4)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from weir.analysis.folder import Run
from weir.study.claim import Trial

CONTROLS = {"cubic": "CUBIC", "bbr3": "BBR"}  # ours, and what the source calls it
SEEDS = (5, 30)
OF_BYTES = (1440 / 1405) / (1500 / 1448)
NO_DROPS = (
    "picoquic's DualPI2 has p' times the L4S queue's own probability, where RFC 9332, appendix A.1,"
    " has p' squared; without L4S packets that is 0, so it drops nothing (dualq_aqm.c)"
)
BW_PROBE = (
    "ours looks for bandwidth at 3.74 s, 1.2 s after the rate has doubled (the draft waits 2 to 3 s"
    " between probes), and measures the RTT with half of the window at 5.1 s; picoquic's probes"
    " again at once while its bandwidth grows (bbr.c, probe_probe_bw_quickly)"
)
NO_C4 = "the other download's control is C4, which Weir does not have"


@dataclass(frozen=True)
class Times:
    """Seconds, of 100 runs."""

    mean: float
    p90: float


@dataclass(frozen=True)
class Scenario:
    """A row of the source's tables.

    rtt_ms: of the path when the download ends. random: seeds change it. own: further changes of a
    control's runs. why: the cause where a control's time differs, by control, or the order of both.
    cannot: why it cannot be run.
    """

    name: str
    title: str
    section: str
    published: dict[str, Times]
    config: str = ""
    override: tuple[str, ...] = ()
    rtt_ms: float = 0.0
    random: bool = False
    own: dict[str, tuple[str, ...]] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    cannot: str = ""

    def trial(self, cc: str) -> Trial:
        """The download with a control of ours."""
        override = (f"flows.0.cc={cc}", *self.override, *self.own.get(cc, ()))
        seeds = SEEDS if self.random else (0, 0)
        return Trial(
            f"{self.name}-{cc}", Path(__file__).with_name(f"{self.config}.yaml"), override, seeds
        )

    def time_s(self, run: Run) -> float:
        """Until the main download's connection would be over in picoquic; not a number: not yet."""
        return closed_s(run) + self.rtt_ms / 1e3

    def what(self, cc: str) -> str:
        """What is published of a control."""
        return f"{CONTROLS[cc]}'s mean time (nine of ten: {self.published[cc].p90:.3f} s)"


def closed_s(run: Run) -> float:
    """When all of the first flow was acknowledged."""
    flows = run.stream("flows")
    records = flows.records
    closed = records[
        (records["flow_id"] == 0) & (records["event"] == flows.number("event", "close"))
    ]
    return float(closed["ts_ns"][0]) / 1e9 if len(closed) else math.nan


def size(megabytes: float, flow: int = 0) -> str:
    """As many bytes on the link as picoquic's megabytes take."""
    return f"flows.{flow}.source.size.bytes={round(megabytes * 1e6 * OF_BYTES)}B"


def path(rate: str, delay: str, queue: str) -> tuple[str, ...]:
    """Both directions."""
    return tuple(
        f"paths.{way}.{key}={value}"
        for way in ("forward", "reverse")
        for key, value in (
            ("link.rate", rate),
            ("delay.delay", delay),
            ("link.queue.fifo.limit", queue),
        )
    )


def times(cubic: tuple[int, int], bbr: tuple[int, int]) -> dict[str, Times]:
    """Mean and 90th percentile in microseconds, as the tables have them."""
    rows = (("cubic", cubic), ("bbr3", bbr))
    return {cc: Times(mean / 1e6, p90 / 1e6) for cc, (mean, p90) in rows}


EVENTS = "3.1, network events"
COMPETE = "3.2, competition"
WIFI = "3.3, Wi-Fi"
ECN = "3.4, ECN"
ALONE = (
    Scenario(
        "alone",
        "10 MB at 20 Mbit/s and 80 ms",
        EVENTS,
        times((4472465, 4518852), (4689260, 4698415)),
        "alone",
        rtt_ms=80,
        random=True,
        own={"bbr3": ("paths.forward.link.queue.fifo.limit=30ms",)},
    ),
    Scenario(
        "alone_200",
        "20 MB at 200 Mbit/s and 40 ms",
        EVENTS,
        times((1145722, 1148423), (1221630, 1222012)),
        "solo",
        rtt_ms=40,
    ),
    Scenario(
        "alone_1_5M",
        "4 MB at 1.536 Mbit/s and 40 ms",
        EVENTS,
        times((21514264, 21552321), (21717251, 21718512)),
        "solo",
        (*path("1536kbit", "20ms", "50ms"), size(4)),
        rtt_ms=40,
    ),
    Scenario(
        "alone_512k",
        "1 MB at 512 kbit/s and 34 ms",
        EVENTS,
        times((16183314, 16208261), (16211371, 16217210)),
        "solo",
        (*path("512kbit", "17ms", "50ms"), size(1)),
        rtt_ms=34,
    ),
    Scenario(
        "low_and_up",
        "7 MB; 5 Mbit/s, then 10 Mbit/s",
        EVENTS,
        times((8035433, 8071920), (7506849, 7511647)),
        "low_and_up",
        rtt_ms=100,
        why={
            "bbr3": BW_PROBE,
            "order": f"as for BBR's time: {BW_PROBE}",
        },
    ),
    Scenario(
        "drop_and_back",
        "7 MB; 10 Mbit/s, 5 Mbit/s for 2 s",
        EVENTS,
        times((7629764, 7632455), (7625693, 7630825)),
        "drop_and_back",
        rtt_ms=100,
    ),
    Scenario(
        "blackhole",
        "10 MB; 25 Mbit/s, nothing for 2 s",
        EVENTS,
        times((5695660, 5699327), (5811316, 5815444)),
        "blackhole",
        rtt_ms=70,
    ),
    Scenario(
        "short_long",
        "20 MB at 10 Mbit/s; 30 ms, then 200 ms",
        EVENTS,
        times((21368101, 21541922), (42331541, 43394841)),
        "short_long",
        rtt_ms=200,
        why={
            "cubic": "ours leaves slow start at a loss in the first second and has 77 segments of"
            " window when the path becomes longer; picoquic's leaves it as soon as the RTT has"
            " grown by a quarter, and halves the window (cubic.c, cc_common.c)",
            "bbr3": "both keep a window of twice the BDP of the old RTT, 52 segments of the 174"
            " that the new one needs; ours until the smallest RTT is measured anew. picoquic's has"
            " the largest of 7 RTTs for its minimum and puts the measurement off while RTTs are"
            " near it (bbr.c, BBRUpdateMinRTT)",
        },
    ),
    Scenario(
        "satellite",
        "100 MB at 250 Mbit/s and 600 ms",
        EVENTS,
        times((6704246, 6704247), (7492539, 7834142)),
        cannot="it begins with a remembered window of 18.75 MB (careful resume, RFC 9959); the"
        " largest initial window of our controls is 1000 segments",
    ),
    Scenario(
        "wifi_bad",
        "4 MB at 10 Mbit/s and 2 ms over bad Wi-Fi",
        WIFI,
        times((4076699, 4475581), (5601202, 7615210)),
        "wifi_bad",
        rtt_ms=2,
        random=True,
        why={
            "cubic": "ours answers each loss in the full queue with 0.7 of its window, three times;"
            " with a queue of 2 s, where nothing is lost, it takes 3.7 s. picoquic's reduces only"
            " when the smoothed loss rate is above 15 %, and then to 7/8 (cubic.c)",
            "bbr3": "the smallest RTT is 5 ms and most are above 100 ms, so twice the BDP is 30 to"
            " 60 segments, a third of what a full link needs; nothing is lost. picoquic's takes the"
            " largest of 7 RTTs for its minimum, against jitter (bbr.c, RTTJitterBuffer)",
        },
    ),
    Scenario(
        "wifi_fade",
        "10 MB at 20 Mbit/s and 80 ms; bad Wi-Fi for 2 s",
        WIFI,
        times((5341227, 5550898), (5403001, 5599818)),
        "wifi_fade",
        rtt_ms=80,
        random=True,
        why={
            "order": "the published means are 1.2 % apart, ours as near, the other way",
        },
    ),
    Scenario(
        "wifi_suspension",
        "10 MB at 20 Mbit/s and 10 ms, nothing for the last 0.2 s of each 2 s",
        WIFI,
        times((4600118, 4602178), (4615871, 4616328)),
        "wifi_suspension",
        rtt_ms=10,
    ),
    Scenario(
        "ecn",
        "10 MB at 20 Mbit/s and 80 ms behind DualPI2",
        ECN,
        times((4460773, 4457939), (4670054, 4671124)),
        "ecn",
        rtt_ms=80,
        random=True,
        why={
            "cubic": f"{NO_DROPS}; the row below is a FIFO as long. In ours slow start's end costs"
            " six reductions within 1.4 s, down to 27 segments",
            "order": f"as for CUBIC's time: {NO_DROPS}",
        },
    ),
)


def beside(
    name: str,
    other: str,
    cubic: tuple[int, int],
    bbr: tuple[int, int],
    title: str,
    config: str,
    *override: str,
    rtt_ms: float,
    why: str = "",
) -> Scenario:
    """A download beside one of another control."""
    section = {"pair": COMPETE, "wifi_pair": WIFI, "ecn_pair": ECN}[config]
    return Scenario(
        name,
        title,
        section,
        times(cubic, bbr),
        config,
        (f"flows.1.cc={other}", *override),
        rtt_ms,
        random=True,
        why={"order": why} if why else {},
        cannot="" if other in CONTROLS else NO_C4,
    )


LONG = (size(30), size(20, 1))
LAST = (*path("10Mbit", "35ms", "80ms"), size(15), size(10, 1), "flows.1.start=1s")
SHORT_TITLE = "5 MB beside 10 MB at 20 Mbit/s and 80 ms"
LONG_TITLE = "30 MB beside 20 MB at 20 Mbit/s and 80 ms"
LAST_TITLE = "15 MB beside 10 MB that begin 1 s later, at 10 Mbit/s and 70 ms"
WIFI_TITLE = "4 MB beside 10 MB that began 1 s before, at 10 Mbit/s and 2 ms over bad Wi-Fi"
ECN_TITLE = "10 MB beside 20 MB that began 1 s before, at 20 Mbit/s and 80 ms behind DualPI2"
BESIDE = tuple(
    beside(name, other, cubic, bbr, title, config, *override, rtt_ms=rtt_ms)
    for name, other, cubic, bbr, title, config, override, rtt_ms in (
        ("vs_bbr", "bbr3", (2853022, 2877804), (4501471, 4580449), SHORT_TITLE, "pair", (), 80),
        ("vs_c4", "c4", (7891899, 8424848), (6813101, 6843240), SHORT_TITLE, "pair", (), 80),
        ("vs_cubic", "cubic", (5348004, 5580459), (6974953, 7089722), SHORT_TITLE, "pair", (), 80),
        (
            "after_c4",
            "c4",
            (7208456, 7494092),
            (6846566, 6991485),
            "5 MB, 0.5 s after 10 MB",
            "pair",
            (),
            80,
        ),
        (
            "before_c4",
            "c4",
            (3105136, 4163561),
            (4281776, 5404668),
            "10 MB, 0.5 s before 20 MB, at 50 Mbit/s and 30 ms",
            "pair",
            (),
            30,
        ),
        ("vs_c4_lg", "c4", (23618741, 25105527), (32250064, 39556964), LONG_TITLE, "pair", (), 80),
        ("vs_c4_lg2", "c4", (21818194, 22272580), (21139542, 21379953), LAST_TITLE, "pair", (), 70),
        (
            "vs_bbr_lg",
            "bbr3",
            (15562778, 15839671),
            (21098503, 21131562),
            LONG_TITLE,
            "pair",
            LONG,
            80,
        ),
        (
            "vs_bbr_lg2",
            "bbr3",
            (21520837, 22323666),
            (18711270, 18954745),
            LAST_TITLE,
            "pair",
            LAST,
            70,
        ),
        (
            "vs_cubic_lg",
            "cubic",
            (20902893, 21120555),
            (21430554, 21760143),
            LONG_TITLE,
            "pair",
            LONG,
            80,
        ),
        (
            "vs_cubic_lg2",
            "cubic",
            (20672401, 20930258),
            (15533300, 15706948),
            LAST_TITLE,
            "pair",
            LAST,
            70,
        ),
        (
            "wifi_bad_bbr",
            "bbr3",
            (6837401, 12533043),
            (7280777, 11626769),
            WIFI_TITLE,
            "wifi_pair",
            (),
            2,
        ),
        (
            "wifi_bad_c4",
            "c4",
            (8426742, 12435459),
            (9650917, 12288047),
            WIFI_TITLE,
            "wifi_pair",
            (),
            2,
        ),
        (
            "wifi_bad_cubic",
            "cubic",
            (10397119, 13905062),
            (8731338, 12011172),
            WIFI_TITLE,
            "wifi_pair",
            (),
            2,
        ),
        ("ecn_c4", "c4", (13977479, 14561797), (17269928, 17698371), ECN_TITLE, "ecn_pair", (), 80),
        (
            "ecn_cubic",
            "cubic",
            (13356991, 13961159),
            (9701695, 10561707),
            ECN_TITLE,
            "ecn_pair",
            (),
            80,
        ),
        (
            "ecn_bbr",
            "bbr3",
            (16900370, 17458084),
            (13246715, 13372125),
            ECN_TITLE,
            "ecn_pair",
            (),
            80,
        ),
    )
)
