# SPDX-License-Identifier: BSD-3-Clause
"""Types of the fields in summaries, for the sections in model_parts.py, which the build makes.

weir-sim writes that module from the lists in C that also write the summaries (common/base/field.h):
`weir-sim --list types`.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, UnsetType

VERSION = 1  # a summary's `schema`: raised with what a reader has to be changed for
Version = Annotated[int, Meta(ge=VERSION, le=VERSION)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Seed = Annotated[int, Meta(ge=0)]  # 64 bits
Number = Annotated[float, Meta(ge=0, le=1e30)]
Signed = Annotated[float, Meta(ge=-1e30, le=1e30)]
Share = Annotated[float, Meta(ge=0, le=1 + 1e-9)]
Cdf = list[tuple[Number, Share]]  # (upper end of a bucket, share of the samples up to it)
Absent = UnsetType


class Section(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a summary; a member that it does not name is an error."""
