# SPDX-License-Identifier: BSD-3-Clause
"""Weir's own speed, beside its peers."""
