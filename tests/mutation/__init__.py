# SPDX-License-Identifier: BSD-3-Clause
"""Do the tests notice mistakes?"""
