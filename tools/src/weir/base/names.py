# SPDX-License-Identifier: BSD-3-Clause
"""The names that dir() shows of a module that users import, without what it imports itself."""

from __future__ import annotations

from collections.abc import Mapping


def own_names(names: Mapping[str, object]) -> list[str]:
    """Returns the functions and classes that a module defines for others; names: its globals()."""
    own = names["__name__"]
    return sorted(
        name
        for name, value in names.items()
        if not name.startswith("_")
        and callable(value)
        and getattr(value, "__module__", None) == own
    )
