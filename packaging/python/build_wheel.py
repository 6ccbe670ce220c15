#!/usr/bin/env python3
"""Writes the Python wheel of Encore from the unpacked archive; prints the wheel's name.

A wheel is a zip file of a known layout (https://packaging.python.org/specifications/). Nothing is
compiled here, so this needs no build tool from a registry. `packaging/build` calls it.
"""

import argparse
import base64
import hashlib
import os
import platform
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
DISTRIBUTION = "encore_rating"

METADATA = """\
Metadata-Version: 2.1
Name: encore-rating
Version: {version}
Summary: Rates data stores; its results as DuckDB relations and data frames
License: Apache-2.0
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Database
Classifier: Topic :: System :: Benchmark
Requires-Python: >=3.10
Requires-Dist: duckdb>=1.4
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"
Provides-Extra: polars
Requires-Dist: polars; extra == "polars"
Requires-Dist: pyarrow; extra == "polars"
Provides-Extra: notebook
Requires-Dist: pandas; extra == "notebook"
Requires-Dist: matplotlib; extra == "notebook"
Requires-Dist: notebook; extra == "notebook"
Description-Content-Type: text/markdown

{description}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: encore
Root-Is-Purelib: false
Tag: {tag}
"""

ENTRY_POINTS = """\
[console_scripts]
encore = encore.__main__:main
"""


class Wheel:
    """A wheel that is being written."""

    def __init__(self, path, time_s):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        # A zip file cannot say a time before 1980.
        self.date = max(time.gmtime(time_s)[:6], (1980, 1, 1, 0, 0, 0))
        self.record = []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, self.date)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o100000 | mode) << 16
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def add_file(self, name, path):
        self.add(name, path.read_bytes(), path.stat().st_mode & 0o777)

    def close(self, info_folder):
        name = f"{info_folder}/RECORD"
        self.record.append(f"{name},,")
        text = "\n".join(self.record) + "\n"
        self.record = []
        self.add(name, text.encode())
        self.zip.close()


def files_of(folder, *patterns):
    return sorted(path for pattern in patterns for path in folder.glob(pattern) if path.is_file())


def write(arguments):
    glibc = arguments.glibc.replace(".", "_")
    tag = f"py3-none-manylinux_{glibc}_{platform.machine()}"
    name = f"{DISTRIBUTION}-{arguments.version}-{tag}.whl"
    wheel = Wheel(arguments.output / name, int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))

    for path in files_of(HERE / "encore", "*.py", "py.typed"):
        wheel.add_file(f"encore/{path.name}", path)
    program = arguments.program
    for path in files_of(program, "bin/encore", "lib/*", "traces/*.toml"):
        wheel.add_file(f"encore/program/{path.relative_to(program)}", path)

    info = f"{DISTRIBUTION}-{arguments.version}.dist-info"
    description = (HERE / "README.md").read_text()
    wheel.add(f"{info}/METADATA", METADATA.format(version=arguments.version, description=description).encode())
    wheel.add(f"{info}/WHEEL", WHEEL.format(tag=tag).encode())
    wheel.add(f"{info}/entry_points.txt", ENTRY_POINTS.encode())
    for path in files_of(program, "LICENSE", "THIRD-PARTY.txt"):
        wheel.add_file(f"{info}/licenses/{path.name}", path)
    wheel.close(info)
    return name


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True, help="version of Encore")
    parser.add_argument("--glibc", required=True, help="oldest glibc that the program runs with, such as 2.34")
    parser.add_argument("--program", required=True, type=Path, help="folder of the unpacked archive")
    parser.add_argument("--output", required=True, type=Path, help="folder that the wheel is written to")
    return parser.parse_args()


if __name__ == "__main__":
    print(write(arguments()))
