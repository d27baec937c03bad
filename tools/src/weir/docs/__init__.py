# SPDX-License-Identifier: BSD-3-Clause
"""The pages as a site: what is made for it, how it is built, and how it is shown."""
