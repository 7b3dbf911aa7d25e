#!/usr/bin/env python3
"""Another user has put a link at the name of each file that a command writes.  The link leads to a disk, to a precious file, or to a
pipe that nobody reads.  Each command replaces the link by a file of ours.

The commands come from the tables of their options: an option with a file or folder that is missing below fails this test.

Usage: planted_outputs.py, with PE_TOOLS, PE_SCRIPTS and PE_WORKLOAD in the environment.
"""
import importlib
import itertools
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile

TOOLS, SCRIPTS, WORKLOAD = (os.environ[name] for name in ("PE_TOOLS", "PE_SCRIPTS", "PE_WORKLOAD"))
sys.path.insert(0, os.path.join(SCRIPTS, "../share/stackpipe/python"))
PROGRAM = ["--", WORKLOAD, "shares", "0.05"]
SAMPLED = ["-e", "cpu-clock", "-F", "997"]

# Each option that writes: a command for it, and the names of its files.
WRITES = {
    ("flamediff", "output"): [(["flamediff", "--period", "1", "-o", "out", "n.folded", "n.folded"], ["out"])],
    ("flamesvg", "output"): [(["flamesvg", "-o", "out", "n.folded"], ["out"])],
    ("malloctrace", "output"): [(["malloctrace", "-q", "-o", "out", "--", "true"], ["out"])],
    ("offcpu", "output"): [(["offcpu", "-q", "-o", "out", "--", "sleep", "0.02"], ["out"])],
    ("pe-record", "output"): [(["pe-record", "-q", *SAMPLED, "-o", "out", *PROGRAM], ["out"])],
    ("pe-symbolize", "output"): [(["pe-symbolize", "-q", "-o", "out", "r.pe"], ["out"])],
    ("stackfold", "output"): [(["stackfold", "-o", "out", "r.pe"], ["out"])] + [
        (["stackfold", "--to", form, "-o", "out", "r.pe"], ["out"]) for form in ("pprof", "speedscope", "firefox")],
    ("stacktop", "output"): [(["stacktop", "-o", "out", "n.folded"], ["out"])],
    ("stackpipe record", "output"): [(["stackpipe", "record", *SAMPLED, "-o", f"out{end}", *PROGRAM], [f"out{end}"])
                                     for end in (".svg", ".pe")],
    ("stackpipe waits", "output"): [(["stackpipe", "waits", "-o", "out.svg", *PROGRAM], ["out.svg"])],
    ("stackpipe waits", "keep"): [(["stackpipe", "waits", "--keep", "kept", "-o", "out.svg", *PROGRAM],
                                   ["kept/waits.pe", "kept/stacks.folded"])],
    ("stackpipe watch", "metrics"): [(["sh", "-c", '"$0" shares 2 & exec "$1" watch -p $! --name planted --metrics out', WORKLOAD,
                                       os.path.join(SCRIPTS, "stackpipe")], ["out"])],
    ("stackpipe watch", "output"): [(["stackpipe", "watch", "--dump", "planted", "--last", "1m", "-o", "out.svg"], ["out.svg"])],
    ("stackpipe heap", "output"): [(["stackpipe", "heap", "-o", "out.svg", "--", "ls", "/"], ["out.svg", "out-leaks.svg", "out-allocations.svg"])],
    ("stackpipe draw", "output"): [(["stackpipe", "draw", "-o", "out.svg", "n.folded"], ["out.svg"]),
                                   (["stackpipe", "draw", "-o", "out.pe", "-o", "out.html", "r.pe"], ["out.pe", "out.html"])],
    ("stackpipe diff", "output"): [(["stackpipe", "diff", "-o", "out.svg", "n.folded", "n.folded"], ["out.svg"])],
    ("flamegraph", "output"): [(["flamegraph", "-o", "out.svg", *PROGRAM], ["out.svg"])],
    ("hotcold", "output"): [(["hotcold", "-o", "out.svg", *PROGRAM], ["out.svg"])],
    ("hotcold", "keep"): [(["hotcold", "--keep", "kept", "out.svg", *PROGRAM], ["kept/waits.pe"])],
    ("profile_run", "output"): [(["profile_run", "trend", "--output", "runs", "work"], ["runs/trend.svg"]),
                                (["profile_run", "flamegraph", "--output", "runs", "--run", "latest"], ["runs/2026-01-02T00-00-00Z/flame.svg"]),
                                (["profile_run", "diff", "--output", "runs", "--before", "previous"],
                                 ["runs/2026-01-02T00-00-00Z/diff-2026-01-01T00-00-00Z.svg"])],
    ("profile_run", "svg"): [(["profile_run", command, "--output", "runs", "--svg", "out.svg", *more], ["out.svg"])
                             for command, *more in (("trend", "work"), ("flamegraph",), ("diff", "--before", "previous"))],
    ("profile_run", "summary"): [(["profile_run", "ci", "--shares", "--output", "runs", "--baseline", "previous", "--fail-over", "100%", "--summary", "out"],
                                  ["out"])],
}
# These only read, or write only names that nobody can guess.  spool_test.py tests the spool.
OTHERS = {("flamesvg", "nameattr"), ("stacktop", "hints-file"), ("offcpu", "cgroup"), ("pe-record", "cgroup"), ("merge_fleet", "files-from"),
          ("merge_fleet", "ssh-config"), ("merge_fleet", "temp"), ("profile_run", "token-file"), ("profile_run", "ca-file"),
          ("profile-push", "spool"), ("profile-push", "token-file"), ("profile-push", "ca-file")}
