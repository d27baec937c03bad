# SPDX-License-Identifier: BSD-3-Clause
"""The process of a run's controls in Python, which weir-sim starts as `server FROM TO MEMORY`."""

from __future__ import annotations

import importlib.util
import random
import signal
import sys
import traceback
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from weir.control import page as pages
from weir.control.control import UNITS, Control
from weir.control.measurements import Measurements
from weir.control.page import Page

METHODS = ("init", "on_ack", "on_loss", "on_rto", "on_spurious", "on_idle")
INFINITE = float("inf")
COPY = "file-"  # what the name of a copy in a run's folder begins with


class Refused(Exception):
    """A class that cannot be a control; the text is one sentence."""


def load(text: str) -> type[Control]:
    """Returns the class that FILE:CLASS names."""
    file, _, name = text.rpartition(":")
    if text == "agent":
        raise Refused("agent is a flow of weir.gym; a control is FILE:CLASS")
    if not file:
        raise Refused(f"{text} is not FILE:CLASS, as in mine.py:MyControl")
    found = getattr(module(Path(file).resolve()), name, None)
    if found is None:
        raise Refused(f"{file} has no class {name}")
    if not (isinstance(found, type) and issubclass(found, Control)):
        raise Refused(f"{text} is no weir.control.Control")
    if found.on_ack is Control.on_ack:
        raise Refused(f"{text} has no on_ack")
    return found


class Copies(MetaPathFinder):
    """Finds what a file in a run's folder imports, which is there as file-NAME.py."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        copy = self.folder / f"{COPY}{fullname}.py"
        return importlib.util.spec_from_file_location(fullname, copy) if copy.is_file() else None


def module(path: Path) -> ModuleType:
    """Imports a file, which can import files beside it."""
    if not path.is_file():
        raise Refused(f"{path}: there is no such file")
    name = path.stem.removeprefix(COPY).replace("-", "_")
    if name in sys.stdlib_module_names:
        name = f"control_{name}"
    if getattr(sys.modules.get(name), "__file__", None) == str(path):
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Refused(f"{path} is no Python file")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    sys.path.append(str(path.parent))  # last: no file there takes the place of Python's own
    if path.name.startswith(COPY):
        sys.meta_path.append(Copies(path.parent))
    spec.loader.exec_module(loaded)
    return loaded


def imports(of: type[Control]) -> str:
    """Returns a line for each imported file that lies beside the class's own."""
    own = Path(sys.modules[of.__module__].__file__ or "")
    files = [getattr(loaded, "__file__", None) for loaded in list(sys.modules.values())]
    beside = {Path(file) for file in files if file is not None} - {own}
    return "".join(f"\nimport\t{path}" for path in sorted(beside) if path.parent == own.parent)


def described(of: type[Control]) -> str:
    """Returns a class as weir-sim reads it: tools/sim/agent/class.h."""
    calls = sum(
        1 << (pages.INIT + i)
        for i, name in enumerate(METHODS)
        if getattr(of, name) is not getattr(Control, name)
    )
    numbers = (
        of.prr, of.ecn, of.answers_in_on_ack, of.codepoint, of.feedback, of.ack_each,
        of.any_idle, of.has_ssthresh, of.together, calls,
    )  # fmt: skip
    summary = (of.__doc__ or of.__name__).strip().splitlines()[0]
    lines = [["class", of.__name__, summary, *(str(int(number)) for number in numbers)]]
    lines += [[what, *names] for what in ("observed", "modes") if (names := getattr(of, what))]
    return "\n".join("\t".join(line) for line in [*lines, *parameters(of)])


def parameters(of: type[Control]) -> list[list[str]]:
    """Returns the fields of a line for each parameter."""
    lines = []
    for name, p in of.parameters().items():
        if name in ("python", "digest", "every"):
            raise Refused(f"{of.__name__}.{name}: the name is Weir's own")
        if wrong := p.wrong():
            raise Refused(f"{of.__name__}.{name}: {wrong}")
        most = "" if p.max == INFINITE else repr(float(p.max))
        range_ = [repr(float(p.min)), most, str(UNITS.index(p.unit))]
        lines.append(["param", name, p.kind, p.text, *range_, p.help, *p.choices])
    return lines


