# SPDX-License-Identifier: BSD-3-Clause
"""Text in tables of Markdown."""

from __future__ import annotations


def cell(text: str) -> str:
    """Text in a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def code(text: str) -> str:
    """Text as in a config; there is nothing to show of an empty one."""
    return f"`{text}`" if text else ""
