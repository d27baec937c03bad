# SPDX-License-Identifier: BSD-3-Clause
"""Adds Weir's version and the C libraries to the bill of materials of the Python packages.

bill.py VERSION PYTHON.json    prints the whole
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# What meson.build asks for: in the wheel, and in Debian's package by its dependencies.
LIBRARIES = ("libyaml-dev", "libxxhash-dev", "libpcap-dev", "zlib1g-dev", "libzstd-dev")
LIVE = ("libdpdk-dev",)


def library(package: str) -> dict[str, Any]:
    """A Debian package as it is on this machine."""
    asked = ["dpkg-query", "--showformat=${source:Package} ${source:Version}", "--show", package]
    said = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    name, version = said.split()
    url = f"pkg:deb/debian/{name}@{version}?arch=source"
    return {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}


def main() -> int:
    """The bill, on standard output."""
    version, python = sys.argv[1:]
    bill = json.loads(Path(python).read_text())
    weir = bill["metadata"]["component"]
    weir["version"] = version
    bill["components"] += map(library, (*LIBRARIES, *LIVE))
    refs = [component["bom-ref"] for component in bill["components"]]
    bill["dependencies"] = [{"ref": weir["bom-ref"], "dependsOn": refs}]
    print(json.dumps(bill, indent=1, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
