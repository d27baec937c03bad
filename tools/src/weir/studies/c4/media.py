# SPDX-License-Identifier: BSD-3-Clause
"""The calls of draft-huitema-ccwg-c4-test and their published times (study c4)."""

from __future__ import annotations

from weir.analysis.folder import Run
from weir.studies.c4.scenarios import CONTROLS, Scenario, path, times
from weir.study.claim import Trial

MEDIA = "3.5, media"
MEDIA_FROM_S = {"media_short_long": 5.0}  # frames from then on count
BOTH_WAYS = (
    "a frame's time ends here with its ACK, which waits on the bad link back as well; picoquic's"
    " has the way to the server once, in the request, and ends where the frame is complete"
)
TWICE = {"cubic": BOTH_WAYS, "bbr3": BOTH_WAYS}
SHORT_OF_WINDOW = (
    "each stream has a connection and a window of its own here, and BBR lets that be half a BDP in"
    " its ProbeRTT; picoquic's streams share one, and the smaller video goes before the larger"
)


class Call(Scenario):
    """A row of the media tables: the larger of the mean times of an audio and of a video frame.

    The larger video does not count, as in the source, where its late groups are cancelled.
    """

    def trial(self, cc: str) -> Trial:
        """All three streams with a control of ours."""
        made = super().trial(cc)
        others = (f"flows.1.cc={cc}", f"flows.2.cc={cc}")
        return Trial(made.name, made.config, (*made.override, *others), made.seeds)

    def time_s(self, run: Run) -> float:
        """From when a frame is written until its last byte is acknowledged.

        picoquic's begins when the client's request would have asked for it, half a round trip
        before it is written, and ends with its arrival.
        """
        transfers = run.stream("transfers")
        records = transfers.records
        counted = records[
            (records["event"] == transfers.number("event", "close"))
            & (records["start_ns"] >= MEDIA_FROM_S.get(self.name, 0.2) * 1e9)
        ]
        times_s = (counted["ts_ns"] - counted["start_ns"]) / 1e9
        return max(float(times_s[counted["group"] == group].mean()) for group in (0, 1))

    def what(self, cc: str) -> str:
        """Of a row."""
        longest_ms = self.published[cc].p90 * 1e3
        return (
            f"{CONTROLS[cc]}'s mean time of a frame (nine of ten calls: below {longest_ms:.0f} ms)"
        )


CALLS: tuple[Scenario, ...] = tuple(
    Call(
        name,
        title,
        MEDIA,
        times(cubic, bbr),
        config,
        override,
        random=config in ("media_wb", "media_wf", "media_ecn"),
        why=why,
    )
    for name, cubic, bbr, title, config, override, why in (
        ("media", (33512, 43453), (33427, 43453), "100 Mbit/s and 30 ms", "media", (), {}),
        (
            "media10",
            (47755, 92163),
            (44991, 71128),
            "10 Mbit/s and 40 ms",
            "media",
            path("10Mbit", "20ms", "100ms"),
            {"bbr3": SHORT_OF_WINDOW, "order": f"as for BBR's time: {SHORT_OF_WINDOW}"},
        ),
        (
            "media_600fr",
            (33629, 43453),
            (33545, 43453),
            "20 s at 100 Mbit/s and 30 ms",
            "media",
            ("duration=20500ms",),
            {},
        ),
        (
            "media_short_long",
            (100766, 109180),
            (134059, 334491),
            "100 Mbit/s and 30 ms, then 100 ms",
            "media_short_long",
            (),
            {"bbr3": "as in short_long: picoquic's window stays that of the shorter path longer"},
        ),
        (
            "media_wb",
            (84391, 274677),
            (85353, 304794),
            "20 Mbit/s and 2 ms over bad Wi-Fi",
            "media_wb",
            (),
            TWICE,
        ),
        (
            "media_wf",
            (83914, 298720),
            (86474, 365839),
            "20 Mbit/s and 40 ms; bad Wi-Fi for 2 s",
            "media_wf",
            (),
            TWICE,
        ),
        (
            "media_ws",
            (22495, 197821),
            (21645, 195521),
            "20 Mbit/s and 10 ms, nothing for the last 0.2 s of each 2 s",
            "media_ws",
            (),
            {"bbr3": SHORT_OF_WINDOW, "order": f"as for BBR's time: {SHORT_OF_WINDOW}"},
        ),
        (
            "media_ecn",
            (34716, 50996),
            (34481, 50996),
            "20 Mbit/s and 30 ms behind DualPI2",
            "media_ecn",
            (),
            {},
        ),
    )
)
