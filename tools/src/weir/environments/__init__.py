# SPDX-License-Identifier: BSD-3-Clause
"""What an agent is tried in and what it observes, without Gymnasium: weir.gym makes it playable."""
