# SPDX-License-Identifier: BSD-3-Clause
"""Files that others have written: opened without waiting, read within bounds, checked once.

Such a file may be a FIFO, a device, a link to /dev/zero, a megabyte of gzip that unpacks to
gigabytes, or JSON of any shape. To read one, call `read_json` with the wanted shape (a class of
msgspec, or Json), `decode_yaml`, `read_bytes`, `text_lines`, or at least `open_regular`.
Whatever is wrong is a UserError of one sentence with the file's name and the status 1.
"""

from __future__ import annotations

import gzip
import os
import re
import stat
import threading
import zlib
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from weir.base.errors import UserError

if TYPE_CHECKING:
    import tarfile

    import yaml

# At most this much of a file is read, after it was unpacked. A value of JSON takes at most some 100
# bytes of memory, so that the two bounds keep a command below 500 MB: an hour of 8 flows in flent,
# ten minutes of 128 streams in iperf3 are below both.
BYTES_MAX = 64 << 20
VALUES_MAX = 4_000_000
DEPTH_MAX = 64
YAML_BYTES_MAX = 4 << 20  # of a config; these two are those of common/config/config_node.h
YAML_DEPTH_MAX = 32
CHUNK_BYTES = 1 << 16  # read first: memory for BYTES_MAX takes longer than most files
LINE_BYTES_MAX = 1 << 20
LINES_MAX = 10_000_000
GZIP = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# msgspec learns a class when it first fills it, and crashes where two threads do so at once.
LEARNING = threading.Lock()

T = TypeVar("T")
Json = dict[str, Any]  # an object of JSON whose members are checked where they are read


