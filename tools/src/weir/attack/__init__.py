# SPDX-License-Identifier: BSD-3-Clause
"""weir attack: a search for the network under which a control does worst."""
