# SPDX-License-Identifier: BSD-3-Clause
"""Files of others, changed at random: each command ends well, or in one sentence and no traceback.

    .venv/bin/python tests/tools/cli/test_malformed.py --kind summary --count 10000 --seed 1

tries more of them than the gate does, whose seed is that of the commit.
"""

import argparse
import contextlib
import gzip
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import sys
import tempfile
import traceback
import warnings
from copy import deepcopy
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import weir
import yaml
from msgspec import inspect
from weir.analysis import folder, imported, listing, many, model, qlog
from weir.base.errors import guarded
from weir.cli import figures, results
from weir.report import data, page
from weir.trace import formats

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/tools" / name) for name in ("", "export", "trace")]
from seed import commit_seed  # noqa: E402

CORPUS = ROOT / "tests/corpus/1.0.0/run"
FILES = 30  # of each kind, for one command each
BOMB = gzip.compress(bytes(65 << 20), 1)
HANG_S = 60  # nothing here takes a second
MEMORY_BYTES_MAX = 500_000_000
VALUES = (
    None, True, -1, 0, 1, 1.5, 1e308, -1e308, 2**32, 2**63, 2**64, 10**400, "", "x", "1", "0x1",
    "1e400", "NaN", "\x1b]0;x\x07", "\ud7ff", "[b]", "10Mbit", "-1s", "y" * 5000, [], {}, [1], [[]],
    {"a": 1}, {"": {}}, [None], [{}], ["x"],
)  # fmt: skip
NUMBERS = (0, 1, 2, 7, 1000, 10**9, 10**18)
TEXTS = ("weir-sim", "weir-pcap", "weir-switch", "forward", "reverse", "udp", "copa", "x", "reno")


def instance(kind, rng):
    """A value of a type of msgspec's, as far as its description goes."""
    match kind:
        case inspect.UnionType():
            return instance(rng.choice(kind.types), rng)
        case inspect.StructType():
            named = {} if kind.tag is None else {kind.tag_field: kind.tag}
            chosen = [one for one in kind.fields if one.required or rng.random() < 0.5]
            return named | {one.encode_name: instance(one.type, rng) for one in chosen}
        case inspect.ListType():
            return [instance(kind.item_type, rng) for _ in range(rng.randrange(3))]
        case inspect.TupleType():
            return [instance(one, rng) for one in kind.item_types]
        case inspect.DictType():
            return {rng.choice(TEXTS): instance(kind.value_type, rng) for _ in range(2)}
        case inspect.IntType() if kind.ge == kind.le:
            return kind.ge
        case inspect.IntType():
            return rng.choice([one for one in NUMBERS if kind.le is None or one <= kind.le])
        case inspect.FloatType():
            return rng.random() if kind.le is not None else rng.choice(NUMBERS) * rng.random()
        case inspect.BoolType():
            return rng.random() < 0.5
        case inspect.NoneType():
            return None
        case _:
            return rng.choice(TEXTS)


def places(value, found=None):
    """Each container within a value, with each of its keys."""
    found = [] if found is None else found
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            found.append((value, key))
            places(value[key], found)
    return found


