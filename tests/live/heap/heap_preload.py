#!/usr/bin/env python3
"""Malloctrace's library counts exactly the allocations that programs made.

The programs report their own allocations and frees; real programs must run unchanged.
Usage: heap_preload.py HEAP_DUMP LIBRARY HEAP_PLUGIN HEAP_ALLOCATOR HEAP_NESTED HEAP_PATTERNS HEAP_STRESS HEAP_EDGES
SPDX-License-Identifier: MIT
"""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

heap_dump, library, plugin, allocator, nested, patterns, stress, edges = sys.argv[1:]
folder = pathlib.Path(tempfile.mkdtemp())
failures = 0


def check(what, holds, detail=""):
    global failures
    if not holds:
        failures += 1
        print(f"FAILED: {what} {detail}")


def pairs(line):
    words = line.split()
    return {name: int(value) if value.lstrip("-").isdigit() else value
            for name, value in zip(words[::2], words[1::2])}


def run(command, settings="", stdin=b"", libraries=library):
    """Returns the result of the command, and a list of its processes with their counts and sites."""
    out = folder / "dump"
    env = {**os.environ, "HEAP_DUMP": str(out), "HEAP_PLUGIN": plugin}
    result = subprocess.run([heap_dump, libraries, settings, *command], env=env, input=stdin, capture_output=True,
                            timeout=150)
    processes = []
    for line in out.read_text().splitlines():
        kind, rest = line.split(" ", 1)
        if kind == "process":
            processes.append({**pairs(rest), "stacks": []})
        elif kind == "site":
            processes[-1]["stacks"].append(rest.split(" "))
    return result, processes


EXACT = ("bytes", "count", "live", "live_count", "peak", "temporary", "unknown", "failed")


def compare(what, said, process, names=EXACT):
    for name in names:
        check(f"{what}: {name}", said[name] == process[name], f"{process[name]} instead of {said[name]}")
    check(f"{what}: peak of the sites", process["site_peak"] == process["peak"], process["site_peak"])
    check(f"{what}: live bytes of the sites", process["held"] == process["live"])
    check(f"{what}: nothing is lost", process["dropped"] == process["full"] == process["cut"] == 0)


def said_by(result):
    return [pairs(line) for line in result.stdout.decode().splitlines()]


for mode in ("mixed", "realloc", "failures", "signals", "deep", "killed", "exit"):
    result, processes = run([patterns, mode])
    compare(mode, said_by(result)[0], processes[0])
    check(f"{mode}: whole stacks", processes[0]["incomplete"] == 0)
    check(f"{mode}: status", result.returncode == {"killed": 137, "exit": 7}.get(mode, 0), result.returncode)
    check(f"{mode}: ended", processes[0]["ended"] == (mode != "killed"))
    if mode == "deep":
        depth = max(len(site[6].split(";")) for site in processes[0]["stacks"])
        check("deep: all frames", depth > 20000, depth)

for program, mode in ((patterns, "coroutines"), (edges, "merged_stacks"), (edges, "limit"), (edges, "locked")):
    result, processes = run([program, mode])
    check(f"{mode}: status", result.returncode == 0, result.returncode)
    compare(mode, (said_by(result) or [dict.fromkeys(EXACT)])[0], processes[0])
    if mode == "coroutines":
        check("coroutines: whole stacks", processes[0]["incomplete"] == 0, processes[0]["incomplete"])

# glibc also allocates for threads.  The error of the peak is at most 4 KiB of slack for each thread, plus the
# allocations that the eight threads have not counted yet.
PEAK_ERROR = 9 * 4096 + 8 * 5000
for mode in ("threads", "short_threads"):
    result, processes = run([patterns, mode])
    said, got = said_by(result)[0], processes[0]
    extra = sum(int(site[0]) for site in got["stacks"] if "ld-linux" in site[6])
    check(f"{mode}: bytes", got["bytes"] == said["bytes"] + extra, got["bytes"] - said["bytes"])
    check(f"{mode}: whole stacks", got["incomplete"] == 0)
    check(f"{mode}: temporary", got["temporary"] == said["temporary"])
    check(f"{mode}: unknown", got["unknown"] == said["unknown"] == 0, got["unknown"])
    check(f"{mode}: peak", said["peak"] - PEAK_ERROR <= got["peak"] <= said["peak"] + extra + PEAK_ERROR,
          f"{got['peak']} instead of {said['peak']}")

