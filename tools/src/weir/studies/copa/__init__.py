# SPDX-License-Identifier: BSD-3-Clause
"""Copa, as its paper has it."""