def changed(value, rng):
    """The same with a few values replaced, left out, or put elsewhere."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        known = places(value)
        if not known:
            return deepcopy(rng.choice(VALUES))
        into, key = rng.choice(known)
        match rng.randrange(8):
            case 0:
                del into[key]
            case 1:
                other, name = rng.choice(known)
                into[key] = deepcopy(other[name])
            case 2 if isinstance(into, list):
                into += [deepcopy(into[key]) for _ in range(rng.choice((1, 5)))]
            case 2:
                into[rng.choice(TEXTS)] = into.pop(key)
            case 3 if isinstance(into[key], int | float) and -1e300 < into[key] < 1e300:
                into[key] *= rng.choice((-1, 1e3, 1e9, 1e-9, 0.5))
            case _:
                into[key] = deepcopy(rng.choice(VALUES))
    return value


def damaged(text, rng):
    """Bytes with some of them changed, left out, doubled or moved."""
    out = bytearray(text)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(out) + 1)
        some = slice(at, at + rng.choice((1, 1, 4, 40)))
        match rng.randrange(6):
            case 0:
                del out[some]
            case 1:
                out[at:at] = out[some] * rng.choice((1, 50))
            case 2:
                out[some] = rng.randbytes(1)
            case 3:
                del out[at:]
            case 4:
                number = rng.choice((b"-1", b"1e400", b"nan", b"inf", b"1e308", b"9" * 30, b"0"))
                out = bytearray(re.sub(rb"\d+", number, out, count=rng.choice((1, 3))))
            case _:
                out[at:at] = rng.choice(
                    (b"\0", b"\xff", b"\n", b",", b"[" * 500, b"#", b" ", b"\r")
                )
    return bytes(out)


def of_json(value, rng):
    """A file of JSON that is another than this value."""
    text = json.dumps(changed(value, rng), indent=rng.choice((None, 1))).encode()
    return damaged(text, rng) if rng.random() < 0.2 else text


def a_summary(run, rng):
    file = "summary.json"
    value = json.loads((CORPUS / file).read_text())
    if rng.random() < 0.8:
        value = instance(inspect.type_info(model.AnySummary), rng)
    if value["kind"] in ("switch", "sender"):  # what is read of a live run
        file = f"summary-{value['kind']}.json"
    (run / file).write_bytes(of_json(value, rng))


def a_manifest(run, rng):
    (run / "manifest.json").write_bytes(
        of_json(json.loads((CORPUS / "manifest.json").read_text()), rng)
    )


def labels_of(run, rng):
    (run / "labels.json").write_bytes(of_json({"tags": ["a", "keep"], "note": "a note"}, rng))


def a_config(run, rng):
    text = (CORPUS / "config.yaml").read_bytes()
    kind = rng.randrange(10)
    if kind < 6:
        value = changed(yaml.load(text, yaml.CBaseLoader), rng)
        text = yaml.dump(value, allow_unicode=True).encode()
    elif kind < 9:
        text = damaged(text, rng)
    else:
        names = "abcdefghijklmnopqrstuvwxyz"[: rng.choice((3, 26))]
        laughs = [f"x{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in pairwise(names)]
        text = "\n".join(["x: &a {link: 1}", *laughs, f"flows: *{names[-1]}"]).encode()
    (run / "config.yaml").write_bytes(text)


def a_ring(run, rng):
    path = run / f"{rng.choice(folder.RUN[:8])}.ring"
    page = bytearray((CORPUS / path.name).read_bytes())
    match rng.randrange(4):
        case 0:  # the header, or all of it
            whole = damaged(bytes(page[:600]), rng) + bytes(page[600:])
            page = bytearray(whole if rng.random() < 0.5 else damaged(bytes(page), rng))
        case 1:  # the counters of an epoch, and what is fixed
            for _ in range(3):
                at = rng.choice((12, 14, 16, 24, 32, 40, 104, 108, 112, *range(128, 400, 8)))
                struct.pack_into("<Q", page, at, rng.choice((0, 1, 2**31, 2**63, 2**64 - 1)))
        case 2:  # its schema
            at, size = struct.unpack_from("<II", page, 108)
            text = of_json(json.loads(page[at : at + size]), rng)[: 4096 - at]
            page[at : at + len(text)] = text
            struct.pack_into("<I", page, 112, len(text))
        case _:  # its records
            for _ in range(rng.choice((1, 20))):
                at = rng.randrange(4096, len(page) - 8) // 4 * 4
                struct.pack_into("<Q", page, at, rng.choice((0, 1, 2**31, 2**62, 2**64 - 1)))
    path.write_bytes(page)


def draw_all(run):
    page.write(folder.load(run), run / "report.html")


def show(run):
    results.summary_(run, False)


def compare(run):
    figures.compare_([run, CORPUS], None, True)


def table(run):
    weir.table([run, CORPUS])


def draw_data(run):
    data.read(folder.load(run))


def open_run(run):
    found = weir.open(run)
    for name in found.streams:
        found.stream(name).to_polars()
    many.open_many(run)
    repr(found), found._repr_html_()


def list_it(run):
    listing.age_s(listing.read(run))


RUN = (show, compare, table, draw_data, open_run, list_it)


def in_flent(place, rng):
    from test_flent import RRUL

    names = [
        f"TCP {way} {mark}::{n}" for way in ("upload", "download") for mark in RRUL for n in (1, 2)
    ]
    series = {name: [1.5, None, 3.0] for name in (*names, "Ping (ms) ICMP", "TCP upload sum")}
    samples = {name: [{"t": 1.0, "val": 2.0, "tcp_rtt": 20.0}] for name in series}
    meta = {"SERIES_META": {name: {"UNITS": "Mbits/s"} for name in names}}
    value = {"version": 4, "metadata": meta, "x_values": [0.0, 0.2, 0.4], "results": series,
             "raw_values": samples}  # fmt: skip
    (place / "file").write_bytes(of_json(value, rng))


def in_iperf3(place, rng):
    from test_flent import IPERF3, udp

    value = json.loads(json.dumps(IPERF3))
    if rng.random() < 0.5:
        start = {"test_start": {"protocol": "UDP", "duration": 1}}
        streams = [udp(True, 100), udp(False, 2)]
        value = {"start": start, "end": {"streams": streams, "sum_received": {"bytes": 1}}}
    (place / "file").write_bytes(of_json(value, rng))


def in_qlog(place, rng):
    from test_qlog import CLIENT, EVENTS, HEADS

    records = [rng.choice(list(HEADS.values())) | CLIENT]
    records += [{"time": n, "name": name, "data": said} for n, (name, said) in enumerate(EVENTS)]
    records = changed(json.loads(json.dumps(records)), rng)
    lines = records if isinstance(records, list) else [records]
    text = "".join(f"\x1e{json.dumps(one)}\n" for one in lines).encode()
    (place / "file").write_bytes(damaged(text, rng) if rng.random() < 0.3 else text)


def in_a_trace(place, rng):
    import test_trace

    name = rng.choice([name for name in test_trace.MAKERS if name != "pcap"])
    for file, text in trace_files(name).items():
        (place / file).write_bytes(damaged(text, rng))
    (place / "format").write_text(name)


@cache
def trace_files(name):
    import test_trace

    with tempfile.TemporaryDirectory() as made:
        test_trace.MAKERS[name](Path(made) / "file")
        return {one.name: one.read_bytes()[:3000] for one in Path(made).iterdir()}


def import_it(place):
    imported.summary(place / "file")


def read_qlog(place):
    qlog.read(place / "file")


def read_trace(place):
    delays = place / "file.delay"
    reading = formats.Reading(delays=delays if delays.exists() else None)
    formats.read(place / "file", (place / "format").read_text(), reading)


KINDS = {
    "summary": (a_summary, RUN),
    "manifest": (a_manifest, RUN),
    "labels": (labels_of, RUN),
    "config": (a_config, RUN),
    "ring": (a_ring, RUN),
    "flent": (in_flent, (import_it,)),
    "iperf3": (in_iperf3, (import_it,)),
    "qlog": (in_qlog, (read_qlog,)),
    "trace": (in_a_trace, (read_trace,)),
}


def call(command, place):
    """What a command says on standard error, its status and, if it ends in one, the traceback."""
    out, err, status, failed = io.StringIO(), io.StringIO(), None, ""
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = guarded(lambda: command(place) or 0)
        except Exception:
            failed = traceback.format_exc()
    return status, out.getvalue() + err.getvalue(), failed


def attempt(kind, seed, number, place, command=None):
    """What is wrong with the end of a command [one of its kind's] on one changed file."""
    change, known = KINDS[kind]
    rng = random.Random(f"{seed} {kind} {number}")
    if place.exists():
        shutil.rmtree(place)
    shutil.copytree(CORPUS, place) if known is RUN else place.mkdir()
    if kind == "summary":
        (place / "summary.json").unlink()
    change(place, rng)
    status, said, failed = call(command or known[number % len(known)], place)
    last = said.splitlines()[-1:]
    if failed:
        return failed
    if status != 0 and not (status in (1, 2) and last and str(place) in last[0]):
        return f"status {status}, and it says {said[-500:]!r}"
    if status != 0 and sum(line.startswith("weir: ") for line in said.splitlines()) != 1:
        return f"more than one sentence: {said[-500:]!r}"
    return ""


@pytest.fixture
def little_memory():
    """What is allocated here is bounded: as much as there is now, and MEMORY_BYTES_MAX."""
    known = Path("/proc/self/status").read_text()
    now = 1024 * int(re.search(r"VmData:\s+(\d+)", known)[1])
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (now + MEMORY_BYTES_MAX, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_DATA, before)


@pytest.mark.slow
@pytest.mark.timeout(HANG_S)
@pytest.mark.parametrize("kind", KINDS)
def test_changed_files_end_in_one_sentence(kind, little_memory):
    seed = commit_seed()
    with tempfile.TemporaryDirectory() as made:
        for number in range(FILES):
            repeat = f"test_malformed.py --kind {kind} --seed {seed} --first {number} --count 1"
            assert attempt(kind, seed, number, Path(made) / "run") == "", repeat


@pytest.fixture
def old_run(tmp_path_factory):
    """A run of a release; its summary lacks what later ones have."""
    return shutil.copytree(CORPUS, tmp_path_factory.mktemp("old") / "run")


@pytest.mark.timeout(HANG_S)
@pytest.mark.parametrize("name", ["summary.json", "manifest.json", "config.yaml", "labels.json"])
def test_a_run_folder_holds_regular_files_within_bounds(name, old_run, little_memory):
    """A FIFO was waited for, and /dev/zero read for ever."""
    file = old_run / name
    places = {"fifo": os.mkfifo, "zero": lambda path: path.symlink_to("/dev/zero")}
    places["bomb"] = lambda path: path.write_bytes(BOMB)
    for make in places.values():
        file.unlink(missing_ok=True)
        make(file)
        said = listing.read(old_run).verdict
        assert said.startswith(f"unreadable: {file}: ")
        assert said.endswith(("not a regular file", "the most that is read"))


def test_a_ring_is_a_regular_file(old_run):
    (old_run / "flows.ring").unlink()
    os.mkfifo(old_run / "flows.ring")
    run = weir.open(old_run)
    assert "flows" not in run.streams
    assert run.notes == [f"{old_run}/flows.ring: cannot be read: not a regular file."]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=commit_seed())
    parser.add_argument("--report", action="store_true", help="also draw all figures of each run")
    asked = parser.parse_args()
    warnings.simplefilter("error")  # as pytest.ini has it
    command, bad = draw_all if asked.report else None, 0
    for kind in asked.kind or KINDS:
        seen = {}
        with tempfile.TemporaryDirectory() as made:
            for number in range(asked.first, asked.first + asked.count):
                signal.alarm(HANG_S)
                failed = attempt(kind, asked.seed, number, Path(made) / "run", command)
                if failed:
                    where = re.findall(r'File ".*?([\w]+/\w+\.py)", line (\d+)', failed)[-3:]
                    what = failed.splitlines()[-1][:160]
                    seen.setdefault((tuple(where), what[:40]), [0, number, what])[0] += 1
        signal.alarm(0)
        bad += len(seen)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        wrong = sum(count for count, *_ in seen.values())
        print(
            f"{kind}: {asked.count} of seed {asked.seed}, {wrong} bad ends, {peak} MB",
            flush=True,
        )
        for (where, _), (count, number, what) in seen.items():
            print(f"  {count} as {number}: {what}\n      {where}")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
