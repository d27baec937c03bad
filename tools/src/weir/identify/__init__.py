# SPDX-License-Identifier: BSD-3-Clause
"""Names the congestion control that a capture shows, by known runs that behave alike."""
