# SPDX-License-Identifier: BSD-3-Clause
"""A small experiment, for the tests of what runs many of them."""

CONFIG = """\
seed: 4
duration: 500ms
paths:
  forward:
    - link: {rate: 1Mbit, queue: {fifo: {limit: 20pkt}}}
    - delay: {delay: 10ms}
  reverse:
    - delay: {delay: 10ms}
flows:
  - {count: 1, cc: newreno}
"""
HOW = ("status", "folder", "wall_s")  # columns that say how a sweep's table was made
