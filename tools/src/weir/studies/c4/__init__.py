# SPDX-License-Identifier: BSD-3-Clause
"""The scenarios of picoquic for C4."""
