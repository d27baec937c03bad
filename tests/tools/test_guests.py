# SPDX-License-Identifier: BSD-3-Clause
"""weir guests build: what is unpacked, what is asked of Kconfig, what a second call does."""

import io
import json
import subprocess
import tarfile

import pytest
from weir.errors import UserError
from weir.guests import build

KERNEL = build.Kernel("linux-source-6.12", "6.12.1-1", "6.12.1-weir", "00", "gcc 12", "cafe")


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
    build.free_ticks(tmp_path)
    assert kconfig.read_text().split("\n\n")[1] == 'source "kernel/Kconfig.hz"'
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
    monkeypatch.setattr(build, "source", lambda: (KERNEL.package, KERNEL.version))
    monkeypatch.setattr(build, "identify", lambda *_: KERNEL)
    monkeypatch.setattr(build, "install_needs", lambda: None)
    monkeypatch.setattr(build, "download", lambda *_: pytest.fail("downloads"))
    assert build.build(lambda *_: None) == (KERNEL, False)
    assert build.current() == KERNEL
    assert (cache / "current").readlink().as_posix() == KERNEL.key


def test_no_kernel_or_half_of_one_is_none(cache):
    assert build.current() is None
    built(cache)
    build.choose(KERNEL.key)
    assert build.current() == KERNEL
    (cache / KERNEL.key / "linux").unlink()
    assert build.current() is None


def test_what_was_begun_is_removed_when_it_fails(cache, monkeypatch):
    """The cache holds whole kernels only, whatever happens meanwhile."""

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "source", lambda: (KERNEL.package, KERNEL.version))
    monkeypatch.setattr(build, "identify", lambda *_: KERNEL)
    monkeypatch.setattr(build, "install_needs", lambda: None)
    monkeypatch.setattr(build, "download", lambda package, version, folder: folder / "x.deb")
    monkeypatch.setattr(build, "unpack", stop)
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


def test_progress_is_a_line_per_tenth_with_an_estimate():
    said = []
    steps = build.Steps(said.append)
    for done in range(0, 101):
        steps("compiling", done, 100)
    assert said[0] == "compiling the guests' kernel source"
    assert [line.split(":")[0] for line in said[1:]] == ["compiling"] * 10
    assert "about 0 s left" in said[1]
    assert said[-1] == "compiling: 100 %"