def open_regular(path: Path) -> BinaryIO:
    """Opens a regular file, or a link to one, for reading; never waits for a FIFO's writer."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            regular = stat.S_ISREG(os.fstat(opened).st_mode)
            if regular:
                return os.fdopen(opened, "rb")
        except BaseException:
            os.close(opened)
            raise
        os.close(opened)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}", 1) from None
    raise UserError(f"{path}: cannot be read: not a regular file", 1)


def read_bytes(path: Path, bytes_max: int = BYTES_MAX) -> bytes:
    """Reads a whole file; one that is packed with gzip is unpacked."""
    try:
        with open_regular(path) as file:
            packed = file.read(2) == GZIP
            file.seek(0)
            if packed:
                with gzip.open(file) as unpacked:
                    data = unpacked.read(bytes_max + 1)
            else:
                data = file.read(min(bytes_max, CHUNK_BYTES) + 1)
                if len(data) > CHUNK_BYTES:
                    data += file.read(bytes_max + 1 - len(data))
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise UserError(f"{path}: cannot be read: its gzip is cut off or damaged", 1) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}", 1) from None
    if len(data) > bytes_max:
        raise UserError(f"{path}: has more than {bytes_max:,} bytes, the most that is read", 1)
    return data.removeprefix(BYTE_ORDER_MARK)


def read_json(path: Path, shape: type[T]) -> T:
    """Returns a JSON file as a shape (see decode). UserError: it is none, or does not fit."""
    return decode(read_bytes(path), shape, str(path))


def decode(data: bytes, shape: type[T], place: str) -> T:
    """Returns JSON as a shape: a class of msgspec, whose members alone are kept, or Json.

    Python's json, and so flent, writes NaN and Infinity for what is not known: these become null.
    """
    import msgspec  # tens of milliseconds, which most commands have no use for

    values = (data.count(mark) for mark in (b",", b"[", b"{"))
    if len(data) > VALUES_MAX and sum(values) > VALUES_MAX:
        raise UserError(f"{place}: has more than {VALUES_MAX:,} values, the most that is read", 1)
    if b"NaN" in data or b"Infinity" in data:
        data = re.sub(rb"(?<=[\[:,\s])-?(?:NaN|Infinity)(?=[,\]}\s])", b"null", data)
    try:
        with LEARNING:
            value = msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError as error:
        raise UserError(f"{place}: has another shape than it should: {error}", 1) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{place}: not JSON: {error}", 1) from None
    except RecursionError:
        raise UserError(f"{place}: is nested deeper than {DEPTH_MAX} levels", 1) from None
    if isinstance(value, dict | list) and data.count(b"[") + data.count(b"{") > DEPTH_MAX:
        check_depth(value, place)
    return value


def check_depth(value: object, place: str) -> None:
    """Raises UserError if dicts and lists are nested deeper than DEPTH_MAX levels."""
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        inner: list[object] = []
        for one in level:
            if isinstance(one, dict):
                inner.extend(one.values())
            elif isinstance(one, list):
                inner.extend(one)
        if not inner:
            return
        level = inner
    raise UserError(f"{place}: is nested deeper than {DEPTH_MAX} levels", 1)


def check(value: object, shape: type[T], place: str) -> T:
    """Returns a decoded value as a shape; UserError names the first thing that does not fit."""
    import msgspec

    try:
        with LEARNING:
            return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise UserError(f"{place}: has another shape than it should: {error}", 1) from None


def decode_yaml(text: str, place: str) -> object:
    """Returns YAML as dicts, lists and text; None of a document without a value.

    Anchors and aliases are refused as weir-sim refuses them: a kilobyte of those in each other
    stands for gigabytes.
    """
    import yaml

    try:
        events = iter(yaml.parse(text, Loader=yaml.CBaseLoader))
        found = [node(e, events, 0) for e in events if isinstance(e, yaml.NodeEvent)]
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(f"{place}: bad YAML: {' '.join(str(error).split())}", 1) from None
    if len(found) > 1:
        raise UserError(f"{place}: bad YAML: more than one document", 1)
    return found[0] if found else None


def node(event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> object:
    """Returns the YAML value that begins with an event; ValueError says why it is refused."""
    import yaml

    if getattr(event, "anchor", None) is not None:
        raise ValueError("anchors and aliases are not supported: write the value out")
    if isinstance(event, yaml.ScalarEvent):
        return event.value
    if depth == YAML_DEPTH_MAX:
        raise ValueError(f"nested more than {YAML_DEPTH_MAX} levels deep")
    inside = takewhile(lambda one: not isinstance(one, yaml.CollectionEndEvent), events)
    parts = [node(one, events, depth + 1) for one in inside]
    if isinstance(event, yaml.SequenceStartEvent):
        return parts
    if not all(isinstance(key, str) for key in parts[::2]):
        raise ValueError("a key must be a plain name")
    return dict(zip(parts[::2], parts[1::2], strict=True))


def text_lines(
    path: Path, bytes_max: int = BYTES_MAX, lines_max: int = LINES_MAX
) -> Iterator[tuple[str, str]]:
    """Yields the place, FILE:LINE, and the text of each line; only one line is in memory."""
    left = bytes_max
    with open_regular(path) as file:
        number = 0
        while line := file.readline(LINE_BYTES_MAX + 1):
            number, left = number + 1, left - len(line)
            place = f"{path}:{number}"
            if len(line) > LINE_BYTES_MAX:
                raise UserError(f"{place}: a line of more than {LINE_BYTES_MAX:,} bytes", 1)
            if left < 0:
                raise UserError(f"{path}: has more than {bytes_max:,} bytes", 1)
            if number > lines_max:
                raise UserError(f"{path}: has more than {lines_max:,} lines", 1)
            try:
                text = line.removeprefix(BYTE_ORDER_MARK if number == 1 else b"").decode()
            except UnicodeDecodeError:
                raise UserError(f"{place}: not text in UTF-8", 1) from None
            if "\0" in text:
                raise UserError(f"{place}: not text: it has a byte of 0", 1)
            yield place, text


def extract(archive: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    """Unpacks a member of an archive below a folder, for this user alone to write.

    UserError: it or its link leads out of the folder, or it is a device or a FIFO. Python has a
    filter for this from 3.11.4 on, and Debian 12 has 3.11.2.
    """
    import tarfile

    place, top = into / member.name, into.resolve()
    inside = place.resolve().is_relative_to(top)
    linked = member.issym() or member.islnk()
    if linked:
        target = (place.parent if member.issym() else into) / member.linkname
        inside = inside and target.resolve().is_relative_to(top)
    if not inside or not (member.isfile() or member.isdir() or linked):
        raise UserError(f"{into}: '{member.name}' in an archive leads elsewhere, or is no file", 1)
    member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
    member.mode = member.mode & 0o755 | 0o600
    archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
    archive.extract(member, into)
