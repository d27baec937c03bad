# SPDX-License-Identifier: BSD-3-Clause
"""The two forms in which a run is written as qlog; what is said is the same.

| format | draft | for |
|---|---|---|
| qlog | draft-ietf-quic-qlog-main-schema-14, -quic-events of July 2026 | newest readers |
| qlog-0.3 | draft-ietf-quic-qlog-main-schema-03, -quic-events-02 | qvis |

In the newest form a change of a control's mode is a `quic:congestion_state_updated`, as a change
of the connection's state is, with the trigger `cc_mode`; why a packet was dropped is `weir_reason`
beside its data, which has no place for it; and the events of Weir have a schema of their own.
"""

from __future__ import annotations

from datetime import UTC, datetime

from weir.base.foreign import Json

NEWEST, OLD = "qlog", "qlog-0.3"
SCHEMAS = ["urn:ietf:params:qlog:events:quic", "weir:events"]
NAMES = {
    "connectivity:connection_started": "quic:connection_started",
    "connectivity:connection_closed": "quic:connection_closed",
    "recovery:metrics_updated": "quic:recovery_metrics_updated",
    "recovery:congestion_state_updated": "quic:congestion_state_updated",
    "transport:packet_sent": "quic:packet_sent",
    "recovery:packet_lost": "quic:packet_lost",
    "weir:cc_mode": "quic:congestion_state_updated",
}
TRIGGERS = {"clean": "application"}  # of connection_closed; the others have the same name


def header(form: str, title: str, description: str, start_utc_ns: int) -> dict[str, object]:
    """Returns the record before the events, whose times are in ms from the start of the run."""
    vantage_point = {"name": "sender", "type": "client"}
    said = {"title": title, "description": description}
    if form == OLD:
        common: dict[str, object] = {
            "time_format": "relative",
            "reference_time": start_utc_ns / 1e6,
            "protocol_type": ["TCP"],
        }
        trace = {"common_fields": common, "vantage_point": vantage_point}
        return {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", **said, "trace": trace}
    epoch = datetime.fromtimestamp(start_utc_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    common = {
        "time_format": "relative_to_epoch",
        "reference_time": {"clock_type": "system", "epoch": f"{epoch}.{start_utc_ns % 10**9:09d}Z"},
    }
    return {
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        **said,
        "trace": {
            "common_fields": common,
            "vantage_point": vantage_point,
            "event_schemas": SCHEMAS,
        },
    }


def _endpoint(data: Json, end: str) -> dict[str, object]:
    version = data["ip_version"]
    return {f"ip_{version}": data[f"{end}_ip"], f"port_{version}": data[f"{end}_port"]}


def newest(name: str, data: Json) -> dict[str, object]:
    """Returns name, data and other members of an old event in the newest form."""
    event: dict[str, object] = {"name": NAMES.get(name, name), "data": data}
    if name == "connectivity:connection_started":
        event["data"] = {"local": _endpoint(data, "src"), "remote": _endpoint(data, "dst")}
    elif name == "connectivity:connection_closed":
        event["data"] = {"trigger": TRIGGERS.get(data["trigger"], data["trigger"])}
    elif name == "recovery:packet_lost":
        event["data"] = {"header": data["header"]}
        event["weir_reason"] = data["reason"]
    elif name == "weir:cc_mode":
        event["data"] = {"old": data["before"], "new": data["value"], "trigger": "cc_mode"}
    return event
