# SPDX-License-Identifier: BSD-3-Clause
"""weir-quic of aioquic, over HTTP/3; sender/group/quic.c says what it is."""

import asyncio
import datetime
import json
import os
import pathlib
import ssl
import sys
import time

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicLogger, QuicLoggerTrace
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

AHEAD_BYTES = 1 << 22  # what the stream holds and has not been acknowledged
WINDOW_BYTES = 64 << 20


class Trace(QuicLoggerTrace):
    """A qlog that is written as it comes, in place of at the connection's end."""

    def __init__(self, is_client, odcid):
        super().__init__(is_client=is_client, odcid=odcid)
        side = "client" if is_client else "server"
        path = pathlib.Path(os.environ["WEIR_OUT"], f"{odcid.hex()}-{side}.sqlog")
        self.file = path.open("w", buffering=1)
        self.waits = []  # a packet's frames are added to its event while it is taken apart
        head = {"qlog_version": "0.3", "qlog_format": "JSON-SEQ"}
        self.write(head | {"trace": {"vantage_point": self._vantage_point}})

    def write(self, record):
        self.file.write(f"\x1e{json.dumps(record)}\n")

    def log_event(self, *, category, event, data):
        """Writes an event when the next packet's follows, with the frames added meanwhile."""
        if event == "packet_lost":  # the header, as the draft has it
            data = {"header": {"packet_type": data["type"], "packet_number": data["packet_number"]}}
        if event in ("packet_received", "packet_sent"):
            for record in self.waits:
                self.write(record)
            self.waits.clear()
        self.waits.append({"time": time.time() * 1e3, "name": f"{category}:{event}", "data": data})


class Logger(QuicLogger):
    """Writes a file for each connection, as it goes on."""

    def start_trace(self, is_client, odcid):
        return Trace(is_client, odcid)

    def end_trace(self, trace):
        trace.file.close()


class Server(QuicConnectionProtocol):
    """Answers each request when all of it has arrived."""

    def __init__(self, *args, **keywords):
        super().__init__(*args, **keywords)
        self.http = H3Connection(self._quic)

    def quic_event_received(self, event):
        for of in self.http.handle_event(event):
            if isinstance(of, DataReceived | HeadersReceived) and of.stream_ended:
                self.http.send_headers(of.stream_id, [(b":status", b"200")], end_stream=True)
                self.transmit()


class Client(Server):
    """Sends one request of a size, or without end."""

    def begin(self, size):
        self.left, self.answered = size or sys.maxsize, asyncio.Event()
        self.stream = self._quic.get_next_available_stream_id()
        put = {":method": "PUT", ":scheme": "https", ":authority": "weir", ":path": "/"}
        self.http.send_headers(self.stream, [(k.encode(), v.encode()) for k, v in put.items()])
        self.transmit()

    def transmit(self):
        """Fills the stream before what is due is sent."""
        sender = self._quic._streams[self.stream].sender if hasattr(self, "stream") else None
        while sender and self.left and sender._buffer_stop - sender._buffer_start < AHEAD_BYTES:
            part = min(self.left, 1 << 18)
            self.left -= part
            self.http.send_data(self.stream, bytes(part), end_stream=self.left == 0)
        super().transmit()

    def quic_event_received(self, event):
        for of in self.http.handle_event(event):
            if isinstance(of, HeadersReceived):
                self.answered.set()


def configuration(control, is_client):
    """Makes what both ends have alike."""
    return QuicConfiguration(
        is_client=is_client,
        alpn_protocols=["h3"],
        congestion_control_algorithm=control,
        idle_timeout=3600,
        max_data=WINDOW_BYTES,
        max_stream_data=WINDOW_BYTES,
        max_datagram_size=1452,
        quic_logger=Logger() if "WEIR_OUT" in os.environ else None,
        verify_mode=ssl.CERT_NONE,
    )


async def send(address, control, size, transfers):
    """Sends requests, each on a connection of its own, one after the other."""
    loop = asyncio.get_running_loop()
    for _ in range(transfers):
        began = time.time_ns()
        own = QuicConnection(configuration=configuration(control, True))
        socket, client = await loop.create_datagram_endpoint(
            lambda own=own: Client(own), ("0.0.0.0", 0)
        )
        client.connect((address, 4433))
        await client.wait_connected()
        client.begin(size)
        await client.answered.wait()
        print("transfer", size, time.time_ns() - began, flush=True)
        client.close()
        await client.wait_closed()
        socket.close()
        await asyncio.sleep(0)  # the loop closes it, and its port is free


async def receive(control):
    """Serves until it is ended, with a certificate of its own."""
    own = configuration(control, False)
    own.private_key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "weir")])
    now = datetime.datetime.now(datetime.UTC)
    own.certificate = (
        x509.CertificateBuilder(name, name, own.private_key.public_key(), 1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(own.private_key, None)
    )
    await serve("0.0.0.0", 4433, configuration=own, create_protocol=Server)
    await asyncio.Event().wait()


async def main():
    if sys.argv[1] == "serve":
        await receive(sys.argv[2])
    address, control, *numbers = sys.argv[2:]
    connections, size, transfers = map(int, numbers)
    await asyncio.gather(*(send(address, control, size, transfers) for _ in range(connections)))


asyncio.run(main())
