# SPDX-License-Identifier: BSD-3-Clause
"""Which congestion control a capture shows: how a flow behaves, and which known runs behave so."""
