# SPDX-License-Identifier: BSD-3-Clause
"""Interactive media under RFC 8867."""
