# SPDX-License-Identifier: BSD-3-Clause
"""Copa in mvfst, as a post has it."""
