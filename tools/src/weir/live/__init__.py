# SPDX-License-Identifier: BSD-3-Clause
"""Talks to running programs; checks a live run by a replay."""
