# SPDX-License-Identifier: BSD-3-Clause
"""Published studies, test suites and comparisons, each a folder that weir.study finds and runs."""
