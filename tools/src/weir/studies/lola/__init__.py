# SPDX-License-Identifier: BSD-3-Clause
"""TCP LoLa, as its paper has it."""
