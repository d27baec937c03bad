# SPDX-License-Identifier: BSD-3-Clause
"""Congestion controls in Python, in virtual time: `cc: {python: mine.py:MyControl}`.

    from weir.control import Control, Measurements, parameter

    class MyControl(Control):
        '''Adds a segment per round trip, halves at a loss.'''

        initial = parameter(10.0, "initial window in segments", min=1, max=1000)

        def init(self, m: Measurements) -> None:
            self.cwnd_segs = self.initial

        def on_ack(self, m: Measurements) -> None:
            self.cwnd_segs += m.acked_segs / self.cwnd_segs

        def on_loss(self, m: Measurements) -> None:
            self.cwnd_segs = max(self.cwnd_segs / 2, 2.0)

tools/docs/how-to/python-controls.md is the page about it.
"""

from weir.control.control import Control, Parameter, parameter
from weir.control.measurements import Measurements

__all__ = ["Control", "Measurements", "Parameter", "parameter"]
