# SPDX-License-Identifier: BSD-3-Clause
"""A run folder: summary, manifest, resolved config and telemetry streams."""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from weir.base import foreign
from weir.base.configs import Config
from weir.base.errors import UserError, open_lock
from weir.base.foreign import Json

if TYPE_CHECKING:
    import polars as pl

    from weir.analysis.model import Manifest
    from weir.analysis.ring import Ring, Values
    from weir.analysis.run_summary import RunSummary
    from weir.analysis.stream import Stream

CHUNK_RECORDS = 1 << 22
RUN = ("packets", "cc", "flows", "interval", "links", "events", "arrivals", "transfers", "ip_flows")
# Streams of a capture: three with sums of each flow, and one with every segment.
CAPTURE = ("captured", "losses", "delays", "segments")
STREAMS = RUN + CAPTURE
# weir-sim writes the first; live, each program writes its own.
SUMMARIES = ("summary.json", "summary-switch.json", "summary-sender.json")
MANIFESTS = ("manifest.json", "manifest-switch.json", "manifest-sender.json")
# The config of a run, and files about it; common/run/run_folder.c.
ABOUT = ("config.yaml", "report.html", "labels.json", "measured.json")
# The folder in a run's of the weir-sender for live.receiver.
RECEIVER = "receiver"
BRANCHES = "branches"  # runs of their own, in the folder of the run that they go on from

LOCK = ".weir-lock"  # a byte for each live program's files; common/run/run_folder.c
FLOCK = "hhqqi"  # struct flock


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Locks a run folder, if it exists, against other runs. UserError: a program writes there."""
    if not path.is_dir():
        yield
        return
    file = path / LOCK
    with ExitStack() as stack:
        while True:  # until it is a file that no other run has removed meanwhile
            lock = stack.enter_context(open_lock(file))
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 2)
            except (BlockingIOError, PermissionError):
                raise UserError(
                    f"{path}: another run is writing there: choose another --out"
                ) from None
            if os.fstat(lock.fileno()).st_nlink > 0:
                break
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def is_written(path: Path) -> bool:
    """Returns whether a program writes a run there now; nothing is locked for that."""
    with suppress(UserError, OSError), foreign.open_regular(path / LOCK) as lock:
        asked = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 2, 0)
        held, *_ = struct.unpack(FLOCK, fcntl.fcntl(lock, fcntl.F_GETLK, asked))
        return bool(held != fcntl.F_UNLCK)
    return False


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yields a path beside `path`; the file written there replaces `path` at the end.

    If that fails it is removed, and `path` stays as it was. The path beside may be taken already:
    by an earlier process with this one's number, or by a link to any file.
    """
    beside = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    beside.unlink(missing_ok=True)
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Replaces a file, or leaves the one that was there and raises UserError with its path."""
    try:
        with whole(path) as beside, beside.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}", 1) from None


def write_report(path: Path, content: str) -> None:
    """Replaces a page of a run or a sweep; UserError says where else it can be written."""
    try:
        write_whole(path, content)
    except UserError as error:
        raise UserError(f"{error}; weir report --out DIR writes it elsewhere", 1) from None


def write_json(path: Path, value: object) -> None:
    write_whole(path, json.dumps(value, indent=1) + "\n")


def write_table(path: Path, table: pl.DataFrame) -> None:
    content = io.BytesIO()  # what Polars says of a full disk is no OSError
    table.write_parquet(content)
    write_whole(path, content.getvalue())


def written(path: Path) -> dict[str, int]:
    """Returns when each manifest of a folder was written, in ns: a new run changes it."""
    found = (path / name for name in MANIFESTS)
    return {file.name: file.stat().st_mtime_ns for file in found if file.exists()}


def clear(path: Path) -> None:
    """Removes a run's files from its folder, and nothing else."""
    names = (*SUMMARIES, *MANIFESTS, *ABOUT)
    for part in (
        path / "hosts",
        path / BRANCHES,
        *path.glob("*.ring"),
        *(path / name for name in names),
    ):
        inside = part.is_dir() and not part.is_symlink()
        shutil.rmtree(part) if inside else part.unlink(missing_ok=True)


def read_json(path: Path) -> Json:
    """Returns a file's JSON object. UserError: it has none."""
    return foreign.read_json(path, Json)


def read_summary(path: Path) -> Json:
    """Returns a summary's JSON. UserError: a known member has not the type that it should."""
    from weir.analysis import run_summary

    document = read_json(path)
    run_summary.decode(document, str(path))
    return document


# Members that each program writes of itself.
NOT_MERGED = ("program", "ledger", "telemetry", "verdict", "verdicts", "faults", "digest")


