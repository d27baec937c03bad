# SPDX-License-Identifier: BSD-3-Clause
"""Decryption secrets of a capture: tshark decrypts what weir-sim writes of it.

The exchange is one of OpenSSL with itself; its bytes stand in TCP segments made here.
"""

from __future__ import annotations

import json
import shutil
import ssl
import struct
import subprocess
from pathlib import Path

import pytest

CONFIG = """
duration: 1s
paths:
  forward:
    - source: {pcap: in.pcapng}
    - link: {rate: 100Mbit, queue: {fifo: {limit: 100pkt}}}
    - delay: {delay: 5ms}
telemetry: {level: 1}
"""
START_NS = 1_700_000_000 * 10**9
SECRETS, TLS, UNKNOWN = 10, 0x544C534B, 0x12345678
ASKED = b"GET /weir HTTP/1.1\r\nHost: weir.test\r\n\r\n"
ANSWERED = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndam\n"


def exchange(folder: Path) -> tuple[list[tuple[bool, bytes]], bytes]:
    """What a client (True) and a server of TLS 1.3 say, and the keys."""
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    argv += ["-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=weir.test"]
    subprocess.run(argv, cwd=folder, check=True, capture_output=True, timeout=60)
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    client_side = ssl.create_default_context(cafile=str(folder / "cert.pem"))
    client_side.check_hostname = False
    client_side.keylog_filename = str(folder / "keys.txt")
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_side.wrap_bio(to_client, to_server)
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    said: list[tuple[bool, bytes]] = []

    def carry(by_client: bool) -> None:
        wire = to_server if by_client else to_client
        if data := wire.read():
            said.append((by_client, data))
            wire.write(data)

    done = [False, False]
    while not all(done):
        for at, (end, by_client) in enumerate(((client, True), (server, False))):
            try:
                end.do_handshake()
                done[at] = True
            except ssl.SSLWantReadError:
                pass
            carry(by_client)
    client.write(ASKED)
    carry(True)
    assert server.read() == ASKED
    server.write(ANSWERED)
    carry(False)
    assert client.read() == ANSWERED
    return said, (folder / "keys.txt").read_bytes()


def frames(said: list[tuple[bool, bytes]]) -> list[bytes]:
    """Ethernet, IPv4 and TCP around it, with the handshake that comes before."""
    sent = {True: 1000, False: 5000}
    out = []

    def put(by_client: bool, flags: int, data: bytes) -> None:
        ports = (40000, 443) if by_client else (443, 40000)
        hosts = [bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2])][:: 1 if by_client else -1]
        acked = sent[not by_client] if flags & 0x10 else 0
        tcp = struct.pack("!HHIIBBHHH", *ports, sent[by_client], acked, 0x50, flags, 65535, 0, 0)
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 40 + len(data), len(out), 0, 64, 6, 0)
        out.append(bytes(12) + b"\x08\x00" + ip + b"".join(hosts) + tcp + data)
        sent[by_client] += len(data) + (flags & 2 > 0)

    put(True, 0x02, b"")
    put(False, 0x12, b"")
    put(True, 0x10, b"")
    for by_client, data in said:
        for at in range(0, len(data), 1400):
            put(by_client, 0x18, data[at : at + 1400])
    return out


def block(order: str, kind: int, body: bytes) -> bytes:
    """One of pcapng, in a byte order."""
    body += bytes(-len(body) % 4)
    total = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + total + body + total


def secrets(order: str, kind: int, data: bytes, comment: bytes = b"") -> bytes:
    """A block of secrets, perhaps with a comment."""
    body = struct.pack(f"{order}II", kind, len(data)) + data + bytes(-len(data) % 4)
    if comment:
        body += struct.pack(f"{order}HH", 1, len(comment)) + comment + bytes(-len(comment) % 4)
        body += bytes(4)
    return block(order, SECRETS, body)


def section(order: str, packets: list[bytes], *before: bytes, start_ns: int = START_NS) -> bytes:
    """A section with blocks before its packets, which are 1 ms apart."""
    text = block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
    text += b"".join(before)
    text += block(order, 1, struct.pack(f"{order}HHI", 1, 0, 0))
    for i, data in enumerate(packets):
        us = start_ns // 1000 + i * 1000
        head = struct.pack(f"{order}5I", 0, us >> 32, us & 0xFFFFFFFF, len(data), len(data))
        text += block(order, 6, head + data)
    return text


