# SPDX-License-Identifier: BSD-3-Clause
"""Figures, and the page of a run or a comparison."""
