# SPDX-License-Identifier: BSD-3-Clause
"""Live runs over several hosts: `weir run --live --hosts INVENTORY CONFIG`."""
