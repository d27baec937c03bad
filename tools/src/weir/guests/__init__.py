# SPDX-License-Identifier: BSD-3-Clause
"""Linux guests of virtual time: their kernel, built once into a cache."""
