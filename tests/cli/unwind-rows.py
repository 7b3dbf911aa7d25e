#!/usr/bin/env python3
"""Every row of the machine's libraries, and every rule made from the rows, agrees with readelf.

Usage: unwind-rows.py DUMP_ROWS FILE... [--all FILE...]

A FILE may be a pattern; the last matching file is used.  Files after --all are checked only if PE_ALL is set.
"""
import glob
import os
import re
import subprocess
import sys

REGISTERS = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "ra"} | {f"r{i}" for i in range(8, 16)}


def lines_of(*command, may_warn=False):
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if may_warn else None,
                          text=True) as process:
        yield from process.stdout
    if process.returncode != 0 and not may_warn:
        sys.exit(f"{' '.join(command)}: status {process.returncode}")


def merged(rows):
    """Returns (location, row) pairs: the last of several rows at one location, the first of equal neighbours."""
    result = []
    for location, row in rows:
        if result and result[-1][0] == location:
            result.pop()
        if not result or result[-1][1] != row:
            result.append((location, row))
    return result


def readelf_functions(file):
    """Returns {(start, end): [(location, row)]}.  readelf fails for files whose debug file is not installed."""
    functions, cies, names, rows, cie_rows = {}, {}, [], None, None
    entry = re.compile(r"([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ (CIE|FDE)(?: cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+))?")
    pending = []
    for line in lines_of("readelf", "--debug-dump=frames-interp", file, may_warn=True):
        words = re.sub(r"\br\d+ \((\w+)\)", r"\1", line).split()  # registers: "r1 (rdx)"
        found = entry.match(line)
        if found and found[2] == "CIE":
            rows = cies[found[1]] = []
        elif found:
            rows = []
            pending.append((int(found[4], 16), int(found[5], 16), cies[found[3]], rows))
        elif words and words[0] == "LOC":
            names = words[2:]
        elif len(words) > 1 and rows is not None and len(words[0]) == 16:
            saved = " ".join(f"{name}={where}" for name, where in zip(names, words[2:])
                             if name in REGISTERS and where not in "us")
            # An undefined return address ends the stack.  This is the only "u" with a meaning.
            end = dict(zip(names, words[2:])).get("ra") == "u"
            rows.append((int(words[0], 16), f"{words[1]} {saved}".strip(), end))
    for start, end, cie_rows, rows in pending:
        if start == end:
            continue
        rows = rows or [(start, *cie_rows[0][1:])]
        functions[start, end] = merged([(at, (row, ends)) for at, row, ends in rows if at < end])
    return functions


def our_functions(dump_rows, file):
    functions, rows = {}, None
    for line in lines_of(dump_rows, file):
        if ".." in line:
            start, end = (int(number, 16) for number in line.split(".."))
            rows = functions[start, end] = []
        elif line.startswith("damaged"):
            sys.exit(f"{file}: damaged program at {start:x}")
        else:
            words, rule = line.rstrip("\n").split(" | ")
            location, row = words.split(" ", 1)
            rows.append((int(location, 16), (row, rule)))
    return functions


def rule_for(row, ends):
    """Returns the set of rules that we may make from readelf's row."""
    cfa, *saved = row.split()
    saved = dict(word.split("=") for word in saved)
    if ends:
        return {"end"}
    if cfa == "exp":
        return {"general"} | ({"plt 10", "plt 11"} if "rbp" not in saved else {"realigned"})
    fits = re.fullmatch(r"(rsp|rbp)\+(\d+)", cfa)
    rbp = re.fullmatch(r"c-(\d+)", saved.get("rbp", "c-0"))
    # A rule has 16 bits for the CFA's offset, in words.
    if not fits or int(fits[2]) % 8 or int(fits[2]) >= 8 << 16 or not rbp or saved.get("ra") != "c-8" or "rsp" in saved:
        return {"general"}
    return {f"cfa={cfa}" + (f" rbp=cfa-{rbp[1]}" if int(rbp[1]) else "")}


def compare(dump_rows, file):
    theirs, ours = readelf_functions(file), our_functions(dump_rows, file)
    if theirs.keys() != ours.keys():
        sys.exit(f"{file}: other functions: {list(theirs.keys() ^ ours.keys())[:5]}")
    count, special = 0, 0
    for function, their_rows in theirs.items():
        our_rows = merged([(at, row) for at, (row, _) in ours[function]])
        rows = merged([(at, row) for at, (row, _) in their_rows])
        if our_rows != rows:
            sys.exit(f"{file}: {function[0]:x}:\n readelf {rows}\n ours    {our_rows}")
        for at, (_, rule) in ours[function]:
            their_row = [row for location, row in their_rows if location <= at][-1]
            allowed = rule_for(*their_row)
            kind = "realigned" if rule.startswith("cfa=*") else rule
            if kind not in allowed:
                sys.exit(f"{file}: {at:x}: rule '{rule}' for row {their_row}, expected {allowed}")
            special += kind in ("general", "realigned", "end") or kind.startswith("plt")
        count += len(rows)
    print(f"{file}: {len(theirs)} functions, {count} rows, {special} not by rsp or rbp")
    return count


dump, *files = sys.argv[1:]
if "--all" in files:
    at = files.index("--all")
    files[at:] = files[at + 1:] if "PE_ALL" in os.environ else []
found = [sorted(glob.glob(file))[-1:] for file in files]
if not all(found):
    sys.exit(f"not installed: {[file for file, match in zip(files, found) if not match]}")
sys.exit(0 if all(compare(dump, file) for file, in found) else "no rows")
