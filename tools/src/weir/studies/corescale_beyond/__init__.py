# SPDX-License-Identifier: BSD-3-Clause
"""CoreScale with ten times as many flows, whose round trips are not alike."""
