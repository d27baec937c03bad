# SPDX-License-Identifier: BSD-3-Clause
"""The commands of the command line, which parse arguments and call other packages."""
