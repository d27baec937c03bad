# SPDX-License-Identifier: BSD-3-Clause
"""Linux's own TCP beside ours, for `weir reproduce linux`."""
