#!/usr/bin/env python3
"""Compare the call chains of a sample stream with those that perf script printed for the same samples.

usage: compare_chains.py STREAM SCRIPT [fp]    (SCRIPT: perf script --no-inline --ns -F tid,time,ip,dso)
fp: the kernel recorded perf's chains; perf did not unwind them from copies of the stack

It compares addresses, not names: each user frame is (file, offset in the file).  perf 6.12 prints the address in the
process instead of the offset, so our offset or our address may match.  It prints how many samples are
    equal          frame by frame
    longer         ours continues where perf's ends
    shorter        ours ends where perf's continues
    contradictory  the two have different frames at the same place
    unmatched      in one of the two only
and up to three examples of shorter and contradictory ones.

These known differences do not count:
  - In a stream, every user frame after the first is a return address, or an interrupted address plus 1.  perf prints
    a return address that it found itself minus 1, and an interrupted address unchanged.  So the comparison subtracts 1
    from ours, except in chains of the kernel.
  - perf ends a stack that it cannot follow with a frame that is not code: one without a file ("[unknown]"), such as
    ffffffffffffffff, or one in data ("[heap]", "[stack]").  The comparison drops these frames.  The kernel reads return
    addresses wherever rbp points.  So in its chains the comparison also drops our frames outside of all files'
    mappings, and perf's frames in anonymous mappings.
perf stops at 127 frames; ours is longer in that case.

All samples are read as samples of the first event; perf_event_open(2) gives the order of their fields.
"""
import collections
import struct
import sys

MMAP, SAMPLE, MMAP2, HEADER_ATTR = 1, 9, 10, 64
# PERF_SAMPLE_*
IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, IDENTIFIER = (1 << bit for bit in (*range(10), 16))
BEFORE_CHAIN = [IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD]  # in this order, 8 bytes each
CONTEXT_KERNEL, CONTEXT_USER = 2**64 - 128, 2**64 - 512
FIRST_CONTEXT = 2**64 - 4095  # values from here on are marks in a chain, not addresses


def records(stream):
    """(type, body) of each record."""
    if stream[:8] != b'PERFILE2' or struct.unpack_from('<Q', stream, 8)[0] != 16:
        sys.exit('compare_chains: not a stream')
    at = 16
    while at + 8 <= len(stream):
        kind, _, size = struct.unpack_from('<IHH', stream, at)
        if size < 8 or at + size > len(stream):
            sys.exit(f'compare_chains: damaged at byte {at}')
        yield kind, stream[at + 8:at + size]
        at += size


def cstring(data):
    return data.split(b'\0', 1)[0].decode(errors='replace')


def mapping(kind, body):
    """pid, (start, end, file offset of start, file) of an MMAP or MMAP2 record."""
    pid, _, start, length, offset = struct.unpack_from('<IIQQQ', body)
    return pid, (start, start + length, offset, cstring(body[64 if kind == MMAP2 else 32:]))


def bytes_of_read(read_format, body):
    """The size of the values of PERF_SAMPLE_READ at the start of body."""
    times, per_value = bin(read_format & 3).count('1'), 1 + bin(read_format & 0x14).count('1')
    if not read_format & 8:  # PERF_FORMAT_GROUP
        return 8 * (times + per_value)
    return 8 * (1 + times + struct.unpack_from('<Q', body)[0] * per_value)


def user_chain(sample_type, read_format, body):
    """The pid, tid, time and user addresses of a sample."""
    fields, at = {}, 0
    for bit in BEFORE_CHAIN:
        if sample_type & bit:
            fields[bit] = body[at:at + 8]
            at += 8
    if sample_type & READ:
        at += bytes_of_read(read_format, body[at:])
    count, = struct.unpack_from('<Q', body, at)
    chain, is_user = [], False
    for address in struct.unpack_from(f'<{count}Q', body, at + 8):
        if address >= FIRST_CONTEXT:
            if address in (CONTEXT_KERNEL, CONTEXT_USER):
                is_user = address == CONTEXT_USER
        elif is_user:
            chain.append(address)
    pid, tid = struct.unpack('<II', fields[TID])
    return pid, tid, struct.unpack('<Q', fields[TIME])[0], chain


