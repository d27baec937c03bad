# SPDX-License-Identifier: BSD-3-Clause
"""Numbers as people read them (9.71 Gbit/s, 20.3 ms), and times as configs write them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from weir.base.errors import UserError

RATE_STEPS = ((1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))
TIME_STEPS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
BYTE_STEPS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
NONE = "–"

_TIMES = {
    1.0: "ns nsec nsecs nanosecond nanoseconds",
    1e3: "us usec usecs microsecond microseconds µs μs",
    1e6: "ms msec msecs millisecond milliseconds",
    1e9: "s sec secs second seconds",
    6e10: "min m mins minute minutes",
    3.6e12: "h hr hrs hour hours",
    8.64e13: "d day days",
    6.048e14: "w week weeks",
}
_RATE = ("", "bit", "bits", "bps", "b/s", "bit/s", "bits/s")
_RATES = {1e3: "kK", 1e6: "mM", 1e9: "gG", 1e12: "tT"}
_SIZES = {
    1.0: "B byte bytes", 1e3: "kB KB", 1e6: "MB", 1e9: "GB", 1e12: "TB",
    2.0**10: "KiB", 2.0**20: "MiB", 2.0**30: "GiB", 2.0**40: "TiB",
}  # fmt: skip
# Factors of the suffixes in configs, by unit, as in common/base/units.c: no program is needed here.
SUFFIXES = {
    "ns": {text: ns for ns, texts in _TIMES.items() for text in texts.split()},
    "bit/s": {text: 1.0 for text in _RATE if text}
    | {prefix + of: bps for bps, both in _RATES.items() for prefix in both for of in _RATE},
    "B": {text: size for size, texts in _SIZES.items() for text in texts.split()},
}

Steps = tuple[tuple[float, str], ...]


# Ends of numbers' names, and the units that they stand for.
SUFFIX_UNITS = {
    "_ns": "ns",
    "_bps": "bit/s",
    "_bytes": "B",
    "_pkts": "packets",
    "_segs": "segments",
    "_s": "s",
}
STEPS = {"ns": TIME_STEPS, "bit/s": RATE_STEPS, "B": BYTE_STEPS}


def unit_of(name: str) -> str:
    """Returns the unit that a number's name ends in; "" if there is none."""
    return next((unit for end, unit in SUFFIX_UNITS.items() if name.endswith(end)), "")


def label_of(name: str) -> str:
    """Returns a number's name in words, without its unit: goodput_bps is goodput."""
    end = next((end for end in SUFFIX_UNITS if name.endswith(end)), "")
    return name.removesuffix(end).replace("_", " ")


def shown(value: float | str | None, unit: str) -> str:
    """Returns a value with its unit, such as 20.3 ms; a dash if it is not known.

    A text is shown as it is, and a whole number without a unit with all its digits.
    """
    if isinstance(value, str):
        return value
    if value is None or not math.isfinite(value):
        return NONE
    form = FORMS.get(unit) if unit or not isinstance(value, int) else count
    return f"{number(value)} {unit}".strip() if form is None else form(value)


def step(value: float | None, steps: Steps) -> tuple[float, str]:
    """Returns the divisor and unit in which a value, say the largest of an axis, reads best."""
    if value is None or not math.isfinite(value):
        return steps[-1]
    # 999.96 would print as 1000: leave that to the next unit.
    return next((s for s in steps if abs(value) >= s[0] * 0.9995), steps[-1])


def _scaled(value: float | None, steps: Steps) -> str:
    if value is None or not math.isfinite(value):
        return NONE
    divisor, unit = step(value, steps)
    return f"{number(value / divisor)} {unit}"


def number(value: float | None, digits: int = 3) -> str:
    """Returns a number with `digits` significant digits or more: 0.00123, 1.50, 20.3, 1,234,567."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".split("e")[1])  # of the rounded value
    decimals = max(0, digits - 1 - exponent)
    if decimals > 6:
        return _signed(f"{value:.{digits - 1}e}")
    return _signed(f"{value:,.{decimals}f}")


def _signed(text: str) -> str:
    return f"−{text[1:]}" if text.startswith("-") else text


def count(value: float | None) -> str:
    return NONE if value is None else _signed(f"{round(value):,}")


def rate(bps: float | None) -> str:
    return _scaled(bps, RATE_STEPS)


def time(ns: float | None) -> str:
    return _scaled(ns, TIME_STEPS)


def size(value: float | None) -> str:
    return _scaled(value, BYTE_STEPS)


def percent(ratio: float | None, decimals: int = 2) -> str:
    return NONE if ratio is None else _signed(f"{100 * ratio:.{decimals}f} %")


def ratio(value: float | None) -> str:
    return NONE if value is None else f"{value:.4f}"


# How numbers of a unit are shown; those of any other unit are shown by `number`.
FORMS: dict[str, Callable[[float | None], str]] = {
    "ns": time, "bit/s": rate, "B": size, "%": percent, "ratio": ratio, "count": count,
}  # fmt: skip


def known(value: object) -> float | None:
    """Returns a value of JSON if it is a finite number, or None."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return float(value)


def measured(value: object) -> float:
    """Returns a number that the caller cannot do without. UserError: it is not known."""
    if (number := known(value)) is None:
        raise UserError("a number that is read of the run is not known: nothing was measured", 1)
    return number


NUMBER = r"(?>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
_UNIT = "[a-zA-Zµμ/%]+"
_PARTS = re.compile(f"({NUMBER})(?: ?({_UNIT}))?")
_SUM = re.compile(f"{NUMBER}(?: ?{_UNIT}(?: ?{NUMBER} ?{_UNIT})*)?")


def _config_number(text: object, factors: Mapping[str, float], bare: float) -> float | None:
    """Returns the value of a number with a unit, or of a sum of times, as units.c reads it."""
    parts = _PARTS.findall(str(text)) if _SUM.fullmatch(str(text)) else []
    factors = {**factors, "": bare}
    if not parts or any(unit not in factors for _, unit in parts):
        return None
    if len(parts) > 1 and "ns" not in factors:
        return None
    found = sum(float(number) * factors[unit] for number, unit in parts)
    return found if math.isfinite(found) else None


def config_bytes(text: object) -> int | None:
    """Returns the bytes of a size in a config ("1460B", "9kB"), or None if it is not one."""
    found = _config_number(text, SUFFIXES["B"], 1)
    return None if found is None else round(found)


def config_rate_bps(text: object) -> float | None:
    """Returns the bit/s of a rate in a config ("100Mbit"), or None if it is not one."""
    return _config_number(text, SUFFIXES["bit/s"], 1)


def config_time_ns(text: object, *, unit_required: bool = False) -> float | None:
    """Returns the nanoseconds of a time in a config ("100ms", "1h30m"), or None if it is not one.

    A number without a unit is in seconds, or None if a unit is required.
    """
    return _config_number(text, SUFFIXES["ns"], math.nan if unit_required else 1e9)


def config_ratio(text: object) -> float | None:
    """Returns the value of a ratio in a config ("0.1%", "0.001"), or None if it is not one."""
    return _config_number(text, {"%": 0.01}, 1)
