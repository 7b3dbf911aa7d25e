#!/usr/bin/env python3
"""Compare recorded stacks of python_calls.py with the calls that the runtime has noted.

Usage: python_check.py CALLS FOLDED.  FOLDED was written by stackfold --annotate.  Prints a line for each number,
and on standard error each stack with a caller that the runtime does not know.
"""
import collections
import re
import sys

# A part of the program, and what must be in its stacks.
PARTS = [("shares", "Shares.fifty"), ("shares", "Shares.thirty"), ("shares", "Shares.twenty"), ("shares", "deflate"),
         ("recursion", "5001 deep"), ("sorts", "qsort"), ("sorts", "by_value"), ("generates", "generate"),
         ("awaits", "inner"), ("catches", "throws"), ("catches", "handles"), ("executes", "made"),
         ("forks", "in_child"), ("Thread.run", "in_thread.<locals>.<lambda>"), ("enters", "inside")]
# Native code calls other functions in a new interpreter and in a new process.
CHECKED = {"enters": r"inside", "forks": r"in_child|spin"}
UNREADABLE = "[python: unreadable]"


def read_stacks(path):
    """Yields the frames of each stack, its functions of Python, and its weight."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.startswith("# "):
                stack, count = line.rsplit(" ", 1)
                frames = stack.split(";")
                yield frames, [frame[:-4] for frame in frames if frame.endswith("_[s]")], int(count)


def has_wrong_caller(part, functions, calls):
    return any(pair not in calls and UNREADABLE not in pair and re.match(CHECKED.get(part, ""), pair[1])
               for pair in zip(functions, functions[1:]))


with open(sys.argv[1], encoding="utf-8") as noted:
    known = {tuple(call.rstrip("\n").split(";")) for call in noted}
weight = collections.Counter()
for frames, functions, count in read_stacks(sys.argv[2]):
    weight["all"] += count
    weight["unreadable"] += count * (UNREADABLE in functions)
    weight["rooted"] += count * (functions[:1] in (["<module>"], ["Thread._bootstrap"]))
    part = next((part for part, _ in PARTS if part in functions), None)
    if part is None:
        continue
    found = {*functions, *(name for name in ("deflate", "qsort") for frame in frames if frame.startswith(name))}
    if functions.count("deep") == 5001:
        found.add("5001 deep")
    weight[part] += count
    weight.update({(part, name): count for name in found})
    if has_wrong_caller(part, functions, known):
        weight["wrong"] += count
        print(";".join(frames), file=sys.stderr)
print(weight["all"], "samples")
print(weight["wrong"], "wrong callers")
for name in "unreadable", "rooted":
    print(f"{100 * weight[name] / max(weight['all'], 1):.1f} {name}")
for part, name in PARTS:
    print(f"{100 * weight[part, name] / max(weight[part], 1):.1f} {part} {name}")
