# SPDX-License-Identifier: BSD-3-Clause
"""Copa on ns-3, as a blog has it."""
