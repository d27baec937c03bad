# SPDX-License-Identifier: BSD-3-Clause
"""Cables as probes find them, beside what the inventory says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weir.hosts.check import Answer
from weir.hosts.inventory import Host


def wrong(hosts: Mapping[str, Host], answers: Mapping[str, Answer]) -> Iterator[tuple[str, str]]:
    """Yields cables that are not as they should be: the host, and what its port hears."""
    silent = {(name, port) for name in hosts for port in answers[name]["silent"]}
    for name, host in hosts.items():
        heard = [tuple(each) for each in answers[name]["heard"]]
        for port, their, end in host.joined():
            if (port, their, end) in heard or {(name, port), (their, end)} & silent:
                continue
            others = [f"{h}/{p}" for mine, h, p in heard if mine == port]
            what = f"it hears {' and '.join(others)}" if others else "it hears nothing"
            yield name, f"port {port} should be connected to {their}/{end}: {what}"
