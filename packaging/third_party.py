#!/usr/bin/env python3
"""Prints the licences of all that is compiled into a program, as text to hand on with it.

    third_party.py PACKAGE

The texts come from the sources of the crates, where cargo keeps them. A crate whose sources have
no text is listed with the licence that it declares. DuckDB's text is beside this script, uPlot's in
UPLOT_DIR.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

PREFIXES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")


def metadata():
    host = next(line.split()[1] for line in output("rustc", "-vV").splitlines() if line.startswith("host:"))
    return json.loads(output("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host))


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked_crates(found, name):
    """The crates from elsewhere that a package of the workspace is linked with."""
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    waiting = [i for i in found["workspace_members"] if packages[i]["name"] == name]
    if not waiting:
        raise ValueError(f"the workspace has no package {name}")
    seen = set()
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            # Crates that are needed only to build or to test are not in the program.
            waiting += [d["pkg"] for d in nodes[current]["deps"] if any(k["kind"] is None for k in d["dep_kinds"])]
    crates = [packages[i] for i in seen if packages[i]["source"]]
    return sorted(crates, key=lambda crate: (crate["name"], crate["version"]))


def texts_of(folder):
    files = (path for path in folder.iterdir() if path.name.upper().startswith(PREFIXES) and path.is_file())
    return [path.read_text(errors="replace").strip() for path in sorted(files)]


def print_notices(crates):
    """Every text once, after the list of the crates that it belongs to."""
    owners = defaultdict(list)
    print("Encore is linked with the following crates from crates.io, and with DuckDB. Its pages contain uPlot.\n")
    for crate in crates:
        title = f"{crate['name']} {crate['version']}"
        print(f"{title}: {crate['license'] or crate['license_file']}")
        for text in texts_of(Path(crate["manifest_path"]).parent):
            owners[text].append(title)
    owners[(Path(__file__).parent / "duckdb-license.txt").read_text().strip()].append("DuckDB")
    if uplot := os.environ.get("UPLOT_DIR"):
        owners[(Path(uplot) / "LICENSE").read_text().strip()].append("uPlot")
    for text, titles in owners.items():
        print(f"\n{'=' * 78}\n{', '.join(titles)}\n\n{text}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        print_notices(linked_crates(metadata(), sys.argv[1]))
    except subprocess.CalledProcessError as error:
        sys.exit(f"third_party.py: {' '.join(error.cmd)} failed")
    except (OSError, ValueError) as error:
        sys.exit(f"third_party.py: {error}")
