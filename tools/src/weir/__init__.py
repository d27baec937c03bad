# SPDX-License-Identifier: BSD-3-Clause
"""Runs Weir's experiments and turns them into numbers and figures."""

__version__ = "0.1.0"
