# SPDX-License-Identifier: BSD-3-Clause
"""Queue disciplines under RFC 7928."""