# Ten million blocks on eight threads; another thread frees a quarter of them.  glibc's own allocations are
# added.
result, processes = run([stress])
said, got = said_by(result)[0], processes[0]
extra = [site for site in got["stacks"] if "ld-linux" in site[6]]
check("stress: bytes", got["bytes"] == said["bytes"] + sum(int(site[0]) for site in extra), got["bytes"] - said["bytes"])
check("stress: count", got["count"] == said["count"] + sum(int(site[1]) for site in extra), got["count"] - said["count"])
of_stress = [site for site in got["stacks"] if site not in extra]
check("stress: held", sum(int(site[2]) for site in of_stress) == said["live"], of_stress)
check("stress: blocks held", sum(int(site[3]) for site in of_stress) == said["live_count"], of_stress)
check("stress: nothing is lost", got["unknown"] == got["dropped"] == got["full"] == got["cut"] == 0)
check("stress: whole stacks", got["incomplete"] == 0, got["incomplete"])

# When a thread ends, the C library and late destructors allocate and free.  The library counts this, and
# reuses the thread's slot.
result, processes = run([edges, "late_frees"])
said, got = said_by(result)[0], processes[0]
check("late_frees: counted", got["count"] >= said["count"] + 3000, got["count"])
check("late_frees: freed", got["live_count"] < 100, got["live_count"])
check("late_frees: unknown", got["unknown"] == 0, got["unknown"])
check("late_frees: nothing is lost", got["dropped"] == got["full"] == 0, got["dropped"])
check("late_frees: slots", got["threads"] < 10, got["threads"])

# A thread's first allocation is made by the C library while it holds that thread's lock.
result, processes = run([edges, "attributes"])
said, got = said_by(result)[0], processes[0]
check("attributes: counted", got["count"] >= said["count"] == 10, got["count"])
check("attributes: unknown", got["unknown"] == 0, got["unknown"])
check("attributes: nothing is lost", got["dropped"] == got["full"] == 0, got["dropped"])

# Two children, by fork(2) and by a raw clone(2), each with a child of its own.
result, processes = run([patterns, "fork"])
said = said_by(result)
check("fork: processes", len(processes) == 5, len(processes))
by_bytes = {process["bytes"]: process for process in processes}
for one in said:
    if one["bytes"] in (377, 378, 5):
        compare("fork", one, by_bytes[one["bytes"]])
check("fork: of the parent", by_bytes[377]["inherited"] == 1 and by_bytes[377]["began_as"] == 1)
compare("fork: parent", said[-1], processes[0])
check("fork: not followed", len(run([patterns, "fork"], "follow=0")[1]) == 1)

# A library is loaded and unloaded repeatedly.  Its two functions have different stacks, and there are no
# others.
result, processes = run([patterns, "plugin"])
of_plugin = [site for site in processes[0]["stacks"] if pathlib.Path(plugin).name in site[6].split(";")[-1]]
check("plugin: two stacks of 50", len({site[6] for site in of_plugin}) == 2, of_plugin)
check("plugin: comes back as what it was", processes[0]["modules"] < 6 and processes[0]["sites"] < 20 and processes[0]["codes"] < 40,
      (processes[0]["modules"], processes[0]["sites"], processes[0]["codes"]))
check("plugin: counts", sum(int(site[1]) for site in of_plugin) == 100)
check("plugin: whole stacks", processes[0]["incomplete"] == 0, processes[0]["incomplete"])

# A constructor, under the dynamic linker's lock, waits for a thread that calls operator new.
os.environ["HEAP_PLUGIN_WAITS"] = "1"
result, processes = run([patterns, "plugin"])
del os.environ["HEAP_PLUGIN_WAITS"]
check("plugin that waits: status", result.returncode == 0, result.returncode)
check("plugin that waits: counts operator new", processes[0]["count"] >= said_by(result)[0]["count"] + 100, processes[0]["count"])

