#!/usr/bin/env python3
"""Writes all fuzz targets as one source: each in a namespace of its own, behind what all of them include, in a table.

Usage: make_replay.py OUTPUT TARGET_fuzz.cpp...

They share most of their headers, so that this compiles in a fraction of the time that they take one by one.
SPDX-License-Identifier: MIT
"""
import pathlib
import re
import sys


def main(output, sources):
    sources = {path.name.removesuffix('_fuzz.cpp'): path for path in map(pathlib.Path, sources)}
    includes = {line for path in sources.values() for line in re.findall(r'^#include .*', path.read_text(), re.M)}
    lines = sorted(includes) + ['#include "fuzz/replay.h"']
    for target, path in sources.items():
        lines += [f'#define LLVMFuzzerTestOneInput fuzz_{target}', f'namespace target_{target} {{',
                  f'#include "fuzz/{path.name}"', '}', '#undef LLVMFuzzerTestOneInput']
    lines += ['const std::vector<pe::testing::FuzzTarget>& pe::testing::fuzz_targets() {',
              '  static const std::vector<FuzzTarget> all{']
    lines += [f'    {{"{target}", [](const void* data, std::size_t size) {{'
              f' pe::testing::call(target_{target}::fuzz_{target}, data, size); }}}},' for target in sources]
    lines += ['  };', '  return all;', '}']
    pathlib.Path(output).write_text('\n'.join(lines) + '\n')


main(sys.argv[1], sys.argv[2:])
