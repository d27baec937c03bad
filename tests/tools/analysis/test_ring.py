# SPDX-License-Identifier: BSD-3-Clause
"""The writer in C (tests/tools/ring_writer.c) against the reader in Python."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import wait_for
from weir.analysis import ring as ring_module
from weir.analysis.header import HEADER_SIZE
from weir.analysis.ring import GAP, Records, RingError, find_gaps, open_ring, tail
from weir.report import sections, theme

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("WEIR_BUILD", ROOT / "build"))
WRITER = BUILD / "tests/tools/ring_writer"
STREAMS = (
    "packets", "cc", "flows", "interval", "links", "events", "arrivals", "ip_flows",
    "captured", "losses", "delays", "segments", "transfers",
)  # fmt: skip
DEADLINE_S = 60.0

pytestmark = pytest.mark.skipif(not WRITER.exists(), reason=f"{WRITER} is not built")


def write(*options: object) -> dict[str, int]:
    """Runs ring_writer to its end: its totals."""
    argv = [str(WRITER), *(str(o) for o in options)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    totals: dict[str, int] = json.loads(done.stdout)
    return totals


def larger(path: Path, size: int) -> bool:
    return path.exists() and path.stat().st_size > size


def walk(slots: Records) -> int:
    """Checks that each record's number is the next one, gaps taken at their word; the next."""
    is_gap = slots["ts_ns"] == GAP
    step = np.ones(len(slots), np.uint64)
    gaps = find_gaps(slots)
    step[is_gap] = gaps["lost"]
    number = np.concatenate([[np.uint64(0)], np.cumsum(step)])
    assert (gaps["lost"] > 0).all()
    np.testing.assert_array_equal(slots["ts_ns"][~is_gap], number[:-1][~is_gap])
    return int(number[-1])


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts processes and sees to it that none stays."""
    started: list[subprocess.Popen[str]] = []

    def start(*argv: object) -> subprocess.Popen[str]:
        env = {**os.environ, "PYTHONPATH": str(Path(ring_module.__file__).parents[1])}
        started.append(
            subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE, text=True, env=env)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_layout_is_the_compilers(tmp_path: Path) -> None:
    lines = subprocess.run([WRITER, "--layout"], capture_output=True, text=True, check=True)
    seen = set()
    end = 0
    for line in lines.stdout.splitlines():
        stream, name, offset, size = line.split()
        if stream not in seen:
            write("--stream", stream, "--records", 1, "--dir", tmp_path, "--virtual")
            dtype = open_ring(tmp_path / f"{stream}.ring").dtype
            seen.add(stream)
            names = list(dtype.names or ())
        if name == "-":
            assert dtype.itemsize == int(offset)
            assert dtype.itemsize == -(-end // 8) * 8, "no larger than its fields"
            assert names == []
            continue
        assert names.pop(0) == name
        assert dtype.fields is not None
        assert dtype.fields[name][1] == int(offset)
        assert dtype.fields[name][0].itemsize == int(size)
        end = int(offset) + int(size)
    assert seen == set(STREAMS)


@pytest.mark.parametrize("stream", STREAMS)
def test_every_field_reads_as_it_was_written(tmp_path: Path, stream: str) -> None:
    write("--stream", stream, "--records", 1000, "--dir", tmp_path, "--virtual")
    r = open_ring(tmp_path / f"{stream}.ring")
    r.check()
    assert (r.schema.stream, r.produced, r.lost, len(r)) == (stream, 1000, 0, 1000)
    i = np.arange(1000, dtype=np.uint64)
    for k, field in enumerate(r.schema.fields):
        expected = i if k == 0 else i * np.uint64(31) + np.uint64(k)
        column = r.column(field.name)
        assert column.base is not None, "a view, not a copy"
        np.testing.assert_array_equal(column, expected.astype(column.dtype))


def test_numpy_opens_it_with_the_schema_in_its_header_and_nothing_else(tmp_path: Path) -> None:
    write("--records", 500, "--dir", tmp_path, "--virtual")
    path = tmp_path / "packets.ring"
    page = path.read_bytes()[:4096]
    offset, size = struct.unpack_from("<II", page, 108)
    schema = json.loads(page[offset : offset + size])
    dtype = np.dtype([(f["name"], f["dtype"]) for f in schema["fields"]])
    records = np.memmap(path, dtype=dtype, offset=4096)
    assert len(records) == 500
    np.testing.assert_array_equal(records["ts_ns"], np.arange(500))
    keys = {"name", "dtype", "offset", "unit", "meaning"}
    assert all(set(f) - {"values"} == keys for f in schema["fields"])


def test_numbers_have_their_names_in_the_file(tmp_path: Path) -> None:
    named = {}
    for stream in STREAMS:
        write("--stream", stream, "--records", 1, "--dir", tmp_path, "--virtual")
        ring = open_ring(tmp_path / f"{stream}.ring")
        for field in ring.schema.fields:
            assert ring.values(field.name) == field.values
            enumerated = field.unit in ("ecn", "drop_reason") or field.unit.startswith("tel_")
            assert bool(field.values) == enumerated
            named[stream, field.name] = field.values
        assert ring.values("no_such_field") == {}
    assert named["packets", "event"]["depart"] == 5
    assert named["packets", "reason"]["malformed"] == 8
    assert named["packets", "ecn"] == {"not_ect": 0, "ect1": 1, "ect0": 2, "ce": 3}
    assert named["interval", "state"] == {"open": 0, "recovery": 1, "loss": 2}
    for name in sections.EVENTS_SHOWN:
        assert name in named["events", "event"]
        assert name in theme.STYLES


def test_header_says_what_the_run_was(tmp_path: Path) -> None:
    write("--records", 10, "--dir", tmp_path)
    header = open_ring(tmp_path / "packets.ring").header
    assert header.seed == 7
    assert header.config_hash == 0x123456789ABCDEF0
    assert header.run_id == "ring_writer"
    assert header.utc_start_ns == 1_700_000_000_000_000_000
    assert header.writer_pid > 0
    assert header.closed
    assert not header.virtual_time


def test_virtual_time_repeats_its_bytes(tmp_path: Path) -> None:
    files, digests = [], []
    for name, options in (("a", ("--capacity", 64)), ("b", ("--capacity", 4096, "--burst", 7))):
        (tmp_path / name).mkdir()
        totals = write("--records", 20000, "--virtual", "--dir", tmp_path / name, *options)
        files.append((tmp_path / name / "packets.ring").read_bytes())
        digests.append(totals["digest"])
    assert files[0] == files[1]
    assert digests[0] == digests[1]
    header = open_ring(tmp_path / "a/packets.ring").header
    assert (header.tsc_hz, header.utc_start_ns, header.writer_pid, header.run_id) == (0, 0, 0, "")


def test_live_losses_are_counted(tmp_path: Path) -> None:
    totals = write("--records", 2_000_000, "--capacity", 256, "--dir", tmp_path)
    r = open_ring(tmp_path / "packets.ring")
    r.check()
    assert r.lost == totals["lost"] > 0
    assert r.produced == 2_000_000
    assert len(r.gaps) == totals["gaps"]
    walk(r.records)
    assert len(r.column("ts_ns")) == r.produced - r.lost
    assert (r.column("ts_ns") != GAP).all()
    assert (np.diff(r.column("ts_ns")) >= 0).all()


def test_kill_9_the_writer_and_the_file_reads(
    tmp_path: Path, spawn: Callable[..., subprocess.Popen[str]]
) -> None:
    path = tmp_path / "packets.ring"
    for round_ in range(8):
        path.unlink(missing_ok=True)
        writer = spawn(WRITER, "--dir", tmp_path, "--records", 10**9, "--capacity", 1024)
        size = HEADER_SIZE + 100_000 * (round_ + 1)
        wait_for(partial(larger, path, size), "what is written")
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait(DEADLINE_S)
        r = open_ring(path)
        r.check()
        assert not r.header.closed
        assert len(r) > 0
        assert walk(r.records) <= r.produced


def test_tail_follows_a_growing_file(
    tmp_path: Path, spawn: Callable[..., subprocess.Popen[str]]
) -> None:
    path = tmp_path / "packets.ring"
    follower = tail(path, 0.005)
    assert len(next(follower)) == 0, "nothing there yet"
    writer = spawn(WRITER, "--dir", tmp_path, "--records", 10**9, "--rate", 100_000)
    pieces = []
    for piece in filter(len, follower):
        pieces.append(piece)
        if len(pieces) == 2:
            writer.terminate()  # it ends in good order
    totals = json.loads(writer.communicate(timeout=DEADLINE_S)[0])
    assert len(pieces) > 1
    assert writer.returncode == 0
    slots = np.concatenate(pieces)
    assert len(slots) == totals["written"]
    np.testing.assert_array_equal(slots, open_ring(path).records)


def unshare_mount(script: str) -> subprocess.CompletedProcess[str]:
    argv = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["-r"]), "sh", "-c", script]
    return subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_S)


# Live, the ring holds all records: what is lost was lost to the disk, not to a slow drain.
@pytest.mark.parametrize("mode", ["--virtual --capacity=1024", "--burst=16 --capacity=1048576"])
def test_full_disk_keeps_what_fits_and_says_so(tmp_path: Path, mode: str) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = f"mount -t tmpfs -o size=256k none {small}"
    if shutil.which("unshare") is None or unshare_mount(mount).returncode != 0:
        pytest.skip("no private mount namespaces here")
    writer = f"{WRITER} --records 500000 {mode} --dir {small}"
    done = unshare_mount(f"{mount} && {writer}; echo $?; cp {small}/packets.ring {tmp_path}")
    totals, status = done.stdout.splitlines()
    produced, lost = json.loads(totals)["produced"], json.loads(totals)["lost"]
    assert (status, produced) == ("1", 500_000)
    r = open_ring(tmp_path / "packets.ring")
    r.check()
    assert len(r) == (256 * 1024 - HEADER_SIZE) // r.schema.record_size
    assert r.header.closed
    walk(r.records)
    missing = r.lost - lost
    assert done.stderr == (
        f"ring_writer: {small}/packets.ring: No space left on device;"
        f" {missing} records were not written\n"
    )


def patched(source: Path, target: Path, *changes: tuple[int, bytes]) -> Path:
    data = bytearray(source.read_bytes())
    for offset, new in changes:
        data[offset : offset + len(new)] = new
    target.write_bytes(data)
    return target


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    write("--records", 300, "--virtual", "--dir", folder)
    return folder / "packets.ring"


@pytest.mark.parametrize(
    ("offset", "new", "message"),
    [
        (0, b"PCAP", "not a ring"),
        (8, b"\1\2\3\4", "the other byte order"),
        (12, b"\2\0", "of format version 2; this reader wants 3"),
        (12, b"\4\0", "of format version 4; this reader wants 3"),
        (16, b"\x40\0\0\0", "64 bytes per record, its schema 40"),
        (24, b"\x40\0", "a ring in shared memory, not a file"),
        (108, b"\0\x20\0\0", "does not fit its header page"),
        (512, b"no", "its schema cannot be read"),
    ],
)
def test_open_says_in_one_sentence(
    good: Path, tmp_path: Path, offset: int, new: bytes, message: str
) -> None:
    bad = patched(good, tmp_path / "bad.ring", (offset, new))
    with pytest.raises(RingError, match=message) as e:
        open_ring(bad)
    assert str(e.value).startswith(f"{bad}: ")
    assert "\n" not in str(e.value)


def test_missing_or_short_files(good: Path, tmp_path: Path) -> None:
    with pytest.raises(RingError, match="No such file"):
        open_ring(tmp_path / "none.ring")
    (tmp_path / "empty.ring").touch()
    with pytest.raises(RingError, match="its 0 bytes are less than a header page"):
        open_ring(tmp_path / "empty.ring")
    with pytest.raises(RingError, match=r"has no field 'rtt', only ts_ns, sojourn_ns"):
        open_ring(good).column("rtt")


@pytest.mark.parametrize("cut", [1, 39, 40, 41, 300 * 40])
def test_truncated_file_reads_and_is_told(good: Path, tmp_path: Path, cut: int) -> None:
    short = tmp_path / "short.ring"
    short.write_bytes(good.read_bytes()[:-cut])
    r = open_ring(short)
    left = 300 - (cut + 39) // 40
    np.testing.assert_array_equal(r.records["ts_ns"], np.arange(left))
    with pytest.raises(RingError, match=f"truncated: {left} of 300 records are there"):
        r.check()


def test_bytes_beyond_the_count_do_not_count(good: Path, tmp_path: Path) -> None:
    longer = tmp_path / "long.ring"
    longer.write_bytes(good.read_bytes() + b"x" * 333)
    r = open_ring(longer)
    r.check()
    assert len(r) == 300


def counters(head: int, written: int, gaps: int, lost: int) -> tuple[int, bytes]:
    return 128, struct.pack("<4Q", head, written, gaps, lost)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 2**40)), max_size=20),
    pending=st.integers(0, 1000),
    off=st.tuples(*[st.integers(-2, 2)] * 4),
)
def test_check_accepts_exactly_what_adds_up(
    good: Path,
    tmp_path: Path,
    steps: list[tuple[int, int]],
    pending: int,
    off: tuple[int, int, int, int],
) -> None:
    """A file made here: runs of records, each ended by a gap; then counters that are off."""
    dtype = open_ring(good).dtype
    slots: list[tuple[int, int]] = []
    number = 0
    for run, lost in steps:
        slots += [(number + i, 0) for i in range(run)]
        slots.append((GAP, lost))
        number += run + lost
    data = np.zeros(len(slots), dtype)
    words = data.view("<u8").reshape(len(slots), dtype.itemsize // 8)
    for row, slot in enumerate(slots):
        words[row, :2] = slot
    lost = sum(n for _, n in steps) + pending
    true = (number + pending, len(slots), len(steps), lost)
    said = tuple(max(0, t + o) for t, o in zip(true, off, strict=True))
    path = patched(good, tmp_path / "made.ring", counters(*said))
    path.write_bytes(path.read_bytes()[:HEADER_SIZE] + data.tobytes())
    r = open_ring(path)
    reported = lost - pending
    fits = (
        said[1] == len(slots)
        and said[2] == len(steps)
        and len(slots) - len(steps) + said[3] == said[0]
        and reported <= said[3]
    )
    if fits:
        r.check()
        np.testing.assert_array_equal(r.gaps["lost"], [n for _, n in steps])
        assert walk(r.records) == number
        assert len(r.column("ts_ns")) == len(slots) - len(steps)
    elif said[1] < len(slots):  # as a killed writer leaves it: the rest does not count
        assert len(r) == said[1]
    else:
        with pytest.raises(RingError):
            r.check()


NUMBERS = st.sampled_from([0, 1, 2, 31, 32, 33, 512, 4096, 2**32 - 1, 2**63, 2**64 - 1])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
DTYPES = st.sampled_from(
    ["<u8", "|u1", "|O", "<f4", "(3,)<u2", "2<u4", "|S4", "|V0", "<M8[s]", "\n"]
)
FIELD = st.tuples(
    st.integers(0, 11),
    st.sampled_from(["name", "dtype", "offset", "unit", "values"]),
    JSON | DTYPES | NUMBERS,
)


def with_schema(
    page: bytes, fields: list[tuple[int, str, object]], top: dict[str, object]
) -> bytes:
    """A header page whose schema has other values; as much of it as the page holds."""
    offset, size = struct.unpack_from("<II", page, 108)
    schema = json.loads(page[offset : offset + size])
    for index, key, value in fields:
        schema["fields"][index][key] = value
    text = json.dumps({**schema, **top}).encode()[: HEADER_SIZE - offset]
    out = bytearray(page)
    out[offset : offset + len(text)] = text
    struct.pack_into("<I", out, 112, len(text))
    return bytes(out)


def read_file(path: Path) -> None:
    r = open_ring(path)
    assert len(r.records) <= 300 * 40 // 16
    for name in r.dtype.names or ():
        r.column(name)
    next(tail(path), None)
    r.check()


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    changes=st.lists(
        st.tuples(
            st.sampled_from([0, 8, 12, 14, 16, 20, 24, 32, 56, 64, 104, 108, 112, 128, 136, 144])
            | st.sampled_from([152, 384, 392, 448, 512])
            | st.integers(0, HEADER_SIZE - 8),
            NUMBERS.map(lambda n: struct.pack("<Q", n)) | st.binary(min_size=1, max_size=8),
        ),
        max_size=4,
    ),
    fields=st.lists(FIELD, max_size=2),
    top=st.dictionaries(st.sampled_from(["stream", "record_size", "fields"]), JSON | NUMBERS),
)
def test_damaged_headers_are_refused_in_one_sentence(
    good: Path,
    tmp_path: Path,
    changes: list[tuple[int, bytes]],
    fields: list[tuple[int, str, object]],
    top: dict[str, object],
) -> None:
    page = with_schema(good.read_bytes()[:HEADER_SIZE], fields, top)
    path = tmp_path / "damaged.ring"
    patched(good, path, (0, page), *changes)
    said = f"{path}: read"
    try:
        read_file(path)
    except RingError as error:
        said = str(error)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
