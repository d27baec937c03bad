# SPDX-License-Identifier: BSD-3-Clause
"""Reads runs: rings, run folders, metrics."""
