# SPDX-License-Identifier: BSD-3-Clause
"""The test cases of the draft of BBR."""
