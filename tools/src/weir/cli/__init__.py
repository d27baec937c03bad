# SPDX-License-Identifier: BSD-3-Clause
"""Commands of the command line, which only wire."""
