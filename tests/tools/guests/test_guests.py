# SPDX-License-Identifier: BSD-3-Clause
"""weir guests: what is unpacked, what is asked of Kconfig, what a second call does, names."""

import contextlib
import dataclasses
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile

import pytest
from weir.base.errors import UserError
from weir.cli import app
from weir.guests import build, commands, kernels, recipe, stacks

KERNEL = kernels.Kernel("linux-source-6.12", "6.12.1-1", "6.12.1-weir", "00", "gcc 12", "cafe")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_GUESTS", str(tmp_path / "guests"))
    (tmp_path / "guests").mkdir()
    return tmp_path / "guests"


def built(folder, kernel=KERNEL):
    """A kernel as `build` leaves it."""
    place = folder / kernel.key
    place.mkdir()
    (place / "linux").write_text("#!/bin/sh\n")
    (place / "linux").chmod(0o755)
    (place / "guest.json").write_text(json.dumps(vars(kernel)))


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("Makefile", True),
        ("net/ipv4/tcp_bbr.c", True),
        ("arch/um/kernel/time.c", True),
        ("arch/x86/um/ptrace.c", True),
        ("drivers/net/virtio_net.c", True),
        ("drivers/virtio/virtio.c", True),
        ("drivers/gpu/drm/Kconfig", True),  # every Kconfig names others
        ("drivers/net/ethernet/intel/Makefile", True),
        ("drivers/gpu/drm/i915/i915_drv.c", False),
        ("drivers/net/ethernet/intel/e1000/e1000_main.c", False),
        ("arch/arm64/kernel/setup.c", False),
        ("arch/umbra/x.c", False),
        ("Documentation/index.rst", False),
    ],
)
def test_what_is_unpacked(path, kept):
    assert build.wanted(path) == kept


def test_candidate_versions():
    policy = "linux-source-6.12:\n  Installed: (none)\n  Candidate: 6.12.117-1~deb12u1\n"
    assert build.candidate(policy) == "6.12.117-1~deb12u1"
    assert build.candidate("x:\n  Installed: (none)\n  Candidate: (none)\n") is None
    assert build.candidate("") is None


def test_options_that_kconfig_dropped_are_named():
    """Of `# X is not set` and of an option marked optional nothing is said."""
    whole = build.plain_options()
    assert "optional" not in "".join(line for line in whole.splitlines() if line[:1] != "#")
    assert build.missing_options(whole) == []
    without = whole.replace("CONFIG_TCP_CONG_BBR=y\n", "# CONFIG_TCP_CONG_BBR is not set\n")
    without = without.replace("CONFIG_RANDOM_TRUST_BOOTLOADER=y\n", "")
    assert build.missing_options(without) == ["CONFIG_TCP_CONG_BBR=y"]


def test_every_linux_control_and_time_travel_are_asked_for():
    options = build.plain_options()
    controls = ("BBR", "CUBIC", "VEGAS", "DCTCP", "WESTWOOD", "HTCP", "ILLINOIS", "CDG", "NV")
    for name in (*(f"TCP_CONG_{control}" for control in controls), "UML_TIME_TRAVEL_SUPPORT"):
        assert f"CONFIG_{name}=y" in options.splitlines()


def test_guests_have_debians_ticks(tmp_path):
    """250 per second, as CONFIG_HZ of Debian's kernels; User Mode Linux fixes 100."""
    assert "CONFIG_HZ_250=y" in build.plain_options().splitlines()
    kconfig = tmp_path / build.TICKS_FILE
    kconfig.parent.mkdir(parents=True)
    kconfig.write_text(f"config A\n\tbool\n\n{build.TICKS_FIXED}\nconfig B\n\tbool\n")
    for _ in range(2):  # a source that has been changed is as well
        build.free_ticks(tmp_path)
        assert kconfig.read_text().split("\n\n")[1] == 'source "kernel/Kconfig.hz"'
    kconfig.write_text("config HZ\n\tint\n\tdefault 60\n")
    with pytest.raises(UserError, match="does not fix its ticks"):
        build.free_ticks(tmp_path)