# Allocations before any library's constructors have run are counted like all others.
os.environ["HEAP_EARLY"] = "1"
result, processes = run([edges, "nothing"])
del os.environ["HEAP_EARLY"]
check("early: counted", processes[0]["count"] == said_by(result)[0]["count"] + 1, processes[0]["count"])
check("early: none is missing", processes[0]["early"] == processes[0]["unknown"] == 0)

# operator new is counted, also that of an allocator in a library of its own.
for libraries in (library, f"{library}:{allocator}"):
    result, processes = run([edges, "new"], libraries=libraries)
    check(f"{libraries}: status", result.returncode == 0, result.returncode)
    compare(libraries, said_by(result)[0], processes[0])

# Of an allocator that calls itself, only the program's calls count.
result, processes = run([edges, "nested"], libraries=f"{library}:{nested}")
check("nested: status", result.returncode == 0, result.returncode)
said, got = said_by(result)[0], processes[0]
extra = [site for site in got["stacks"] if "ld-linux" in site[6]]
check("nested: bytes", got["bytes"] == said["bytes"] + sum(int(site[0]) for site in extra), got["bytes"] - said["bytes"])
check("nested: count", got["count"] == said["count"] + sum(int(site[1]) for site in extra), got["count"] - said["count"])
check("nested: nothing else is held", got["live"] == said["live"] + sum(int(site[2]) for site in extra), got["live"])
check("nested: nothing is lost", got["unknown"] == got["dropped"] == got["full"] == 0, got["unknown"])

# mmap is counted if the user asks for it.
result, processes = run([patterns, "mmap"], "mmap=1")
compare("mmap", said_by(result)[0], processes[0])
check("mmap: not asked", run([patterns, "mmap"])[1][0]["count"] == 0)

# With a depth limit, stacks have the innermost frames, and the cut ones are counted.
result, processes = run([patterns, "mixed"], "depth=3")
check("depth: frames", all(len(site[6].split(";")) <= 3 for site in processes[0]["stacks"]))
check("depth: cut", processes[0]["cut"] == said_by(result)[0]["count"], processes[0]["cut"])

# There is no listener: the program still runs.
alone = subprocess.run([patterns, "exit"], env={**os.environ, "LD_PRELOAD": library, "MALLOCTRACE": "socket=nobody-there"},
                       capture_output=True)
check("alone: status", alone.returncode == 7)
check("alone: silent, for the trace may be over", alone.stderr == b"", alone.stderr)
reader, writer = os.pipe()
os.close(reader)
unheard = subprocess.run([patterns, "exit"], env={**os.environ, "LD_PRELOAD": library, "MALLOCTRACE": "socket=nobody-there"},
                         stdout=subprocess.DEVNULL, stderr=writer)
os.close(writer)
check("alone: a message that nobody reads does no harm", unheard.returncode == 7, unheard.returncode)
filtered = subprocess.run([edges, "no_getpid"], env={**os.environ, "LD_PRELOAD": library, "MALLOCTRACE": "socket=nobody-there"},
                          capture_output=True)
check("alone: no getpid", filtered.returncode == 0, filtered.returncode)
left = subprocess.run([edges, "addresses"], env={**os.environ, "LD_PRELOAD": library, "MALLOCTRACE": "socket=nobody-there"},
                      capture_output=True)
check("alone: no addresses are left mapped", left.returncode == 0, left.returncode)
result, processes = run([edges, "fork_of_locked"])
check("fork while the dynamic linker is locked: status", result.returncode == 0, result.returncode)
check("fork while the dynamic linker is locked: counts", processes[-1]["count"] == 1, processes[-1]["count"])
result, processes = run([edges, "daemon"])
check("daemon: nothing is written into its files", result.returncode == 0, result.returncode)
result, processes = run([edges, "readable"])
check("readable: little of the shared memory is", result.returncode == 0 and processes, result.returncode)
result, processes = run([edges, "aligned"])
compare("frames known by other registers", said_by(result)[0], processes[0])
check("frames known by other registers: whole stacks", processes[0]["incomplete"] == 0, processes[0]["incomplete"])
result, processes = run([edges, "nothing"], libraries=f"{library}:/nowhere/vgpreload_core.so")
check("valgrind: is not traced", result.returncode == 0 and not processes, result)
check("valgrind: says so", b"not traced: it runs under valgrind" in result.stderr, result.stderr)
quiet = subprocess.run([patterns, "mixed"], env={**os.environ, "LD_PRELOAD": library}, capture_output=True)
check("not asked: silent", quiet.returncode == 0 and quiet.stderr == b"", quiet.stderr)
small = subprocess.run(["sh", "-c", f"ulimit -f 1000; exec {heap_dump} {library} '' {patterns} exit"], capture_output=True)
check("limit of file sizes: status", small.returncode == 7, small.returncode)
check("limit of file sizes: says so", b"ulimit -f" in small.stderr, small.stderr)
small = subprocess.run([heap_dump, library, "", "sh", "-c", f"x=$(ulimit -f 1000; {patterns} exit 2>&1 >&-); echo said: $x; :"],
                       capture_output=True)
