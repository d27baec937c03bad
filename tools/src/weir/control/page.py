# SPDX-License-Identifier: BSD-3-Clause
"""The memory that is shared with weir-sim: tools/sim/agent/page.h."""

from __future__ import annotations

import mmap
import os
import struct

from weir.control.measurements import Measurements, record

VERSION = 1
OPEN, END, INIT, ACK, LOSS, RTO, SPURIOUS, IDLE = range(8)
_HEAD = struct.Struct("<10I")
_CALL = struct.Struct("<IIII")  # call, of, slot, slots
_CALL_AT, _FAILED_AT, _CPU_AT, _PARAMS_AT = 16, 32, 36, 40
_LINES_AT = _PARAMS_AT + 24 * 8
_TEXT_AT = _LINES_AT + 8192
_TEXT_BYTES = 32768
_DECISION = struct.Struct("<7dQ")
UNOBSERVED = (0.0, 0.0, 0.0, 0.0)


class Page:
    """The pipes and the memory that this process shares with weir-sim."""

    def __init__(self, source: int, target: int, memory: int) -> None:
        self._from = source
        self._to = target
        self._memory = memory
        self._map: mmap.mmap | None = None
        self._records: list[Measurements] = []

    def wait(self) -> bool:
        """Waits until weir-sim asks for something; returns False if it has ended."""
        if os.read(self._from, 1) == b"":
            return False
        if self._map is None:
            self._begin()
        return True

    def answer(self) -> None:
        """Tells weir-sim that what it asked for is there."""
        os.write(self._to, b"\0")

    def _begin(self) -> None:
        self.map = self._map = mmap.mmap(self._memory, 0)
        head = _HEAD.unpack_from(self._map)
        if head[0] != VERSION:
            raise SystemExit("weir-sim and the Python package are of different versions")
        self._slots_at, self._slot_bytes, self._record_at = head[1:4]
        self.lines = self._text(_LINES_AT, 8192)
        self._record = record(self.lines)

    def _text(self, at: int, size: int) -> str:
        return self.map[at : at + size].partition(b"\0")[0].decode()

    @property
    def text(self) -> str:
        """FILE:CLASS that is to be opened, or the answer to it."""
        return self._text(_TEXT_AT, _TEXT_BYTES)

    @text.setter
    def text(self, value: str) -> None:
        encoded = value.encode()[: _TEXT_BYTES - 1] + b"\0"
        self.map[_TEXT_AT : _TEXT_AT + len(encoded)] = encoded

    def fail(self, sentence: str) -> None:
        """Answers that the run cannot go on, and why."""
        self.text = " ".join(sentence.split())
        struct.pack_into("<I", self.map, _FAILED_AT, 1)
        self.answer()

    def called(self) -> tuple[int, int, int, int]:
        """Returns the call, the class, the flow's slot, and how many slots there are."""
        return _CALL.unpack_from(self.map, _CALL_AT)

    def cpu(self) -> int | None:
        """Returns the CPU that weir-sim is bound to, or None."""
        number: int = struct.unpack_from("<I", self.map, _CPU_AT)[0]
        return number - 1 if number > 0 else None

    def params(self, count: int) -> tuple[float, ...]:
        """Returns the values of a class's parameters."""
        return struct.unpack_from(f"<{count}d", self.map, _PARAMS_AT)

    def measurements(self, slot: int) -> Measurements:
        """Returns the measurements of a flow, which change with each call."""
        for n in range(len(self._records), slot + 1):
            at = self._slots_at + n * self._slot_bytes + self._record_at
            self._records.append(self._record.from_buffer(self.map, at))
        return self._records[slot]

    def decide(
        self,
        slot: int,
        cwnd_segs: float,
        pacing_bps: float,
        ssthresh_segs: float = 0.0,
        observed: tuple[float, float, float, float] = UNOBSERVED,
        mode: int = 0,
    ) -> None:
        """Sets what a flow's window and rate are from now on."""
        at = self._slots_at + slot * self._slot_bytes
        _DECISION.pack_into(self.map, at, cwnd_segs, pacing_bps, ssthresh_segs, *observed, mode)
