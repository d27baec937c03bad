# SPDX-License-Identifier: BSD-3-Clause
"""The measures of CoreScale."""

from weir.studies.corescale.measures import c_halving, lowest

__all__ = ("c_halving", "lowest")
