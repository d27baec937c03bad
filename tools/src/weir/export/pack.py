# SPDX-License-Identifier: BSD-3-Clause
"""weir pack: runs and all that is needed to run them again, in one archive.

A run folder has copies of the files that its config names. The archive adds their SHA-256 digests,
a README and repeat.py, which runs everything again. The same runs make the same bytes: names are in
order, and no time, user or permission of a file gets in.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path

from weir.analysis import folder, listing, many
from weir.analysis.folder import Run
from weir.base import units
from weir.base.errors import UserError

TIME = 315532800  # 1980, of every file: tar warns of older ones
SCRIPT = Path(__file__).with_name("repeat.py")
LARGE = re.compile(r"^ *(?:- )?pcap: (.*/.*)$", re.MULTILINE)  # a file too large for a run folder
GUEST = re.compile(r"^ *(?:- )?linux:", re.MULTILINE)


def write(given: Sequence[Path], out: Path, rings: bool, force: bool) -> None:
    """Packs runs and folders with runs, with telemetry if `rings`. UserError: it cannot."""
    if out.exists() and not force:
        raise UserError(f"{out} is there: choose another --out or --force")
    for top in given:
        folder.check(top)
    tops = {top.resolve().name: top.resolve() for top in given}
    if len(tops) < len(given):
        raise UserError("two of the folders have the same name: pack the folder that has both")
    runs: dict[str, Run] = {}
    files: dict[str, Path] = {}
    for name, top in tops.items():
        for place in many.paths(top):
            inside = f"runs/{name}/{place.relative_to(top)}".removesuffix("/.")
            runs[inside] = ended(place)
            for branch in listing.branches(place):
                ended(branch)
            files |= {f"{inside}/{p.relative_to(place)}": p for p in place.rglob("*")}
        if any(top.glob("*.parquet")):  # of a sweep or a study: its table and page, too
            files |= {f"runs/{name}/{p.name}": p for p in top.iterdir()}
    kept = {name: path for name, path in files.items() if wanted(name, path, rings)}
    made = {"README.md": readme(out.name, runs, rings), "runs.json": listed(runs)}
    made["repeat.py"] = SCRIPT.read_bytes()
    sums = {name: sha256(path) for name, path in kept.items()}
    sums |= {name: hashlib.sha256(text).hexdigest() for name, text in made.items()}
    made["SHA256SUMS"] = "".join(f"{sums[n]}  {n}\n" for n in sorted(sums)).encode()
    try:
        with folder.whole(out) as beside, beside.open("xb") as file:
            archive(file, out.name.partition(".tar")[0], kept, made)
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}", 1) from None


def wanted(name: str, path: Path, rings: bool) -> bool:
    """Returns whether a file goes into the archive: links lead anywhere, hidden files are locks."""
    hidden = any(part.startswith(".") for part in name.split("/"))
    regular = path.is_file() and not path.is_symlink()
    return regular and not hidden and (rings or path.suffix != ".ring")


def ended(place: Path) -> Run:
    """Returns a run that can be run again; UserError: it cannot."""
    run = folder.load(place)
    if not run.summary.ended:
        raise UserError(f"{place}: the run did not end by itself: run it again, or leave it out")
    if run.summary.program != "weir-sim" or not run.config_text:
        raise UserError(f"{place}: not a run in virtual time: only these give the same again")
    if run.manifest.exit != 0:
        raise UserError(f"{place}: the run failed: {run.manifest.verdict}")
    return run


def sha256(path: Path) -> str:
    """Returns the digest of a file, as sha256sum prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def archive(
    file: io.BufferedIOBase, top: str, kept: dict[str, Path], made: dict[str, bytes]
) -> None:
    """Writes the archive, in which everything is below `top`."""
    with (
        gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted([*kept, *made]):
            info = tarfile.TarInfo(f"{top}/{name}")
            info.mtime, info.mode = TIME, 0o755 if name == SCRIPT.name else 0o644
            if name in made:
                info.size = len(made[name])
                tar.addfile(info, io.BytesIO(made[name]))
            else:
                info.size = kept[name].stat().st_size
                with kept[name].open("rb") as content:
                    tar.addfile(info, content)


def listed(runs: dict[str, Run]) -> bytes:
    """Returns what repeat.py reads: the names of the runs, and which programs made them."""
    about = {
        "versions": sorted({run.manifest.made_by for run in runs.values()}),
        "runs": sorted(runs),
    }
    return (json.dumps(about, indent=1) + "\n").encode()


def readme(name: str, runs: dict[str, Run], rings: bool) -> bytes:
    """Returns what a reader of the archive needs to know."""
    of = {str(run.manifest.commit) for run in runs.values()}
    commits = sorted({commit.removesuffix("-dirty") for commit in of})
    notes = []
    if any(commit.endswith("-dirty") for commit in of):
        notes.append("The sources of Weir had changes, which are in no commit.")
    if any(GUEST.search(run.config_text) for run in runs.values()):
        notes.append("Linux guests need their kernels: `weir guests build`.")
    notes += sorted(
        {
            f"`{place}/{one.file}` is compiled from source under the license {one.license}."
            for place, run in runs.items()
            for one in run.manifest.licenses
        }
    )
    large = {path for run in runs.values() for path in LARGE.findall(run.config_text)}
    notes += [f"`{path}` is too large to be here; the config names it." for path in sorted(large)]
    if not rings:
        notes.append("The telemetry (`*.ring`) is not here; repeat.py records it again.")
    made = {f"{key} {value}" for run in runs.values() for key, value in versions(run).items()}
    machines = {str(run.manifest.host.get("cpu")) for run in runs.values()}
    wall_ns = sum(run.summary.wall_s or 0.0 for run in runs.values()) * 1e9
    rows = [
        f"| `{name}` | {run.manifest.title or ''} | {run.summary.seed} |"
        f" `{run.summary.digest if run.streams else units.NONE}` |"
        for name, run in sorted(runs.items())
    ]
    several = "s" * (len(runs) != 1)
    return f"""# {name.partition(".tar")[0]}

Experiments of Weir, a congestion-control testbed: {len(runs)} run{several} in virtual time, with
configs and the files that these name. The same program and config give the same results and the
same telemetry, byte for byte.

    python3 repeat.py path/to/weir

checks that the files are as they were packed, runs everything again, and compares results and
digests of the telemetry. It exits with 0 if all are equal. The runs took {units.time(wall_ns)} in
all. `path/to/weir` is `tools/weir` of a clone at commit {" or ".join(commits)}
(`git checkout`), which builds itself on first use.

{"".join(f"- {note}{chr(10)}" for note in notes)}
Made with {", ".join(sorted(made))}, on {", ".join(sorted(machines))}.

| run | title | seed | digest |
|---|---|---|---|
{chr(10).join(rows)}
""".encode()


def versions(run: Run) -> dict[str, str | int | None]:
    return {"Weir": run.manifest.version, **run.manifest.versions}
