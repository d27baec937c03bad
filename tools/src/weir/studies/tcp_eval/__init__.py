# SPDX-License-Identifier: BSD-3-Clause
"""The common TCP evaluation suite."""
