# SPDX-License-Identifier: BSD-3-Clause
"""Recorded links: their rate, delay and loss over time, as the stage replay reads them."""
