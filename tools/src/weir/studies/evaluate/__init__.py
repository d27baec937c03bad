# SPDX-License-Identifier: BSD-3-Clause
"""The report of a control after RFC 9743, for `weir evaluate`."""
