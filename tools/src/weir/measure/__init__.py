# SPDX-License-Identifier: BSD-3-Clause
"""Measures a real path with iperf3, pings and captures, and fits a model to what was measured."""
