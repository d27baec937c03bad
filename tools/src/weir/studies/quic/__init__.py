# SPDX-License-Identifier: BSD-3-Clause
"""QUIC stacks on the same four networks."""
