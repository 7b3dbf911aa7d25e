"""Copies a program, and gives its symbols and their names that many bytes each, in a hole of the file.

usage: large_tables.py PROGRAM; each line of standard input is "COPY BYTES"
"""
import os
import struct
import sys

PAGE, HEADER, SYMTAB = 4096, 64, 2
with open(sys.argv[1], 'rb') as program:
    data = bytearray(program.read())
table, = struct.unpack_from('<Q', data, 40)
count, = struct.unpack_from('<H', data, 60)
end = (len(data) + PAGE - 1) // PAGE * PAGE
for line in sys.stdin:
    copy, size = line.split()[0], int(line.split()[1])
    for section in range(table, table + count * HEADER, HEADER):
        if struct.unpack_from('<I', data, section + 4)[0] != SYMTAB:
            continue
        names = table + HEADER * struct.unpack_from('<I', data, section + 40)[0]
        struct.pack_into('<QQ', data, section + 24, end, size // 24 * 24)
        struct.pack_into('<QQ', data, names + 24, end + size, size)
    with open(copy, 'wb') as file:
        file.write(data)
        file.truncate(end + 2 * size)
    os.chmod(copy, 0o755)
