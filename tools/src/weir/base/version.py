# SPDX-License-Identifier: BSD-3-Clause
"""The version, which stands in meson.build only."""

from __future__ import annotations

import re

from weir.bootstrap import ROOT

VERSION = re.findall(r"^  version: '([^']+)'", (ROOT / "meson.build").read_text(), re.MULTILINE)[0]
