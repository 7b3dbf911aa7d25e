#!/usr/bin/env python3
"""Functions inlined at an address, and the lines, are the same as those of eu-addr2line or addr2line.  This is
checked for thousands of addresses of C++ programs with debug information.

eu-addr2line does not see functions that are inlined into functions of local classes (lambdas), or a destructor
that is inlined into its deleting twin.  Both programs give a function without linkage name its DWARF name, without
scopes.  addr2line sometimes gives the innermost function a name from the symbol table, or the file of that symbol.
These differences are ignored.

Usage: symbolize-inlines.py PE-SYMBOLIZE PROGRAM...
"""
import random
import re
import struct
import subprocess
import sys

MAX_NAME_BYTES = 16 * 1024  # libcommon's kMaxDemangledBytes
ADDRESSES = 2_000  # eu-addr2line takes some ten milliseconds for each
SAMPLE_TYPE = 1 | 2 | 4 | 0x20 | 1 << 16  # ip, tid, time, call chain, identifier
ATTR_BYTES = 136
PERF_CONTEXT_USER = 2**64 - 512
SYMBOL, LOCATION = 0x50450001, 0x50450002
LOAD_AT = 0x555500000000


def record(kind, misc, body):
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<IHH", kind, misc, len(body) + 8) + body


def code_segments(program):
    """Returns (svma, file offset, bytes) of each executable segment."""
    text = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"LOAD\s+(0x\w+) (0x\w+) 0x\w+ (0x\w+) 0x\w+ R E", text)
    return [(int(svma, 16), int(offset, 16), int(size, 16)) for offset, svma, size in rows]


def stream(program, segments, addresses):
    """Returns a recording of one process that has the program mapped, with each address in a sample."""
    attr = struct.pack("<IIQQQQQ", 1, ATTR_BYTES, 0, 1, SAMPLE_TYPE, 0, 1 << 18)
    out = b"PERFILE2" + struct.pack("<Q", 16) + record(64, 0, attr + b"\0" * (ATTR_BYTES - len(attr)))
    trailer = struct.pack("<IIQQ", 1, 1, 1, 7)
    for svma, offset, size in segments:
        start = (svma + LOAD_AT) & ~0xFFF
        end = (svma + LOAD_AT + size + 0xFFF) & ~0xFFF
        path = program.encode() + b"\0"
        path += b"\0" * (-len(path) % 8)
        body = struct.pack("<IIQQQIIQQII", 1, 1, start, end - start, offset & ~0xFFF, 0, 0, 0, 0, 5, 2)
        out += record(10, 2, body + path + trailer)
    for address in addresses:
        out += record(9, 2, struct.pack("<QQIIQQQQ", 7, address, 1, 1, 2, 2, PERF_CONTEXT_USER, address + LOAD_AT))
    return out + record(68, 0, b"")


def names_in(data):
    """Returns {address: [(name, is inlined, file, line)]}, innermost first."""
    symbols, places, at = {}, {}, 16
    while at < len(data):
        kind, _, size = struct.unpack_from("<IHH", data, at)
        body = data[at + 8 : at + size]
        if kind == SYMBOL:
            number, flags, line = struct.unpack_from("<QII", body)
            name, _, file = body[16:].split(b"\0")[:3]
            symbols[number] = (name.decode(), bool(flags & 4), file.decode().rsplit("/", 1)[-1], line)
        elif kind == LOCATION:
            _, count, address = struct.unpack_from("<IIQ", body)
            places[address - LOAD_AT] = [symbols[i] for i in struct.unpack_from(f"<{count}Q", body, 16)]
        at += size
    return places


def told_by(witness, program, addresses):
    """Returns the same from eu-addr2line or addr2line: {address: [(mangled name, file, line)]}.

    eu-addr2line -i exits with 1 if an address has no debug information.  So this requires an answer for every
    address instead of status 0."""
    text = subprocess.run([witness, "-a", "-i", "-f", "-e", program], text=True, capture_output=True, check=False,
                          input="".join(f"{a:#x}\n" for a in addresses)).stdout
    places, current = {}, None
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("0x"):
            current = places.setdefault(int(line, 16), [])
            continue
        place = re.fullmatch(r"(.*?):(\d+)(?::\d+)?", next(lines).split(" (discriminator")[0])
        file, number = place.groups() if place else ("??", "0")
        current.append((line.split(" inlined at ")[0], file.rsplit("/", 1)[-1], int(number)))
    assert len(places) == len(set(addresses)), f"{witness}: {len(places)} of {len(set(addresses))} addresses"
    return places


def demangled(names):
    """Returns names without parameters, like ours."""
    text = subprocess.run(["c++filt", "-p"], input="\n".join(names), text=True, capture_output=True, check=True).stdout
    return dict(zip(names, text.splitlines()))


def is_same(our, their):
    """Compares name, file and line.

    Our name also has the scopes of a function that is local to a file.  It stays mangled if it would be too long."""
    is_too_long = our[0].startswith("_Z") and len(their[0]) > MAX_NAME_BYTES
    return our[1:] == their[1:] and (our[0] == their[0] or our[0].endswith("::" + their[0]) or is_too_long)


def compare(symbolize, program):
    segments = code_segments(program)
    random.seed(1)
    svma, _, size = segments[-1]
    addresses = sorted({svma + random.randrange(size) for _ in range(ADDRESSES)})
    run = subprocess.run([symbolize, "--lines", "-q"], input=stream(program, segments, addresses), capture_output=True, check=True)
    ours, theirs = names_in(run.stdout), told_by("eu-addr2line", program, addresses)
    known, inlined, differ = 0, 0, []
    plain = demangled(sorted({name for frames in theirs.values() for name, _, _ in frames}))
    for address in addresses:
        eu = [(plain[name], *place) for name, *place in theirs[address]]
        if eu[0][0] == "??" or eu[0][2] == 0:
            continue  # padding and PLT stubs; instructions without a line
        known += 1
        inlined += len(ours[address]) > 1
        our = [(name, *place) for name, _, *place in ours[address]]
        flags = [is_inlined for _, is_inlined, _, _ in ours[address]]
        if flags != [True] * (len(flags) - 1) + [False]:
            differ.append((address, our, flags))
        elif not all(map(is_same, our[:-1], eu[:-1])) or len(our) != len(eu) or our[-1][1:] != eu[-1][1:]:
            differ.append((address, our, eu))
    return known, inlined, not_as_addr2line(program, differ)


def not_as_addr2line(program, differ):
    """Returns those of (address, ours, eu-addr2line's) where addr2line does not agree with us either."""
    told = told_by("addr2line", program, [address for address, _, _ in differ])
    plain = demangled(sorted({name for frames in told.values() for name, _, _ in frames}))
    left = []
    for address, our, eu in differ:
        their = [(plain[name], *place) for name, *place in told[address]]
        if not all(map(is_same, our[1:-1], their[1:-1])) or [frame[2] for frame in our] != [frame[2] for frame in their]:
            left.append((hex(address), our, eu, their))
    return left


def main():
    symbolize, *programs = sys.argv[1:]
    failed = 0
    for program in programs:
        known, inlined, differ = compare(symbolize, program)
        print(f"{program}: {known} addresses with lines, {inlined} with inlined functions, {len(differ)} differ")
        for address, our, *theirs in differ[:5]:
            print(f"  {address}\n    ours         {our}\n    eu-addr2line {theirs[0]}\n    addr2line    {theirs[1]}")
        failed |= known < 100 or inlined < 10 or len(differ) > 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