def test_another_source_option_or_compiler_is_another_kernel(monkeypatch, tmp_path):
    monkeypatch.setattr(build, "compiler", lambda: "gcc 12")
    first = build.identify("linux-source-6.12", "6.12.1-1")
    assert build.identify("linux-source-6.12", "6.12.1-1") == first
    keys = {first.key, build.identify("linux-source-6.12", "6.12.2-1").key}
    monkeypatch.setattr(build, "compiler", lambda: "gcc 13")
    keys.add(build.identify("linux-source-6.12", "6.12.1-1").key)
    (tmp_path / "options").write_text(build.OPTIONS.read_text() + "CONFIG_TCP_MD5SIG=y\n")
    monkeypatch.setattr(build, "OPTIONS", tmp_path / "options")
    keys.add(build.identify("linux-source-6.12", "6.12.1-1").key)
    assert len(keys) == 4


def test_a_second_call_downloads_and_builds_nothing(cache, monkeypatch):
    built(cache)
    monkeypatch.setattr(build, "source", lambda *_: (KERNEL.package, KERNEL.version))
    monkeypatch.setattr(build, "identify", lambda *_: KERNEL)
    monkeypatch.setattr(build, "install_needs", lambda *_: None)
    monkeypatch.setattr(build, "download", lambda *_: pytest.fail("downloads"))
    assert build.build(lambda *_: None) == (KERNEL, False)
    assert kernels.current() == KERNEL
    assert (cache / "current").readlink().as_posix() == KERNEL.key


def test_no_kernel_or_half_of_one_is_none(cache):
    assert kernels.current() is None
    built(cache)
    kernels.choose(KERNEL.key)
    assert kernels.current() == KERNEL
    (cache / KERNEL.key / "linux").unlink()
    assert kernels.current() is None


BUILD = """
import subprocess
import sys
import time
from pathlib import Path
from weir.base.signals import end_in_order
from weir.guests.commands import make

class Late(subprocess.Popen):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        time.sleep(float(sys.argv[2]))

subprocess.Popen = Late
tree = Path(sys.argv[1])
end_in_order()
make(tree, tree, tree / "log", "all")
"""


@pytest.mark.parametrize("late_s", [0, 1])
def test_a_build_that_is_ended_leaves_no_make(late_s, tmp_path):
    """By SIGTERM, also while make starts: what it has started holds a pipe open."""
    os.mkfifo(tmp_path / "alive")
    (tmp_path / "Makefile").write_text("all:\n\texec sleep 600 > alive\n")
    with (
        subprocess.Popen([sys.executable, "-c", BUILD, tmp_path, str(late_s)]) as process,
        (tmp_path / "alive").open("rb") as alive,  # once it is opened for writing
    ):
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
        assert alive.read() == b""


SAID = "ERROR: no such version (from versions: 0.1, ...)\nERROR: No matching distribution\n  hint"


def test_a_build_that_fails_is_one_sentence_and_a_log(cache, tmp_path):
    """The last error, not the first or all; the log outlives the folder of the build."""
    (tmp_path / "new").mkdir()
    log = cache / "failed.log"
    with pytest.raises(UserError) as refused:
        stacks.command(tmp_path / "new", "/bin/sh", "-c", f"echo '{SAID}'; exit 1")
    assert str(refused.value) == f"guests: sh failed: ERROR: No matching distribution; see {log}"
    assert log.read_text() == f"{SAID}\n"


def test_what_was_begun_is_removed_when_it_fails(cache, monkeypatch):
    """The cache holds whole kernels only, whatever happens meanwhile."""

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "source", lambda *_: (KERNEL.package, KERNEL.version))
    monkeypatch.setattr(build, "identify", lambda *_: KERNEL)
    monkeypatch.setattr(build, "install_needs", lambda *_: None)
    monkeypatch.setattr(build, "download", lambda package, version, folder: folder / "x.deb")
    monkeypatch.setattr(build, "unpack", stop)
    (cache / "building-killed/tree").mkdir(parents=True)  # by a build that was killed
    with pytest.raises(KeyboardInterrupt):
        build.build(lambda *_: None)
    assert [path.name for path in cache.iterdir()] == ["weir-lock"]