def merge_live(path: Path, killed: Mapping[str, str] | None = None) -> Json:
    """Returns the summary of a folder's live programs, empty if none wrote one.

    A program that has a manifest and no summary was killed, or still runs; `killed` has a sentence
    for each of which that is known.
    """
    parts: dict[str, Json] = {}
    missing: dict[str, str] = {}
    places = {"switch": path, "sender": path, RECEIVER: path / RECEIVER}
    for name, place in places.items():
        program = "switch" if name == "switch" else "sender"
        summary = place / f"summary-{program}.json"
        parts[name] = read_summary(summary) if summary.exists() else {}
        if not parts[name] and (place / f"manifest-{program}.json").exists():
            missing[name] = f"weir-{name} wrote no summary: it was killed, or still runs"
    if not any(parts.values()):
        return {}
    return merge_summaries(
        parts["switch"], parts["sender"], {**missing, **(killed or {})}, parts[RECEIVER]
    )


def merge_summaries(
    switch: Json,
    sender: Json,
    missing: Mapping[str, str] | None = None,
    receiver: Json | None = None,
) -> Json:
    """Returns a summary of a live run from its programs' own.

    Each section comes from the program that measured it: links from the switch, groups from the
    sender, receivers from live.receiver's, emulation errors from all. The ledger balances when all
    do; whether that of a missing program does is not known. A program that did not end by itself
    comes first in the verdict. Interruptions that follow from it are left out, and those of a
    switch or a receiver whose sender had finished, which are as they should be.
    """
    parts = {"switch": switch, "sender": sender, RECEIVER: receiver or {}}
    present = {name: part for name, part in parts.items() if part}
    programs = " + ".join(dict.fromkeys(str(part.get("program")) for part in present.values()))
    merged: Json = {}
    if "receivers" in parts[RECEIVER]:
        merged["receivers"] = parts[RECEIVER]["receivers"]
    for part in (sender, switch):  # the switch's measure wins: it is the bottleneck
        for key, value in part.items():
            if key not in NOT_MERGED:
                merged[key] = value
    merged |= {"kind": "live", "program": programs}
    errors = [parts[name].get("emulation", {}) for name in (RECEIVER, "sender", "switch")]
    if any(errors):
        merged["emulation"] = {**errors[0], **errors[1], **errors[2]}
    ledgers = {name: part.get("ledger", {}) for name, part in present.items()}
    balanced = {name: None for name in missing or ()} | {
        name: bool(part.get("balanced")) for name, part in ledgers.items()
    }
    merged["ledger"] = {
        **ledgers.get("sender", {}),
        **ledgers.get("switch", {}),
        "balanced": all_of(balanced.values()),
        "programs": balanced,
    }
    telemetry = {name: part.get("telemetry", {}) for name, part in present.items()}
    merged["telemetry"] = {
        "level": max((of.get("level", 0) for of in telemetry.values()), default=0),
        "streams": {
            f"{stream}-{name}": counts
            for name, of in telemetry.items()
            for stream, counts in of.get("streams", {}).items()
        },
    }
    merged["faults"] = [
        {"program": name, **fault}
        for name, part in present.items()
        for fault in part.get("faults", [])
        # It goes down as the sender ends; before that it is down at the sender's port too.
        if (name, fault["cause"]) != (RECEIVER, "port_down")
    ] + unseen_losses(merged, present.values())
    merged["verdicts"] = merge_verdicts(present, missing or {})
    merged["verdict"] = verdict(merged["verdicts"])
    return merged


def all_of(balanced: Iterable[bool | None]) -> bool | None:
    """Returns whether all ledgers balance; None: all that are known do."""
    found = {*balanced}
    if False in found:
        return False
    return None if None in found else True


def unseen_losses(merged: Json, parts: Iterable[Json], between: int = 0) -> list[Json]:
    """Returns a fault if more segments were resent than frames are known to be lost.

    Losses of the whole run are compared with the retransmissions of the measured time, less those
    found to be needless. Empty without a switch: what another network loses is not known. between:
    frames lost on the cables between hosts.
    """
    if not merged.get("links") or not merged.get("groups"):
        return []
    ports = [p for part in parts for p in (*part.get("ports", ()), *part.get("sender_ports", ()))]
    counters = ("driver_missed", "driver_no_mbuf", "tx_dropped", "tx_unsent")
    known = between + sum(merged["ledger"].get("drops", {}).values())
    known += sum(port.get(counter) or 0 for port in ports for counter in counters)
    resent = sum(
        (group.get("retransmits") or 0) - (group.get("spurious") or 0) for group in merged["groups"]
    )
    if resent <= known:
        return []
    sentence = (
        f"{resent} segments were resent and {known} frames are known to be lost: the others were"
        " lost where nothing counts them, or resent without need"
    )
    return [{"cause": "unseen_losses", "sentence": sentence, "count": resent - known}]


