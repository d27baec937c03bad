# SPDX-License-Identifier: BSD-3-Clause
"""Files of others: what is no regular file, too long, too deep or misshapen is one sentence."""

import gzip
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from weir.base import foreign
from weir.base.errors import UserError


class Shape(msgspec.Struct):
    rate: float | None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none", "No such file or directory"),
        (".", "not a regular file"),
        ("fifo", "not a regular file"),
        ("zero", "not a regular file"),
        ("loop", "Too many levels of symbolic links"),
    ],
)
@pytest.mark.parametrize("read", [foreign.read_bytes, lambda path: list(foreign.text_lines(path))])
def test_only_regular_files_are_read_and_none_is_waited_for(tmp_path, name, says, read):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UserError, match=f"{name}: cannot be read: {says}" if name != "." else says):
        read(tmp_path / name)


def test_a_link_to_a_regular_file_is_read(tmp_path):
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    (tmp_path / "link").symlink_to("file")
    assert foreign.read_bytes(tmp_path / "link") == b"one\r\ntwo"
    lines = list(foreign.text_lines(tmp_path / "link"))
    assert lines == [(f"{tmp_path}/link:1", "one\r\n"), (f"{tmp_path}/link:2", "two")]


def test_bounds_hold_for_what_is_unpacked(tmp_path):
    (tmp_path / "x").write_bytes(gzip.compress(bytes(1001)))
    assert len(foreign.read_bytes(tmp_path / "x", 1001)) == 1001
    with pytest.raises(UserError, match="more than 1,000 bytes"):
        foreign.read_bytes(tmp_path / "x", 1000)
    with pytest.raises(UserError, match="not text"):
        list(foreign.text_lines(tmp_path / "x"))
    (tmp_path / "x").write_bytes(gzip.compress(bytes(1001))[:-9])
    with pytest.raises(UserError, match="gzip is cut off or damaged"):
        foreign.read_bytes(tmp_path / "x")
    (tmp_path / "x").write_text("a\nb\n")
    with pytest.raises(UserError, match="more than 3 bytes"):
        list(foreign.text_lines(tmp_path / "x", 3))
    with pytest.raises(UserError, match="more than 1 lines"):
        list(foreign.text_lines(tmp_path / "x", lines_max=1))


def test_numbers_that_are_not_known_are_null():
    assert foreign.decode(b'{"rate": NaN, "b": [-Infinity]}', Shape, "x").rate is None
    found = foreign.decode(b'{"a": "NaN", "b": [1, NaN,NaN ,-Infinity]}', dict[str, Any], "x")
    assert found == {"a": "NaN", "b": [1, None, None, None]}


@pytest.mark.parametrize("size", [0, foreign.CHUNK_BYTES, 3 * foreign.CHUNK_BYTES])
def test_a_file_of_any_length_is_read_whole_or_refused(tmp_path, size):
    (tmp_path / "x").write_bytes(bytes(range(256)) * (size // 256) + b"end")
    assert foreign.read_bytes(tmp_path / "x", size + 3) == (tmp_path / "x").read_bytes()
    with pytest.raises(UserError, match=f"more than {size + 2:,} bytes"):
        foreign.read_bytes(tmp_path / "x", size + 2)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "x: not JSON: "),
        (b'{"rate": 1} 2', "x: not JSON: "),
        (b'{"rate": 1, "a": "\xff', "x: not JSON: "),
        (b"[1]", "x: has another shape than it should: Expected `object`, got `array`"),
        (b"{}", "x: has another shape than it should: Object missing required field `rate`"),
        (b'{"rate": "1"}', "x: has another shape than it should: Expected `float | null`"),
        (b'{"rate": 1e400}', r"x: .*Number out of range - at `\$.rate`"),
        (b'{"rate": 1, "b": ' + b"[" * 10**6, "x: is nested deeper than 64 levels"),
        (b"[" + b"0," * 4_000_000 + b"0]", "x: has more than 4,000,000 values"),
    ],
)
def test_json_of_another_shape_is_one_sentence(data, says):
    with pytest.raises(UserError, match=says) as caught:
        foreign.decode(data, Shape, "x")
    assert "\n" not in str(caught.value)
    assert caught.value.status == 1


