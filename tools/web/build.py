# SPDX-License-Identifier: BSD-3-Clause
"""Builds weir-sim as WebAssembly into build-web, by emscripten and ninja.

Its sources are those of the native build, which has to be there. Left out are guests, plug-ins,
threads and compressed captures, which absent.c refuses.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NATIVE = Path(os.environ.get("WEIR_BUILD", ROOT / "build"))
OUT = ROOT / "build-web"
ACORN = "/usr/share/nodejs"  # where Debian has acorn, for a node that is not Debian's
LIBRARIES = ("common/libcommon.a", "switch/libswitch.a", "sender/libsender.a", "tools/sim/libsim.a")
OUTPUTS = tuple(f"{name}.p/" for name in (*LIBRARIES, "tools/sim/weir-sim"))
LEFT_OUT = ("tools/sim/guest/", "common/live/", "common/base/mem.c", "common/pcap/codec.c",
            "sender/cc/plugin.c", "sender/cc/python.c", "tools/sim/run/cpu_clock.c")  # fmt: skip
# Of the source distributions in requirements.txt.
PACKAGES = {
    "ruamel.yaml.clib-0.2.12": ("api", "parser", "reader", "scanner"),
    "xxhash-3.5.0/deps/xxhash": ("xxhash",),
}
# No fused multiply-add, as natively; warnings are those of the native build, which are errors.
FLAGS = "-O3 -std=gnu17 -ffp-contract=off -fms-extensions -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -w"
# The functions from main down to the loop over the steps of a run, where the worker has its turn:
# only these can be left and entered again. Most of them are parts of main.
PAUSED = "main __main_argc_argv __original_main configured experiment run_through sched_yield"
LINK = (
    "-O3 -sMODULARIZE=1 -sEXPORT_ES6=1 -sEXPORT_NAME=weirSim -sENVIRONMENT=worker"
    " -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=2GB -sTOTAL_STACK=1MB"
    " -sINVOKE_RUN=0 -sEXIT_RUNTIME=1 -sFORCE_FILESYSTEM=1"
    f" -sASYNCIFY=1 -sASYNCIFY_ONLY={PAUSED.replace(' ', ',')}"
    " -sEXPORTED_FUNCTIONS=_main,_run_stop -sEXPORTED_RUNTIME_METHODS=FS,callMain,Asyncify"
)


def fetch() -> Path:
    """Downloads the packages, whose hashes are in requirements.txt, and returns their folder."""
    place = OUT / "packages"
    if not all((place / name).is_dir() for name in PACKAGES):
        words = "download --quiet --no-deps --no-binary ruamel.yaml.clib,xxhash --require-hashes"
        pip = [sys.executable, "-m", "pip", *words.split(), "-d", place]
        subprocess.run([*pip, "-r", HERE / "requirements.txt"], check=True)
        for archive in place.glob("*.tar.gz"):
            with tarfile.open(archive) as packed:
                packed.extractall(place, filter="data")
    return place


def sources() -> Iterator[Path]:
    """Yields the C files of the native weir-sim, without those that are left out."""
    for entry in json.loads((NATIVE / "compile_commands.json").read_text(encoding="utf-8")):
        file = Path(os.path.normpath(Path(entry["directory"]) / entry["file"]))
        own = entry["output"].startswith(OUTPUTS)
        if own and not str(file.relative_to(ROOT)).startswith(LEFT_OUT):
            yield file
    yield HERE / "absent.c"


def rules(packages: Path) -> str:
    """Returns the build as ninja reads it."""
    version = json.loads((NATIVE / "meson-info/intro-projectinfo.json").read_text())["version"]
    folders = [HERE / "absent", ROOT, NATIVE, *(packages / name for name in PACKAGES)]
    include = " ".join(f"-I{folder}" for folder in folders)
    lines = [
        f"define = -DWEIR_VERSION='\"{version}\"'",
        "rule cc",
        f" command = emcc {FLAGS} $define {include} -MD -MF $out.d -c $in -o $out",
        " depfile = $out.d",
        "rule link",
        f" command = emcc {LINK} $in -o $out",
    ]
    theirs = [packages / at / f"{name}.c" for at, names in PACKAGES.items() for name in names]
    objects = []
    for file in [*sources(), *theirs]:
        objects.append(f"objects/{file.relative_to(ROOT).as_posix().replace('/', '_')}.o")
        lines.append(f"build {objects[-1]}: cc {file}")
    lines.append(f"build weir-sim.js | weir-sim.wasm: link {' '.join(objects)}\n")
    return "\n".join(lines)


def main() -> None:
    """Builds weir-sim.js and weir-sim.wasm; arguments are ninja's."""
    OUT.mkdir(exist_ok=True)
    (OUT / "package.json").write_text('{"type": "module"}\n', encoding="utf-8")  # for node
    (OUT / "build.ninja").write_text(rules(fetch()), encoding="utf-8")
    environment = {**os.environ, "NODE_PATH": ACORN}
    command = ["ninja", "-C", OUT, *sys.argv[1:]]
    sys.exit(subprocess.run(command, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
