#!/usr/bin/env python3
"""The seeds of a fuzz target, one archive a target as OSS-Fuzz takes them: tests/data/fuzz/TARGET.zip.

Usage: seeds.py unpack ARCHIVE FOLDER
       seeds.py pack FOLDER ARCHIVE
       seeds.py add ARCHIVE FILE...        (under their own names, in place of seeds of the same names)
       seeds.py replay PROGRAM DATA        (PROGRAM gets DATA's seeds, unpacked, as tests/fuzz/replay.cpp wants them;
                                            of those with names by a fuzzer a fifth, or all with PE_ALL)

The same seeds give the same bytes: sorted, without dates, and not compressed, so that git keeps of a
new version what has changed.
SPDX-License-Identifier: MIT
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile


def write(archive, seeds):
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as out:
        for name in sorted(seeds):
            entry = zipfile.ZipInfo(name)  # of 1980, the first date that the format has
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            out.writestr(entry, seeds[name])


def read(archive):
    with zipfile.ZipFile(archive) as seeds:
        return {name: seeds.read(name) for name in seeds.namelist()}


def files_of(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir() if path.is_file()}


def unpack(archive, folder, is_wanted=lambda name: True):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, seed in read(archive).items():
        if "/" in name or name in (".", ".."):
            sys.exit(f"seeds.py: {archive}: not a name of a seed: {name}")
        if is_wanted(name):
            (folder / name).write_bytes(seed)


def add(archive, files):
    seeds = read(archive) if pathlib.Path(archive).exists() else {}
    write(archive, seeds | {pathlib.Path(file).name: pathlib.Path(file).read_bytes() for file in files})


def is_in_slice(name):
    """Does scripts/test choose the seed?  It chooses those that a person named, and a fifth of the fuzzers'."""
    is_named = not re.fullmatch("[0-9a-f]{40}", name)
    return is_named or "PE_ALL" in os.environ or int(name, 16) % 5 == int(os.environ.get("PE_SLICE", "0"))


def replay(program, data):
    data = pathlib.Path(data).resolve()
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        (work / "fuzz").mkdir()
        for archive in sorted((data / "fuzz").iterdir()):
            unpack(archive, work / "fuzz" / archive.stem, is_in_slice)
        (work / "stackfold").symlink_to(data / "stackfold")
        return subprocess.run([program, work], check=False).returncode


def main(arguments):
    match arguments:
        case ["unpack", archive, folder]:
            unpack(archive, folder)
        case ["pack", folder, archive]:
            write(archive, files_of(folder))
        case ["add", archive, *files] if files:
            add(archive, files)
        case ["replay", program, data]:
            return replay(program, data)
        case _:
            sys.exit(__doc__)
    return 0


sys.exit(main(sys.argv[1:]))
