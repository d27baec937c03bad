# SPDX-License-Identifier: BSD-3-Clause
"""Checks qlogs of `weir export --to qlog` against the CDDL inside the drafts.

    python tests/tools/qlog_cddl.py MAIN-SCHEMA.md QUIC-EVENTS.md FILE.sqlog...

The drafts are the sources of draft-ietf-quic-qlog-main-schema and -quic-events, in which a block of
code is one of `~~~ cddl`. Needs the packages pycddl and cbor2 from PyPI: it is no part of the gate.
The file's first record must be a QlogFileSeq, each other one an Event, and an event's data what the
drafts have under its name, or WeirEvent. JSON has one kind of number, CDDL several: a number is a
float where the drafts have one. A nonsensical member in each record must be refused.
"""

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import cbor2
from pycddl import Schema, ValidationError

OWN = """
WeirEvent = {before: float, value: float, detail: uint}
$ProtocolEventData /= WeirEvent
"""
FLOATS = {"time", "min_rtt", "smoothed_rtt", "latest_rtt", "before", "value"}


def cddl_of(paths: list[str]) -> str:
    """The blocks of code of the drafts, in words that pycddl knows."""
    drafts = "\n".join(Path(path).read_text("utf-8") for path in paths)
    text = "\n\n".join(re.findall(r"~~~+ *cddl[^\n]*\n(.*?)\n~~~+", drafts, re.DOTALL)) + OWN
    members = re.findall(r"^LogFile = \{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE)
    text = text.replace("~LogFile", members[0])  # it does not unwrap
    text = text.replace("    time: ", '    "time": ')  # the name of a type
    return re.sub(r"^\s*\* \$\$.*$", "", text, flags=re.MULTILINE)  # extensions: there are none


def as_cddl(value: Any, name: str = "") -> Any:
    """A JSON value with floats where the drafts have them."""
    if isinstance(value, dict):
        return {key: as_cddl(of, key) for key, of in value.items()}
    if isinstance(value, list):
        return [as_cddl(of) for of in value]
    return float(value) if name in FLOATS else value


def kind_of(name: str) -> str:
    """The type of an event's data: QUICPacketSent of quic:packet_sent."""
    namespace, _, event = name.partition(":")
    words = "".join(word.capitalize() for word in event.split("_"))
    return f"QUIC{words}" if namespace == "quic" else "WeirEvent"


def main() -> None:
    """Ends with an exception at the first record that is not as the drafts say."""
    text = cddl_of(sys.argv[1:3])

    @cache
    def schema(kind: str) -> Schema:
        return Schema(f"start = {kind}\n{text}")

    def check(kind: str, value: Any) -> None:
        schema(kind).validate_cbor(cbor2.dumps(as_cddl(value)))
        if kind != "Event":  # which may have members of its own
            try:
                schema(kind).validate_cbor(cbor2.dumps(as_cddl({**value, "nonsense": 1})))
            except ValidationError:
                return
            raise AssertionError(f"{kind}: anything is taken")

    for name in sys.argv[3:]:
        head, *events = (
            json.loads(part) for part in Path(name).read_text("utf-8").split("\x1e")[1:]
        )
        check("QlogFileSeq", head)
        for event in events:
            check("Event", event)
            check(kind_of(event["name"]), event["data"])
        names = sorted({event["name"] for event in events})
        print(f"{name}: {len(events)} events are as the drafts say: {', '.join(names)}")


if __name__ == "__main__":
    main()
