# SPDX-License-Identifier: BSD-3-Clause
"""Many runs: sweeps, published studies, and what those claim."""
