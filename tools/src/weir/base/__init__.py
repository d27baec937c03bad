# SPDX-License-Identifier: BSD-3-Clause
"""Errors, units, files of others and the C programs, on which every other package stands."""
