# SPDX-License-Identifier: BSD-3-Clause
"""Starts the C programs of a run, passes on what they print, and ends them."""
