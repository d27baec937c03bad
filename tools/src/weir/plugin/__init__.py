# SPDX-License-Identifier: BSD-3-Clause
"""Congestion controls of the user's: a new one from the template, and what one does."""