def place(error: BaseException) -> str:
    """Returns the line of the user's that raised it: the last that is not ours or Python's own."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    ours = str(Path(__file__).parent)
    own = [f for f in frames if not f.filename.startswith((ours, "<frozen", sys.base_prefix))]
    frame = (own or frames)[-1]
    return f"{frame.filename}:{frame.lineno}"


def sentence(error: BaseException) -> str:
    """Returns a sentence on what went wrong in the user's file, and where."""
    if isinstance(error, Refused):
        return str(error)
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{place(error)}: {type(error).__name__}" + (f": {said}" if said else "")


class Flow:
    """A control and its methods, by the number of the call."""

    def __init__(self, control: Control, m: Measurements) -> None:
        self.control = control
        self.m = m
        self.methods: list[Callable[[Measurements], None]] = [
            getattr(control, name) for name in METHODS
        ]
        self.observed = type(control).observed

    def seen(self) -> tuple[float, float, float, float]:
        """Returns four values: those of `observed`, then zeros."""
        values = [float(getattr(self.control, name)) for name in self.observed]
        return tuple(values + [0.0] * (4 - len(values)))  # type: ignore[return-value]


class Server:
    """Answers weir-sim until it ends."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.classes: list[type[Control]] = []
        self.flows: dict[int, Flow] = {}
        self.started = 0

    def open(self) -> None:
        """Opens the class that is asked for, and answers with its description."""
        of = load(self.page.text)
        self.page.text = described(of) + imports(of)
        self.classes.append(of)

    def init(self, number: int, slot: int) -> Flow:
        """Makes the control of a new flow."""
        control = self.classes[number]()
        for (name, p), value in zip(
            control.parameters().items(), self.page.params(len(control.parameters())), strict=True
        ):
            setattr(control, name, p.value(value))
        control.flow = self.started
        self.started += 1
        flow = self.flows[slot] = Flow(control, self.page.measurements(slot))
        return flow

    def call(self, call: int, number: int, slot: int) -> None:
        """Calls a method of a flow's control; of all flows of a class that is called together."""
        of = self.classes[number]
        if call == pages.ACK and of.together:
            for each, flow in self.flows.items():
                if type(flow.control) is of:
                    self.decide(call, each, flow)
        else:
            self.decide(
                call, slot, self.init(number, slot) if call == pages.INIT else self.flows[slot]
            )

    def decide(self, call: int, slot: int, flow: Flow) -> None:
        """Calls a method of a flow's control, and writes down what it decided."""
        control = flow.control
        if call != pages.INIT:
            control.cwnd_segs = flow.m.cwnd_segs  # 1 after a handshake that was repeated
        flow.methods[call - pages.INIT](flow.m)
        cwnd, pacing = control.cwnd_segs, control.pacing_bps
        if not (0 <= cwnd < INFINITE and 0 <= pacing < INFINITE):
            raise Refused(impossible(flow, METHODS[call - pages.INIT]))
        if cwnd < 1:
            cwnd = control.cwnd_segs = 1.0
        observed = flow.seen() if flow.observed else pages.UNOBSERVED
        self.page.decide(slot, cwnd, pacing, control.ssthresh_segs, observed, control.mode)

    def answer(self) -> bool:
        """Answers one call; returns False when the run has ended."""
        call, number, slot, _ = self.page.called()
        if call == pages.END:
            return False
        if call == pages.OPEN:
            self.open()
        else:
            self.call(call, number, slot)
        return True

    def serve(self) -> None:
        """Answers calls until the run ends, or a control cannot go on."""
        while self.page.wait():
            try:
                if not self.answer():
                    return
            except (Exception, SystemExit) as error:
                self.page.fail(sentence(error))
                return
            self.page.answer()


def impossible(flow: Flow, method: str) -> str:
    """Returns the sentence about a window or a rate that is no number."""
    control = flow.control
    code = getattr(type(control), method).__code__
    name = f"{type(control).__name__}.{method}"
    return (
        f"{code.co_filename}:{code.co_firstlineno}: after {name} cwnd_segs is "
        f"{control.cwnd_segs} and pacing_bps {control.pacing_bps}; both must be finite and "
        "not negative"
    )


def main() -> None:
    """Answers weir-sim until it ends; Ctrl-C is for weir-sim, which then ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    random.seed(0)
    Server(Page(*map(int, sys.argv[1:4]))).serve()


if __name__ == "__main__":
    main()