def test_refusals_are_one_sentence(cache, monkeypatch):
    monkeypatch.setattr(build.platform, "machine", lambda: "aarch64")
    with pytest.raises(UserError, match=r"runs on x86_64 only, and this is aarch64") as refused:
        build.check_machine()
    assert refused.value.status == 2
    monkeypatch.setattr(build.platform, "machine", lambda: "x86_64")
    usage = type("Usage", (), {"free": 600_000_000})
    monkeypatch.setattr(build.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(UserError, match=r"700 MB in .* and 600 MB are free"):
        build.check_machine()
    monkeypatch.setattr(build, "output", lambda _: "x:\n  Candidate: (none)\n")
    monkeypatch.setattr(build.shutil, "which", lambda *_, **__: "/usr/bin/apt-get")
    with pytest.raises(UserError, match="security suite"):
        build.source()
    monkeypatch.setattr(build.shutil, "which", lambda *_, **__: None)
    with pytest.raises(UserError, match="no apt-get"):
        build.source()


def test_a_package_is_unpacked_in_part(tmp_path):
    """A small package made here, as Debian makes them."""
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:xz") as tree:
        for name in ("Makefile", "net/core/dev.c", "drivers/gpu/x.c", "drivers/gpu/Kconfig"):
            entry = tarfile.TarInfo(f"linux-source-6.12/{name}")
            entry.size = 2
            tree.addfile(entry, io.BytesIO(b"x\n"))
    package = tmp_path / "package"
    (package / "DEBIAN").mkdir(parents=True)
    (package / "DEBIAN/control").write_text(
        "Package: linux-source-6.12\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\n"
        "Description: x\n"
    )
    (package / "usr/src").mkdir(parents=True)
    (package / "usr/src/linux-source-6.12.tar.xz").write_bytes(inner.getvalue())
    deb = tmp_path / "x.deb"
    subprocess.run(["dpkg-deb", "--build", package, deb], check=True, capture_output=True)
    build.unpack(deb, "linux-source-6.12", tmp_path / "tree", lambda *_: None)
    found = sorted(
        path.relative_to(tmp_path / "tree").as_posix()
        for path in (tmp_path / "tree").rglob("*")
        if path.is_file()
    )
    assert found == ["Makefile", "drivers/gpu/Kconfig", "net/core/dev.c"]


def test_make_says_how_many_files_it_would_compile(tmp_path):
    lines = "".join(f"{name}.o:\n\t@echo '  {what} {name}.o'\n" for name, what in NAMES.items())
    (tmp_path / "Makefile").write_text(f"linux: {' '.join(f'{name}.o' for name in NAMES)}\n{lines}")
    assert build.planned(tmp_path, tmp_path, ["linux"]) == 2
    assert build.planned(tmp_path, tmp_path, ["no-such-target"]) == 0


NAMES = {"a": "CC     ", "b": "CC     ", "c": "HOSTCC ", "d": "AR     "}


@pytest.mark.parametrize("own", [False, True])
def test_progress_says_the_step_and_what_was_done(tmp_path, monkeypatch, own):
    """However many commands make runs: nothing is said to be done before it is."""
    said, now = [], iter(range(0, 10_000, 10))
    monkeypatch.setattr(build.time, "monotonic", lambda: next(now))
    steps = build.Steps(recipe.Recipe(source=str(tmp_path)) if own else build.PLAIN, said.append)
    for what in ["unpacking"] if own else ["downloading", "unpacking"]:
        steps(what, "")
    for done in range(1, 8):
        steps("compiling", f"{done} of 9 files")
    if own:
        steps("booting", "")
    assert said == [
        *(["step 1 of 3: downloading the guests' kernel"] if not own else []),
        f"step {1 if own else 2} of 3: unpacking the guests' kernel",
        f"step {2 if own else 3} of 3: compiling the guests' kernel",
        "compiling: 4 of 9 files, 30 s so far",
        "compiling: 7 of 9 files, 60 s so far",
        *(["step 3 of 3: booting the guests' kernel"] if own else []),
    ]


# Kernels of one's own.


def tree_of(folder, **more):
    """The least that is taken for a kernel's source; other files by their names."""
    texts = {"Makefile": "mrproper:\n\trm -f built\n", "arch/um/Kconfig": build.TICKS_FIXED}
    for name, text in (texts | more).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_what_is_refused_before_anything_is_done(cache, tmp_path):
    tree = tree_of(tmp_path / "tree")
    (cache / "taken").mkdir()
    for made, said in {
        recipe.Recipe(hz=1000): "needs a name: --name NAME",
        recipe.Recipe(patches=(tmp_path / "x",)): "needs a name",
        recipe.Recipe(name="a b"): "'a b' is not 1 to 31 letters",
        recipe.Recipe(name="taken"): "'taken' is taken by the cache itself",
        recipe.Recipe(name="00112233aabbccdd"): "is taken by the cache itself",
        recipe.Recipe(name="a", hz=100): "--hz: 100 is not one of 250, 1000",
        recipe.Recipe(name="a", source="nowhere"): "nowhere is no folder, no tarball and no",
        recipe.Recipe(name="a", patches=(tmp_path / "x",)): "x: no such file",
        recipe.Recipe(name="a", fragment=tmp_path): "no such file",
        recipe.Recipe(name="a", modules=(tmp_path,)): "has no Kbuild and no Makefile",
        recipe.Recipe(name="a", modules=(tree, tree)): "two folders have the same name",
    }.items():
        with pytest.raises(UserError, match=said) as refused:
            build.build(lambda *_: pytest.fail("begins"), made)
        assert refused.value.status == 2


@pytest.mark.parametrize("packed", [False, True])
def test_a_tree_or_a_tarball_is_copied(tmp_path, packed):
    """A tree with what git knows of it and what was built in it, which stay where they are."""
    source = tree_of(tmp_path / "linux-9.9", built="x", **{".git/HEAD": "x"})
    before = recipe.version_of(source)
    given = source
    if packed:
        given = tmp_path / "linux-9.9.tar.xz"
        subprocess.run(["tar", "-C", tmp_path, "-cJf", given, source.name], check=True)
    recipe.unpack_source(given, tmp_path / "copy")
    found = {path.name for path in (tmp_path / "copy").iterdir()}
    assert found - {".git"} == {"Makefile", "arch"} | ({"built"} if packed else set())
    assert (source / "built").exists()
    (source / "Makefile").write_text("all:\n")
    assert recipe.version_of(source) != before
    with pytest.raises(UserError, match="not the tree of a Linux kernel"):
        recipe.unpack_source(tmp_path, tmp_path.parent / f"{tmp_path.name}-other")


def test_a_patch_that_does_not_apply_is_named(tmp_path):
    tree = tree_of(tmp_path / "tree", **{"net/x.c": "a\nb\nc\n"})
    patch = tmp_path / "b.patch"
    patch.write_text("--- a/net/x.c\n+++ b/net/x.c\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")
    recipe.apply_patches([patch], tree)
    assert (tree / "net/x.c").read_text() == "a\nB\nc\n"
    for text, said in (
        (patch.read_text().replace("B", "D").replace(" a\n", " x\n"), "Hunk #1 FAILED at 1"),
        (patch.read_text().replace("net/x.c", "net/y.c"), "can't find file to patch"),
        ("no patch\n", "garbage"),
    ):
        patch.write_text(text)
        with pytest.raises(UserError, match=f"b.patch does not apply to this source: .*{said}"):
            recipe.apply_patches([patch], tree)


def test_options_of_a_fragment_that_kconfig_dropped_are_named(tmp_path):
    """Those that it does not know, and those that another option asks for nevertheless."""
    fragment = tmp_path / "more.config"
    fragment.write_text("CONFIG_MPTCP=y\n# CONFIG_UNIX is not set\nCONFIG_TCP_CONG_BBR=m\n")
    more = recipe.Recipe(fragment=fragment, hz=1000).options()
    asked = build.plain_options() + more
    assert build.missing_options(asked, more) == []
    without = asked.replace("CONFIG_MPTCP=y", "").replace("# CONFIG_UNIX is not set", "")
    assert build.missing_options(without, more) == ["CONFIG_UNIX=n", "CONFIG_MPTCP=y"]
    assert build.options_of(asked)["CONFIG_HZ_1000"] == "y"
    assert build.options_of(asked)["CONFIG_HZ_250"] == "n"


def test_what_a_kernel_is_made_of_is_its_key(monkeypatch, tmp_path):
    """A plain one has the key that it had before there were others."""
    monkeypatch.setattr(build, "compiler", lambda: "gcc 12")
    patch, fragment, module = tmp_path / "a.patch", tmp_path / "b.config", tmp_path / "module"
    module.mkdir()
    for file in (patch, fragment, module / "Kbuild"):
        file.write_text("x\n")
    made = [
        recipe.Recipe(),
        recipe.Recipe(hz=1000),
        recipe.Recipe(patches=(patch,)),
        recipe.Recipe(fragment=fragment),
        recipe.Recipe(modules=(module,)),
    ]
    keys = [build.identify("linux", "1", each).key for each in made]
    assert len(set(keys)) == len(made)
    options = hashlib.sha256(build.OPTIONS.read_bytes()).hexdigest()[:16]
    plain = hashlib.sha256(f"linux\n1\n{options}\ngcc 12".encode()).hexdigest()[:16]
    assert keys[0] == plain
    assert build.identify("linux", "1", recipe.Recipe(name="other")).key == plain
    (module / "Kbuild").write_text("y\n")
    assert build.identify("linux", "1", made[-1]).key != keys[-1]


def test_modules_are_loaded_behind_those_that_they_need(tmp_path):
    needs = {"a": "b-x,c", "b-x": "c", "c": "", "d": "built_in"}
    for name, others in needs.items():
        said = f"\0license=GPL\0depends={others.replace('-', '_')}\0"
        (tmp_path / f"{name}.ko").write_bytes(said.encode())
    order = recipe.load_order(tmp_path.glob("*.ko"))
    assert [recipe.module_name(file) for file in order] == ["c", "b_x", "a", "d"]
    (tmp_path / "c.ko").write_bytes(b"\0depends=a\0")
    with pytest.raises(UserError, match="modules need each other"):
        recipe.load_order(tmp_path.glob("*.ko"))


@pytest.fixture
def weir(monkeypatch):
    """Runs a command; its status."""

    def run(*words):
        monkeypatch.setattr("sys.argv", ["weir", *words])
        with contextlib.suppress(SystemExit):
            return app.main()
        return 0

    return run


def test_names_of_kernels(cache):
    """A kernel goes with its last name."""
    for key in ("cafe", "beef", "f00d"):
        built(cache, dataclasses.replace(KERNEL, key=key))
    kernels.choose("cafe")
    kernels.choose("beef", "mine")
    kernels.choose("beef", "same")
    assert list(kernels.named()) == ["current", "mine", "same"]
    kernels.choose("f00d", "mine")
    assert (cache / "beef").exists()
    kernels.remove("same")
    assert not (cache / "beef").exists()
    for name in ("same", "f00d", "../x"):
        with pytest.raises(UserError, match=f"no kernel '{name}'; there is current, mine"):
            kernels.remove(name)
    assert kernels.find("mine").key == "f00d"


def test_the_commands(cache, capsys, weir):
    assert weir("guests", "list") == 0
    assert capsys.readouterr().out == "no kernel is built; run: tools/weir guests build\n"
    built(cache, dataclasses.replace(KERNEL, controls="reno mine", modules="tcp_mine"))
    kernels.choose(KERNEL.key, "own")
    assert weir("guests", "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "own: Linux 6.12.1-weir (linux-source-6.12 6.12.1-1)"
    assert lines[1:] == ["  modules: tcp_mine", "  controls: reno mine"]
    assert weir("guests", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out)["own"]["key"] == KERNEL.key
    assert weir("guests", "build", "--hz", "1000") == 2
    assert "needs a name: --name NAME" in capsys.readouterr().err
    assert weir("guests", "remove", "own") == 0
    assert weir("guests", "remove", "own") == 2
    assert "there is no kernel 'own'; there is none" in capsys.readouterr().err


def test_the_pipe_of_a_build_that_raises_is_closed():
    with pytest.raises(ZeroDivisionError), commands.group(["yes"], stdout=subprocess.PIPE) as yes:
        _ = 1 / 0
    assert yes.stdout.closed
