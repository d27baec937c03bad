# SPDX-License-Identifier: BSD-3-Clause
"""What every other package stands on: errors, units, files of others, the C programs."""
