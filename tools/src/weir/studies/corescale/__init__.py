# SPDX-License-Identifier: BSD-3-Clause
"""CoreScale: thousands of flows."""
