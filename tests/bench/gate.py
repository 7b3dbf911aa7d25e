#!/usr/bin/env python3
"""Measures how often `stackpipe runs ci` raises a false alarm, and how often it finds a slower function.

Usage: gate.py record FOLDER RUNS BEFORE [AFTER]    BEFORE and AFTER are command lines; their runs take turns
       gate.py draw FOLDER COMPARISONS [FUNCTION]

Comparisons of five runs with five would take hours.  So `record` keeps a pool of real recordings, and `draw` compares
five of them with five others, as ci does: drawn without repetition within a comparison, with repetition between them.
Runs before are compared with each other, which must raise no alarm, and with those after, which must name FUNCTION.
Record on a busy machine.  This takes minutes, so no test runs it.
"""
import os
import random
import subprocess
import sys

RUNS = 5
GATE = ["flamediff", "--text", "--absolute", "--fail-over", "1%", "--runs"]


def record(folder, runs, *commands):
    """Records the commands in turns."""
    os.makedirs(folder)
    for number in range(int(runs)):
        for side, command in zip(("before", "after"), commands):
            stream = os.path.join(folder, "stream")
            subprocess.run(["pe-record", "-q", "-F", "997", "-o", stream, "--", *command.split()], check=True, stdout=subprocess.DEVNULL)
            with subprocess.Popen(["pe-symbolize", "-q", stream], stdout=subprocess.PIPE) as named, \
                    open(os.path.join(folder, f"{side}-{number:03}.folded"), "wb") as out:
                subprocess.run(["stackfold", "-q", "--annotate"], stdin=named.stdout, stdout=out, check=True)
            os.unlink(stream)


def alarm(before, after):
    """Returns the messages of the gate if it fails, else ""."""
    gate = subprocess.run([*GATE, *before, "--", *after], capture_output=True, text=True, errors="replace", check=False)
    if gate.returncode not in (0, 3):
        sys.exit(gate.stderr)
    sure = [line for line in gate.stdout.splitlines() if " sure " in line and "+" in line.split()[2]]
    if gate.returncode == 3 and not sure:
        sys.exit(f"status 3 without a row that grew:\n{gate.stdout}{gate.stderr}")
    return gate.stderr if gate.returncode == 3 else ""


def draw(folder, comparisons, function=""):
    """Prints the number of alarms."""
    random.seed(1)
    sides = {side: sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.startswith(side))
             for side in ("before", "after")}
    alarms = found = 0
    for _ in range(int(comparisons)):
        drawn = random.sample(sides["before"], 2 * RUNS)
        said = alarm(drawn[:RUNS], drawn[RUNS:])
        alarms += said != ""
        print(said, end="")
    print(f"equal programs: {alarms} alarms in {comparisons} comparisons, drawn from {len(sides['before'])} runs")
    if not function:
        return
    for _ in range(int(comparisons)):
        said = alarm(random.sample(sides["before"], RUNS), random.sample(sides["after"], RUNS))
        found += f"{function} grew from " in said
    print(f"{function}: found in {found} of {comparisons} comparisons, drawn from {len(sides['after'])} runs after")


if __name__ == "__main__":
    {"record": record, "draw": draw}[sys.argv[1]](*sys.argv[2:])