def verdict(facts: Sequence[Json]) -> str:
    """Returns the first fact's sentence, or "ok"."""
    return str(facts[0]["sentence"]) if facts else "ok"


def merge_verdicts(present: Mapping[str, Json], missing: Mapping[str, str]) -> list[Json]:
    """Returns the facts of all programs: how they ended, then what fell behind in them."""
    ends_of_sender = [fact["cause"] for fact in present.get("sender", {}).get("verdicts", [])]
    sent_all = "sender" in present and "interrupted" not in ends_of_sender
    killed = [{"cause": "no_summary", "sentence": said} for said in missing.values()]
    ends: list[Json] = []
    found: list[Json] = []
    for name, part in present.items():
        for fact in part.get("verdicts", []):
            if fact["cause"] != "interrupted":
                found.append({"program": name, **fact})
            elif not (missing or ends or (sent_all and name != "sender")):
                ends.append(fact)  # both were, by the same signal
    return [*killed, *ends, *found]


class HostClock(NamedTuple):
    """A host's clock against the switch's in the middle of a run."""

    middle_ns: int  # UTC by the switch's clock
    ahead_ns: float
    drift_ppm: float


@dataclass(repr=False)
class Run:
    """A run folder that was read; streams are opened when first asked for.

    packets, cc, flows, interval, links, events and arrivals are its streams, as common/telemetry/
    schema.h describes them. A run that goes on shows what was written when it was opened.
    """

    path: Path
    summary: RunSummary
    summary_data: bytes  # the JSON of its summary; empty: the run never ended
    manifest: Manifest
    config_text: str
    notes: list[str] = field(default_factory=list)  # what a reader should know about the data

    @cached_property
    def summary_json(self) -> Json:
        """The summary as its file has it; empty if the run never ended."""
        place = str(self.path / SUMMARIES[0])
        return foreign.decode(self.summary_data, Json, place) if self.summary_data else {}

    @cached_property
    def config(self) -> Config:
        """The resolved config, every scalar as text."""
        from weir.base import configs

        place = str(self.path / "config.yaml")
        try:
            value = foreign.decode_yaml(self.config_text, place) or {}
            foreign.check(value, configs.Shape, place)
            return foreign.check(value, Config, place)
        except UserError as error:
            self.notes.append(f"{error}.")
            return {}

    @property
    def packets(self) -> Stream:
        """Packets queued, dequeued, dropped, marked and sent: level 3; level 2: of some flows."""
        return self.stream("packets")

    @property
    def cc(self) -> Stream:
        """The congestion control's state after each ACK: level 3; level 2: of some flows."""
        return self.stream("cc")

    @property
    def flows(self) -> Stream:
        """Flows that opened, closed, failed or were still open at the end."""
        return self.stream("flows")

    @property
    def interval(self) -> Stream:
        return self.stream("interval")

    @property
    def links(self) -> Stream:
        return self.stream("links")

    @property
    def events(self) -> Stream:
        """Window reductions, mode switches, changes of a link: what happens rarely."""
        return self.stream("events")

    @property
    def arrivals(self) -> Stream:
        """Packets as they entered a path, if telemetry.arrivals asked for them."""
        return self.stream("arrivals")

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams that were recorded, also of those without a record."""
        return tuple(stream for stream in STREAMS if self._opened[stream])

    def stream(self, name: str) -> Stream:
        """Returns a stream by its name. UserError: it was not recorded, or has no such name."""
        if not self.rings(name):
            has = ", ".join(self.streams) or "nothing"
            raise UserError(f"{self.path}: {name} were not recorded (telemetry.level), only {has}")
        return self._streams[name]

    def rings(self, stream: str) -> list[Ring]:
        """Returns the stream's files: one in virtual time, one per program live."""
        if stream not in STREAMS:
            raise UserError(f"there is no stream '{stream}'; there is {', '.join(STREAMS)}")
        return self._opened[stream]

    @cached_property
    def _opened(self) -> dict[str, list[Ring]]:
        from weir.analysis.ring import RingError, open_ring

        found: dict[str, list[Ring]] = {stream: [] for stream in STREAMS}
        for stream in STREAMS:
            names = (f"{stream}.ring", f"{stream}-*.ring")
            for path in sorted(path for name in names for path in self.path.glob(name)):
                try:
                    found[stream].append(open_ring(path))
                    found[stream][-1].check_length()  # what is there is shown
                except RingError as error:
                    self.notes.append(f"{error}.")
        return found

    @cached_property
    def _streams(self) -> dict[str, Stream]:
        from weir.analysis.stream import Shift, Stream

        found = {}
        for name in self.streams:
            rings = self._opened[name]
            delays = [max(0, self.started_ns(ring) - self.start_utc_ns) for ring in rings]
            clocks = [self.clock(ring) for ring in rings]
            drifts = [clock.drift_ppm / 1e6 if clock else 0.0 for clock in clocks]
            found[name] = Stream(rings, list(map(Shift, delays, drifts)))
        return found

    def clock(self, ring: Ring) -> HostClock | None:
        """Returns the clock of the host that wrote a file, STREAM-HOST.ring; None: not known."""
        host = self.summary.hosts.get(ring.path.stem.partition("-")[2])
        if host is None or not isinstance(host.offset_ns, float):
            return None
        return HostClock(host.offset_utc_ns or 0, host.offset_ns, host.drift_ppm or 0.0)

    def started_ns(self, ring: Ring) -> int:
        """Returns UTC of a file's 0 ns by the clock of the switch's host."""
        start_ns, clock = int(ring.header.utc_start_ns), self.clock(ring)
        if not clock:
            return start_ns
        since_ns = start_ns - clock.middle_ns - clock.ahead_ns
        return clock.middle_ns + round(since_ns / (1 + clock.drift_ppm / 1e6))

    @cached_property
    def start_utc_ns(self) -> int:
        """UTC of the run's 0 ns, when its first live program started; 0 in virtual time."""
        starts = [self.started_ns(ring) for rings in self._opened.values() for ring in rings]
        return min((start for start in starts if start > 0), default=0)

    def chunks(self, stream: str, columns: Sequence[str]) -> Iterator[dict[str, Values]]:
        """Yields a stream's columns, some million records at a time; nothing if not recorded."""
        if self.rings(stream):
            for batch in self.stream(stream).batches(CHUNK_RECORDS):
                yield {name: batch[name] for name in columns}

    def chunk_frames(self, stream: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yields what `chunks` does as frames, in which what is not known is null."""
        if self.rings(stream):
            for batch in self.stream(stream).batches(CHUNK_RECORDS):
                yield batch.to_polars(columns)

    def frames(self, stream: str) -> Iterator[tuple[Ring, pl.DataFrame]]:
        """Yields the records of each file of a stream that has any, with that file's names."""
        if self.rings(stream):
            for ring, batch in self.stream(stream).parts():
                if len(batch) > 0:
                    yield ring, batch.to_polars()

    def values(self, stream: str, name: str) -> dict[str, int]:
        """Returns the numbers of a stream's field by their names; empty without the stream."""
        return {key: n for ring in self.rings(stream) for key, n in ring.values(name).items()}

    def frame(self, stream: str) -> pl.DataFrame | None:
        """Returns all records of a stream; None if there are none.

        Of files with different fields those that all have.
        """
        if not self.rings(stream) or len(self.stream(stream)) == 0:
            return None
        return self.stream(stream).to_polars()


def check(path: Path) -> None:
    """Raises UserError if there is no folder."""
    if not path.exists():
        raise UserError(f"{path}: no such run folder")
    if not path.is_dir():
        raise UserError(f"{path}: not a run folder but a file")


def is_run(path: Path) -> bool:
    return any((path / name).exists() for name in MANIFESTS)


def load(path: Path | str) -> Run:
    """Reads a run folder; one without a summary has a note. UserError: it is none."""
    import msgspec

    from weir.analysis import model, run_summary

    path = Path(path)
    try:
        with os.scandir(path) as files:
            names = {file.name for file in files}
    except OSError as error:
        check(path)
        raise UserError(f"{path}: cannot be read: {error.strerror}", 1) from None
    if names.isdisjoint(SUMMARIES + MANIFESTS) and not any(n.endswith(".ring") for n in names):
        raise UserError(f"{path}: not a run folder: no manifest.json, summary.json or .ring in it")
    notes = []
    data = b""
    if SUMMARIES[0] in names:
        data = foreign.read_bytes(path / SUMMARIES[0])
    elif names.intersection(SUMMARIES):
        data = msgspec.json.encode(merge_live(path))
    else:
        notes.append("The run did not end by itself: there is no summary, only telemetry.")
    made: Json = {}
    for name in MANIFESTS:
        if name in names:
            found = read_json(path / name)
            foreign.check(found, model.Manifest, str(path / name))
            made = {**found, **made}
    config = path / "config.yaml"
    text = foreign.read_bytes(config, foreign.YAML_BYTES_MAX) if config.name in names else b""
    manifest = foreign.check(made, model.Manifest, str(path))
    empty = run_summary.RunSummary()
    summary = run_summary.read(data, str(path / SUMMARIES[0])) if data else empty
    return Run(path, summary, data, manifest, text.decode(errors="replace"), notes)