def test_json_of_any_shape_has_a_depth():
    inner = b"[" * 63 + b"]" * 63
    foreign.decode(b'{"a": ' + inner + b"}", dict[str, Any], "x")
    with pytest.raises(UserError, match="nested deeper"):
        foreign.decode(b'{"a": [[' + inner + b"]]}", dict[str, Any], "x")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: &x [1]\nb: *x", "x: bad YAML: anchors and aliases are not supported"),
        ("a: *x", "x: bad YAML: anchors and aliases are not supported"),
        ("[" * 33, "x: bad YAML: nested more than 32 levels deep"),
        ("[a]: b", "x: bad YAML: a key must be a plain name"),
        ("a: b\n---\nc: d", "x: bad YAML: more than one document"),
        ("a: [", "x: bad YAML: while parsing a flow node did not find expected node content"),
        ("a: \x1b", "x: bad YAML: .*control characters are not allowed"),
    ],
)
def test_yaml_is_read_as_weir_sim_reads_it(text, says):
    """Aliases in aliases hung whatever walked through a config: nine kilobytes were 9^25 texts."""
    with pytest.raises(UserError, match=says) as caught:
        foreign.decode_yaml(text, "x")
    assert "\n" not in str(caught.value)


def test_yaml_is_text_lists_and_maps():
    assert foreign.decode_yaml("a: [1, {b: yes}]\nc:\n- ''\n", "x") == {
        "a": ["1", {"b": "yes"}],
        "c": [""],
    }
    assert foreign.decode_yaml("", "x") is None


THREADS = """
import sys, threading
from typing import Generic, TypeVar
import msgspec
from weir.base import foreign

sys.setswitchinterval(1e-6)
T = TypeVar("T")
for _ in range(100):
    class Inner(msgspec.Struct, Generic[T]):
        x: T
    class Outer(msgspec.Struct):
        a: Inner[int]
        b: Inner[float] | None = None
    ready = threading.Barrier(4)
    def fill():
        ready.wait()
        foreign.check({"a": {"x": 1}}, Outer, "")
    threads = [threading.Thread(target=fill) for _ in range(4)]
    for one in threads: one.start()
    for one in threads: one.join()
"""


def test_threads_may_fill_a_class_for_the_first_time():
    """In weir check cc, and so in weir ci, this ended one call in five with a SIGSEGV."""
    assert subprocess.run([sys.executable, "-c", THREADS]).returncode == 0


@pytest.mark.parametrize(
    ("name", "kind", "link", "good"),
    [
        ("a/b", tarfile.REGTYPE, "", True),
        ("a/link", tarfile.SYMTYPE, "../c", True),
        ("../b", tarfile.REGTYPE, "", False),
        ("/tmp/weir-b", tarfile.REGTYPE, "", False),
        ("out/b", tarfile.REGTYPE, "", False),
        ("a/link", tarfile.SYMTYPE, "../../c", False),
        ("a/link", tarfile.SYMTYPE, "/etc/passwd", False),
        ("link", tarfile.LNKTYPE, "../c", False),
        ("fifo", tarfile.FIFOTYPE, "", False),
    ],
)
def test_an_archive_unpacks_below_its_folder_and_nowhere_else(tmp_path, name, kind, link, good):
    """Also without the filters of Python, which Debian 12's lacks: weir ci --base ended there."""
    member, packed = tarfile.TarInfo(name), io.BytesIO()
    member.type, member.linkname, member.mode, member.uid = kind, link, 0o4777, 7
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(member)
    into = tmp_path / "into"
    into.mkdir()
    (into / "out").symlink_to(tmp_path)
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        (found,) = archive
        if not good:
            with pytest.raises(UserError, match=f"'{name}' in an archive leads elsewhere, or is"):
                foreign.extract(archive, found, into)
            return
        foreign.extract(archive, found, into)
    there = (into / name).lstat()
    assert there.st_uid == os.getuid()
    assert kind == tarfile.SYMTYPE or there.st_mode & 0o7777 == 0o755


def test_nothing_asks_python_for_a_filter_of_archives():
    """Debian 12's has none: kernels, Linux's sources and runs of other hosts were not unpacked."""
    place = Path(foreign.__file__).parents[1]
    asking = [path for path in place.rglob("*.py") if 'filter="data"' in path.read_text()]
    assert asking == []