def place(maps, address):
    for start, end, offset, name in reversed(maps):  # the newest first
        if start <= address < end:
            return name, (address - start + offset, address)
    return '?', (address, address)


def read_stream(path, is_exact):
    """(tid, time): the chains of these samples, each a list of (file, (offset, address))."""
    maps, chains, sample_type = collections.defaultdict(list), collections.defaultdict(list), None
    with open(path, 'rb') as file:
        stream = file.read()
    for kind, body in records(stream):
        if kind == HEADER_ATTR and sample_type is None:
            sample_type, = struct.unpack_from('<Q', body, 24)
            read_format, = struct.unpack_from('<Q', body, 32)
            if sample_type & (TID | TIME | CALLCHAIN) != TID | TIME | CALLCHAIN:
                sys.exit(f'compare_chains: sample type {sample_type:#x}: not one with tid, time and call chain')
        elif kind in (MMAP, MMAP2):
            pid, entry = mapping(kind, body)
            if not entry[3].startswith(('//anon', '[stack')):
                maps[pid].append(entry)
        elif kind == SAMPLE:
            pid, tid, time, chain = user_chain(sample_type, read_format, body)
            exact = chain if is_exact else chain[:1] + [address - 1 for address in chain[1:]]
            places = [place(maps[pid], address) for address in exact]
            chains[tid, time].append([at for at in places if at[0] != '?'] if is_exact else places)
    return chains


def read_script(path, is_exact):
    """The same for the text of perf script; each frame is a (file, offset or address)."""
    chains, chain = collections.defaultdict(list), None
    with open(path, encoding='utf-8', errors='replace') as file:
        for line in file:
            if not line.strip():
                continue
            if not line.startswith('\t'):
                tid, time = line.split()
                seconds, _, nanoseconds = time.rstrip(':').partition('.')
                chain = []
                chains[int(tid), int(seconds) * 10**9 + int(nanoseconds)].append(chain)
                continue
            frame, _, name = line.strip().rpartition(' (')
            address = frame.split()[0]  # a perf that reads a pipe prints names although -F does not ask for them
            if is_exact and name == '//anon)':
                continue
            if name == '[vdso])' or not name.startswith('[') and not name.endswith('.ko)'):
                chain.append((name[:-1], int(address, 16)))
    return chains


def is_same(our, perfs):
    return our[0] == perfs[0] and perfs[1] in our[1]


def verdict(ours, perfs):
    common = min(len(ours), len(perfs))
    if not all(map(is_same, ours, perfs)):
        return 'contradictory'
    return 'equal' if len(ours) == len(perfs) else 'longer' if len(ours) > common else 'shorter'


def show(kind, key, ours, perfs):
    print(f'{kind}: tid {key[0]} at {key[1]} ns: ours {len(ours)} frames, perf {len(perfs)}')
    differs = next((i for i, (a, b) in enumerate(zip(ours, perfs)) if not is_same(a, b)), min(len(ours), len(perfs)))
    for label, chain in ('ours', [(name, offset) for name, (offset, _) in ours]), ('perf', perfs):
        frames = ' '.join(f'{name.rsplit("/", 1)[-1]}+{offset:x}' for name, offset in chain[max(0, differs - 2):differs + 3])
        print(f'  {label} from frame {max(0, differs - 2)}: {frames}')


def main():
    is_exact = sys.argv[3:] == ['fp']
    ours, perfs = read_stream(sys.argv[1], is_exact), read_script(sys.argv[2], is_exact)
    counts, examples = collections.Counter(), collections.Counter()
    for key in sorted(ours.keys() | perfs.keys()):
        mine, theirs = ours.get(key, []), perfs.get(key, [])
        counts['unmatched'] += abs(len(mine) - len(theirs))
        for a, b in zip(mine, theirs):
            kind = verdict(a, b)
            counts[kind] += 1
            examples[kind] += 1
            if kind in ('contradictory', 'shorter') and examples[kind] <= 3:
                show(kind, key, a, b)
    print(' '.join(f'{kind} {counts[kind]}' for kind in ('equal', 'longer', 'shorter', 'contradictory', 'unmatched')))


main()
