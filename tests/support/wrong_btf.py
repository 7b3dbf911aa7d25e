#!/usr/bin/env python3
# Copies a kernel's BTF and moves one member of a struct far beyond the struct's end.  Programs that
# are relocated with this BTF access that place, and the kernel's verifier rejects them.
# Usage: wrong_btf.py FROM TO STRUCT MEMBER
# Layout: Documentation/bpf/btf.rst.  SPDX-License-Identifier: MIT
import struct
import sys

WORDS_BEHIND = {1: lambda n: 1, 3: lambda n: 3, 4: lambda n: 3 * n, 5: lambda n: 3 * n, 6: lambda n: 2 * n,
                13: lambda n: 2 * n, 14: lambda n: 1, 15: lambda n: 3 * n, 17: lambda n: 1, 19: lambda n: 3 * n}
STRUCT = 4


def main():
    source, target, wanted_struct, wanted_member = sys.argv[1:]
    with open(source, 'rb') as file:
        btf = bytearray(file.read())
    header, type_off, type_len, str_off, _ = struct.unpack_from('<IIIII', btf, 4)
    strings = header + str_off

    def name(offset):
        start = strings + offset
        return btf[start:btf.index(0, start)].decode()

    at, end, moved = header + type_off, header + type_off + type_len, 0
    while at < end:
        name_off, info, _ = struct.unpack_from('<III', btf, at)
        kind, count = info >> 24 & 0x1f, info & 0xffff
        at += 12
        if kind == STRUCT and name(name_off) == wanted_struct:
            for member in range(at, at + 12 * count, 12):
                if name(struct.unpack_from('<I', btf, member)[0]) == wanted_member:
                    struct.pack_into('<I', btf, member + 8, 8 * 0x7f00)
                    moved += 1
        at += 4 * WORDS_BEHIND.get(kind, lambda n: 0)(count)
    with open(target, 'wb') as file:
        file.write(btf)
    return 0 if moved else 1


sys.exit(main())
