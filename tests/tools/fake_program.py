# SPDX-License-Identifier: BSD-3-Clause
"""A thread that answers at a telemetry socket as a live program does."""

import contextlib
import json
import socket
import threading

from weir.live import client

END = object()  # as an answer: the program ends instead
SILENT = object()  # it never answers


class FakeProgram:
    """Answers by command; a function is called with what stands after the comma, bytes are sent."""

    def __init__(self, folder, prefix, answers):
        path = folder / "dpdk" / prefix / client.SOCKET
        path.parent.mkdir(parents=True)
        self.answers, self.asked = answers, []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        self.listener.listen()
        # Of a test that failed, clients may be left: they keep no pytest from its end.
        self.threads = [threading.Thread(target=self.serve, daemon=True)]
        self.threads[0].start()

    def serve(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            self.threads.append(threading.Thread(target=self.talk, args=(client,), daemon=True))
            self.threads[-1].start()

    def talk(self, client):
        with client, contextlib.suppress(ConnectionError):
            client.send(json.dumps({"version": "DPDK", "pid": 7, "max_output_len": 16384}).encode())
            while message := client.recv(1024).decode():
                self.asked.append(message)
                command, _, text = message.partition(",")
                answer = self.answers.get(command)
                if callable(answer):
                    answer = answer(text)
                if answer is END:
                    return
                if isinstance(answer, bytes):
                    client.send(answer)
                elif answer is not SILENT:
                    client.send(json.dumps({command: answer}).encode())

    def close(self):
        """Lets nobody in any more; ends when the last client has gone."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(10)
