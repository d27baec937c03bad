# SPDX-License-Identifier: BSD-3-Clause
"""CoreScale and EdgeScale, thousands and tens of flows."""
