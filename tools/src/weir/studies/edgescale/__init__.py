# SPDX-License-Identifier: BSD-3-Clause
"""CoreScale with tens of flows."""
