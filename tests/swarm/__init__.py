# SPDX-License-Identifier: BSD-3-Clause
"""Random valid experiments, and what must hold of each; tests/README.md says how."""
