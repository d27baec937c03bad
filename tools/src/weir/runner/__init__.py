# SPDX-License-Identifier: BSD-3-Clause
"""Starts the C programs of a run, hears what they say, and ends them."""