PYTHON = {"stackpipe record": "record", "stackpipe waits": "waits", "stackpipe watch": "watch.command", "stackpipe heap": "heap", "stackpipe draw": "draw", "stackpipe diff": "diff", "stackpipe top": "top",
          "flamegraph": "flamegraph", "hotcold": "hotcold", "merge_fleet": "merge.merge_fleet", "profile_run": "runs.profile_run",
          "profile-push": "push.profile_push"}
failed = 0


def fail(text):
    global failed
    failed = 1
    print(f"FAILED: {text}")


def file_options():
    """Yields each command and option that has the name of a file or folder."""
    with open(os.path.join(TOOLS, "option_tables.json"), encoding="utf-8") as file:
        for tool in json.load(file):
            yield from ((tool["name"], option["name"]) for option in tool["options"] if option["value"] in ("FILE", "DIR", "PATH"))
    for command, module in PYTHON.items():
        for option in importlib.import_module(f"stackpipe.{module}").OPTIONS:
            if option.value in ("FILE", "DIR", "PATH"):
                yield command, option.name
    from stackpipe import front  # a new command must be in PYTHON

    for command, (module, _, _) in front.COMMANDS.items():
        if module not in ("front", "runs.commands") and module not in PYTHON.values():
            yield f"stackpipe {command}", "OPTIONS"


def run(command, check=True):
    program = next((path for folder in (SCRIPTS, TOOLS) if os.path.isfile(path := os.path.join(folder, command[0]))), command[0])
    done = subprocess.run([program, *command[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60, check=False)
    if check and done.returncode:
        fail(f"{' '.join(command)}: status {done.returncode}: {done.stderr.decode(errors='replace')}")


def prepare():
    """Makes the inputs of the commands, and what the links lead to."""
    run(["pe-record", "-q", *SAMPLED, "-o", "r.pe", *PROGRAM])
    for path, text in (("n.folded", "main;work 5\nmain;other 7\n"), ("precious", "precious")):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    for day in (1, 2):
        folder = f"runs/2026-01-0{day}T00-00-00Z"
        os.makedirs(folder)
        shutil.copy("n.folded", f"{folder}/stacks.folded")
        with open(f"{folder}/meta.json", "w", encoding="utf-8") as file:
            file.write('{"format": 1, "workload": "x", "mode": "quick", "samples": 12}')
    os.mkdir("kept")
    os.mkfifo("pipe")
    targets = ["precious", "pipe"]
    try:
        os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(7, 1_000_000))  # a loop device that nobody uses
        targets.append("disk")
    except OSError as error:
        print(f"without a block device: {error.strerror}")
    return targets


def check(command, names, target):
    for name in names:
        if os.path.lexists(name):
            os.unlink(name)
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        os.symlink(os.path.abspath(target), name)
    try:
        run(command)
    except subprocess.TimeoutExpired:
        fail(f"{' '.join(command)}: waits, with a link to {target}")
    for name in names:
        if not stat.S_ISREG(os.lstat(name).st_mode):
            fail(f"{' '.join(command)}: {name} still is a link to {target}")
    with open("precious", encoding="utf-8") as file:
        if file.read() != "precious":
            fail(f"{' '.join(command)}: wrote through a link")


known = {*WRITES, *OTHERS}
for option in file_options():
    if option not in known:
        fail(f"{option[0]} --{option[1]}: does it write?  Add it to the tables of this test")
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.environ["STATE_DIRECTORY"] = os.path.join(folder, "state")  # of the watches
    targets = itertools.cycle(prepare())
    for commands in WRITES.values():
        for arguments, files in commands:
            check(arguments, files, next(targets))
    os.chdir("/")
sys.exit(failed)
