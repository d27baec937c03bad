# SPDX-License-Identifier: BSD-3-Clause
"""Runs many experiments: their cells, on this machine or others, and the tables of a sweep."""
