# SPDX-License-Identifier: BSD-3-Clause
"""yaml-language-server as an editor speaks to it: the Language Server Protocol over pipes."""

import itertools
import json
import queue
import subprocess
import threading

ANSWER_S_MAX = 60.0


class Server:
    """A language server; files are opened by their text, as an editor has it."""

    def __init__(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.numbers = itertools.count(1)
        self.inbox = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        markdown = {"documentationFormat": ["markdown", "plaintext"], "snippetSupport": True}
        text = {"completion": {"completionItem": markdown}}
        self.ask(
            "initialize",
            {"processId": None, "rootUri": None, "capabilities": {"textDocument": text}},
        )
        self.notify("initialized", {})
        settings = {
            "yaml": {"validate": True, "completion": True, "schemaStore": {"enable": False}}
        }
        self.notify("workspace/didChangeConfiguration", {"settings": settings})

    def _read(self):
        while header := self.process.stdout.readline():
            length = int(header.split(b":")[1])
            while self.process.stdout.readline().strip():
                pass
            self.inbox.put(json.loads(self.process.stdout.read(length)))

    def _send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def notify(self, method, params):
        self._send({"method": method, "params": params})

    def _hear(self, wanted):
        """The first message that is wanted; what the server asks meanwhile gets null."""
        while True:
            message = self.inbox.get(timeout=ANSWER_S_MAX)
            if wanted(message):
                return message
            if "method" in message and "id" in message:
                items = message["params"].get("items", []) if message.get("params") else []
                self._send({"id": message["id"], "result": [None for _ in items] or None})

    def ask(self, method, params):
        number = next(self.numbers)
        self._send({"id": number, "method": method, "params": params})
        answer = self._hear(lambda m: m.get("id") == number and "method" not in m)
        assert "error" not in answer, answer
        return answer["result"]

    def complaints(self, uri, text):
        """Opens a file: what it says of it, with its lines from 1."""
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        published = "textDocument/publishDiagnostics"
        found = self._hear(lambda m: m.get("method") == published and m["params"]["uri"] == uri)
        return [
            (one["range"]["start"]["line"] + 1, one["message"])
            for one in found["params"]["diagnostics"]
        ]

    def completions(self, uri, line, column):
        """What it offers there (line and column from 0): {label: documentation}."""
        at = {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}
        found = self.ask("textDocument/completion", at)
        return {one["label"]: text_of(one.get("documentation", "")) for one in found["items"]}

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.reader.join()
        self.process.stdout.close()


def text_of(documentation):
    return documentation["value"] if isinstance(documentation, dict) else documentation