def run(weir_sim: Path, folder: Path, *options: str) -> tuple[Path, str]:
    """weir-sim on in.pcapng: its capture and what it said."""
    (folder / "x.yaml").write_text(CONFIG)
    argv = [weir_sim, "x.yaml", "--force", "--out", "out", "--pcap", "out.pcapng", *options]
    done = subprocess.run(argv, cwd=folder, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return folder / "out.pcapng", done.stderr


def blocks(file: Path) -> list[tuple[int, bytes]]:
    """Types and bytes of the blocks of a file of ours."""
    text, at, found = file.read_bytes(), 0, []
    while at < len(text):
        kind, total = struct.unpack_from("<II", text, at)
        found.append((kind, text[at : at + total]))
        at += total
    return found


def decrypted(file: Path) -> str:
    """What tshark sees of HTTP."""
    argv = ["tshark", "-n", "-r", str(file), "-Y", "http", "-T", "fields"]
    argv += ["-e", "http.request.uri", "-e", "http.response.code", "-e", "http.file_data"]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.skipif(shutil.which("editcap") is None, reason="tshark is not installed")
@pytest.mark.parametrize("rotate", [0, 4096])
def test_tshark_decrypts_what_passed(weir_sim: Path, tmp_path: Path, rotate: int) -> None:
    said, _ = exchange(tmp_path)
    (tmp_path / "plain.pcapng").write_bytes(section("<", frames(said)))
    argv = ["editcap", "--inject-secrets", "tls,keys.txt", "plain.pcapng", "in.pcapng"]
    subprocess.run(argv, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert decrypted(tmp_path / "plain.pcapng") == ""
    options = ("-o", f"telemetry.rotate={rotate}B") if rotate else ()
    written, _ = run(weir_sim, tmp_path, *options)

    kept = [one for kind, one in blocks(tmp_path / "in.pcapng") if kind == SECRETS]
    files = [written, *tmp_path.glob("out.*.pcapng")]
    assert len(files) == (2 if rotate else 1)
    for file in files:
        kinds = [kind for kind, _ in blocks(file)]
        assert kinds.index(SECRETS) < kinds.index(6)
        assert [one for kind, one in blocks(file) if kind == SECRETS] == kept
    if not rotate:
        assert decrypted(written) == decrypted(tmp_path / "in.pcapng")
        assert decrypted(written).split()[:2] == ["/weir", "200"]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_secrets_of_every_section_and_byte_order(weir_sim: Path, tmp_path: Path) -> None:
    """The keys stand in a section of the other byte order, behind secrets of an unknown type."""
    said, keys = exchange(tmp_path)
    packets = frames(said)
    whole = section("<", packets[:3], secrets("<", TLS, b"# none\n"))
    whole += section(
        ">",
        packets[3:],
        secrets(">", UNKNOWN, b"\x01\x02\x03", b"a comment"),
        secrets(">", TLS, keys),
        start_ns=START_NS + 10**7,
    )
    (tmp_path / "in.pcapng").write_bytes(whole)
    written, said_by_it = run(weir_sim, tmp_path)

    assert said_by_it == ""
    assert [one for kind, one in blocks(written) if kind == SECRETS] == [
        secrets("<", TLS, b"# none\n"),
        secrets("<", UNKNOWN, b"\x01\x02\x03"),
        secrets("<", TLS, keys),
    ]
    assert decrypted(written).split()[:2] == ["/weir", "200"]


def test_secrets_larger_than_the_buffers(weir_sim: Path, tmp_path: Path) -> None:
    large = secrets("<", TLS, bytes(range(256)) * (5 << 12))
    (tmp_path / "in.pcapng").write_bytes(section("<", frames([]), large))
    written, _ = run(weir_sim, tmp_path)
    assert [one for kind, one in blocks(written) if kind == SECRETS] == [large]
    assert [kind for kind, _ in blocks(written)].count(6) == 3


@pytest.mark.parametrize(
    ("length", "total", "sentence"),
    [
        (
            1 << 20,
            None,
            "in.pcapng: the decryption secrets at byte 312 do not fit into their block",
        ),
        (0xFFFFFFFF, None, "the decryption secrets at byte 312 do not fit into their block"),
        (4, 16, "the block at byte 312 is said to have 16 bytes"),
        (4, 1 << 20, "ends in the middle of a record, which begins at byte 312"),
    ],
)
def test_secrets_that_lie(
    weir_sim: Path, tmp_path: Path, length: int, total: int | None, sentence: str
) -> None:
    """The run is of what came until then, and says so in one sentence."""
    good = section("<", frames([]))
    bad = bytearray(secrets("<", TLS, b"none"))
    struct.pack_into("<I", bad, 12, length)
    if total is not None:
        struct.pack_into("<I", bad, 4, total)
    (tmp_path / "in.pcapng").write_bytes(good + bad)
    written, said = run(weir_sim, tmp_path)
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["sources"]["forward"]["packets"] == 3
    assert said.count("\n") == 1
    assert sentence in said
    assert [kind for kind, _ in blocks(written)].count(SECRETS) == 0
