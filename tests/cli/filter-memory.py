#!/usr/bin/env python3
"""The memory of filters for many different stacks.

Usage: filter-memory.py STACKFOLD

The stacks are those of one program: each shares most of its callers with another.  A limit of
addresses keeps the heap from huge pages, so the memory is the same in every run.
"""
import os
import random
import resource
import subprocess
import sys
import tempfile

STACKS = 125_000
KIB = 1024


def make_stacks():
    """Return folded lines in random order."""
    random.seed(1)
    names = [f"library::Class{i % 97}::function_number_{i}(char const*, unsigned long)" for i in range(19_000)]

    def some(count):
        return tuple(random.choices(names, k=count))
    stacks = {("program", "main") + some(18)}
    known = list(stacks)
    while len(known) < STACKS:
        parent = random.choice(known)
        kept = max(2, len(parent) - min(50, int(1.5 * random.random() ** -0.6)))
        stack = parent[:kept] + some(1 + min(5, int(random.random() ** -0.7)))
        stack += some(max(0, 20 - len(stack)))
        if stack not in stacks:
            stacks.add(stack)
            known.append(stack)
    random.shuffle(known)
    return "".join(";".join(stack) + " 1\n" for stack in known)


def peak_kib(command):
    """Return the peak of the resident memory of a command."""
    def limit_addresses():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    with open(os.devnull, "wb") as nothing:
        child = subprocess.Popen(command, stdout=nothing, preexec_fn=limit_addresses)
        _, status, usage = os.wait4(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, command
    return usage.ru_maxrss


def main():
    """Compare the peaks with those that were measured, and 30 %."""
    measured_mib = {"stackfold": 17.2}
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stacks")
        # In a process of its own: the memory of the one that starts a command counts as the command's.
        subprocess.run([sys.executable, __file__, "--make", path], check=True)
        for tool in sys.argv[1:]:
            peak = peak_kib([tool, path]) / KIB
            limit = 1.3 * measured_mib[os.path.basename(tool)]
            print(f"{os.path.basename(tool)}: {peak:.1f} MiB of at most {limit:.1f}")
            failed = failed or peak > limit
    sys.exit(1 if failed else 0)


if sys.argv[1] == "--make":
    with open(sys.argv[2], "w", encoding="ascii") as made:
        made.write(make_stacks())
else:
    main()
