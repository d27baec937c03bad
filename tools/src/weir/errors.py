# SPDX-License-Identifier: BSD-3-Clause
"""The one exception a user sees."""


class UserError(Exception):
    """One sentence for the user, and the exit status: 1 failed, 2 bad usage or config."""

    def __init__(self, sentence: str, status: int = 2) -> None:
        super().__init__(sentence)
        self.status = status
