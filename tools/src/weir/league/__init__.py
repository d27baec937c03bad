# SPDX-License-Identifier: BSD-3-Clause
"""weir league: every control in the same scenes, with intervals and ranks."""
