# SPDX-License-Identifier: BSD-3-Clause
"""weir new cc NAME, study NAME, ci NAME: files that work, to be changed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from weir.base.errors import UserError
from weir.bootstrap import ROOT

TEMPLATE = Path(__file__).with_name("template")
HEADERS = ROOT / "common"  # has weir/cc.h
FILES = {
    "cc": {
        "cc/control.c": "NAME.c",
        "cc/Makefile": "Makefile",
        "cc/config.yaml": "NAME.yaml",
        "cc/test.py": "test_NAME.py",
    },
    "linux": {
        "linux/Makefile": "Makefile",
        "cc/config.yaml": "NAME.yaml",
        "cc/test.py": "test_NAME.py",
    },
    "ci": {"ci/workflow.yaml": ".github/workflows/NAME.yaml"},
    "study": {f"study/{name}": name for name in ("study.yaml", "link.yaml", "measures.py")},
}


def create(kind: str, name: str, folder: Path, given: Sequence[Path] = ()) -> list[Path]:
    """Writes the folder; returns its files. UserError: no name for it, or a file is there.

    Those that are given are copied as they are.
    """
    if re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name) is None:
        raise UserError(f"new: '{name}' is no name: 1 to 31 small letters, digits and _")
    made = {folder / path.name: path.read_bytes() for path in given}
    sources = " ".join(path.name for path in given if path.suffix == ".c")
    for source, target in FILES[kind].items():
        text = (TEMPLATE / source).read_text(encoding="utf-8").replace("NAME", name)
        text = text.replace("HEADERS", shlex.quote(str(HEADERS))).replace("SOURCE_FILES", sources)
        text = text.replace("PROGRAM", str(ROOT / "tools/weir"))
        if (folder.parent / f"{name}.c").is_file():  # the study of the plug-in above it
            text = text.replace("cc: newreno", f"cc: {{plugin: ../{name}.so}}")
        made[folder / target.replace("NAME", name)] = text.encode()
    for path in made:
        if path.exists():
            raise UserError(f"new: {path} exists")
    for path, content in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return list(made)
