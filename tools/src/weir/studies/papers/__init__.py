# SPDX-License-Identifier: BSD-3-Clause
"""Congestion controls, as their papers and RFCs have them."""
