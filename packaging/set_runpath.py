#!/usr/bin/env python3
"""Replaces the folders in which a Linux program looks for its libraries.

    set_runpath.py PROGRAM FOLDERS

The program is changed in place: the new text is written over the old one, so it must not be
longer. This is what chrpath does; it needs no tool that a build machine may lack.
"""

import struct
import sys
from pathlib import Path

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NULL, DT_STRTAB, DT_RPATH, DT_RUNPATH = 0, 5, 15, 29


def find_runpath(program):
    """The offset in the file, and the text, of an ELF program's RUNPATH or RPATH."""
    if program[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    segments = [struct.unpack_from("<IIQQQQ", program, table + i * size) for i in range(count)]
    # kind, flags, offset, virtual address, physical address, size in the file
    dynamic = next((s for s in segments if s[0] == PT_DYNAMIC), None)
    if dynamic is None:
        raise ValueError("not dynamically linked")
    entries = {}
    for offset in range(dynamic[2], dynamic[2] + dynamic[5], 16):
        tag, value = struct.unpack_from("<QQ", program, offset)
        if tag == DT_NULL:
            break
        entries[tag] = value
    index = entries.get(DT_RUNPATH, entries.get(DT_RPATH))
    if index is None:
        raise ValueError("it has neither RUNPATH nor RPATH")
    strings = entries[DT_STRTAB]
    load = next(s for s in segments if s[0] == PT_LOAD and s[3] <= strings < s[3] + s[5])
    start = strings - load[3] + load[2] + index
    return start, program[start : program.index(b"\0", start)]


def set_runpath(path, folders):
    """Writes the new text, and zeros over what is left of the old one."""
    program = path.read_bytes()
    start, old = find_runpath(program)
    new = folders.encode()
    if len(new) > len(old):
        raise ValueError(f"no room for {folders!r} in the place of {old.decode()!r}; link the program again")
    with path.open("r+b") as file:
        file.seek(start)
        file.write(new.ljust(len(old), b"\0"))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        set_runpath(Path(sys.argv[1]), sys.argv[2])
    except (OSError, ValueError) as error:
        sys.exit(f"set_runpath.py: {sys.argv[1]}: {error}")