check("limit of file sizes: silent in other processes", small.stdout == b"said:\n" and b"ulimit -f" not in small.stderr, small)
# The listener accepts the first process only, and no messages come from others.
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(f"\0{folder.name}-{os.getpid()}")
listener.listen()
script = subprocess.Popen(["sh", "-c", f"x=$({patterns} exit 2>&1 >&-); echo said: $x; :"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "LD_PRELOAD": library, "MALLOCTRACE": f"socket={folder.name}-{os.getpid()}"})
listener.settimeout(60)
for _ in range(2):  # sh, and the program in its child
    listener.accept()[0].close()
said = script.communicate(timeout=60)
check("refused: silent", said == (b"said:\n", b""), said)
listener.close()

# Real programs.
text = b"".join(b"%d\n" % (i * 7919 % 10007) for i in range(20000))
commands = [
    ["bash", "-c", "for i in 1 2 3; do echo $i; done; (echo sub); exit 5"],
    ["sort", "-n", "--parallel=2"],
    [shutil.which("python3", path="/usr/bin") or "python3", "-c", "import json, re; print(len(json.dumps(list(range(9999)))))"],
    ["node", "-e", "let a = []; for (let i = 0; i < 1e5; i++) a.push({i}); console.log(a.length)"],
    ["perl", "-e", "my %h; $h{$_} = $_ for 1..1000; print scalar(keys %h)"],
    ["clang++", "-fsyntax-only", "-x", "c++", "-"],
]
for command in commands:
    if shutil.which(command[0]) is None:
        print(f"skipped: no {command[0]}")
        continue
    stdin = b"#include <map>\nstd::map<int, int> numbers;\n" if command[0] == "clang++" else text
    plain = subprocess.run(command, input=stdin, capture_output=True)
    traced, processes = run(command, stdin=stdin)
    same = (plain.returncode, plain.stdout, plain.stderr) == (traced.returncode, traced.stdout, traced.stderr)
    check(f"{command[0]}: runs unchanged", same, traced.stderr[:500])
    check(f"{command[0]}: is traced", processes and processes[0]["count"] >= 10)
    check(f"{command[0]}: no unknown blocks", all(process["unknown"] == 0 for process in processes))

# The tables of this program are outside the ranges that the dynamic linker reports.
if shutil.which("make"):
    process = run(["make", "-n", "-f", "/dev/null"])[1][0]
    check("make: whole stacks", process["count"] > 100 and process["incomplete"] == 0, process["incomplete"])

# With sampling, the figures are right on average.  The sum's standard deviation is about 1 % here.
result, processes = run([patterns, "mixed"], "sample=20000")
said, got = said_by(result)[0], processes[0]
check("sample: bytes", abs(got["bytes"] / said["bytes"] - 1) < 0.08, got["bytes"] / said["bytes"])
check("sample: few walks", got["walks"] < said["count"] / 3, got["walks"])
check("sample: live blocks are those of the samples", 0 < got["live"] < 3 * said["live"], got["live"])

# An allocation between samples, which is not sampled itself, still makes a block not temporary.
for mode, fraction in (("overlapping", 0), ("coroutines", 1)):
    process = run([patterns, mode], "sample=100")[1][0]
    check(f"sample: {mode}: some", process["count"] > 0)
    check(f"sample: {mode}: temporary", process["temporary"] == fraction * process["count"], process["temporary"])

shutil.rmtree(folder)
sys.exit(failures != 0)
