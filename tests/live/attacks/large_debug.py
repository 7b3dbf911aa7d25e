"""Copies a program, and gives its debug information that many bytes, in a hole of the file.

usage: large_debug.py PROGRAM COPY BYTES
"""
import os
import struct
import sys

PAGE, HEADER = 4096, 64
program, copy, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(program, 'rb') as file:
    data = bytearray(file.read())
table, = struct.unpack_from('<Q', data, 40)
count, names = struct.unpack_from('<HH', data, 60)
texts, = struct.unpack_from('<Q', data, table + names * HEADER + 24)
end = (len(data) + PAGE - 1) // PAGE * PAGE
for section in range(table, table + count * HEADER, HEADER):
    name = texts + struct.unpack_from('<I', data, section)[0]
    if data[name:].startswith(b'.debug_info\0'):
        struct.pack_into('<QQ', data, section + 24, end, size)
with open(copy, 'wb') as file:
    file.write(data)
    file.truncate(end + size)
os.chmod(copy, 0o755)
