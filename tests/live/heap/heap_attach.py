#!/usr/bin/env python3
"""Malloctrace attaches to running processes, counts exactly, and leaves them as they were.

Usage: heap_attach.py HEAP_ATTACH HEAP_ATTACH_FIXED HEAP_ATTACH_STATIC HEAP_PLUGIN
SPDX-License-Identifier: MIT
"""
import collections
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

TOOLS = pathlib.Path(os.environ["PE_TOOLS"])
program, fixed, static, plugin = sys.argv[1:]
folder = pathlib.Path(tempfile.mkdtemp())
failures = 0
PATIENCE = 30  # seconds


def check(what, holds, detail=""):
    global failures
    if not holds:
        failures += 1
        print(f"FAILED: {what} {detail}")


def until(what, holds):
    """Waits until the condition holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            check(what, False, "never")
            return
        time.sleep(0.02)


class Target:
    """The program, which does what it is told."""

    def __init__(self, *command, **variables):
        self.process = subprocess.Popen(command or [program, plugin], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **variables})
        self.pid = self.process.pid
        self.said = [self.process.stdout.readline()]

    def tell(self, letters):
        for letter in letters:
            self.process.stdin.write(letter)
            self.process.stdin.flush()
            while not self.said[-1].startswith(f"did {letter}"):
                self.said.append(self.process.stdout.readline())
                if not self.said[-1]:
                    return check("the target runs", False, f"after {letter}: status {self.process.wait()}")
            self.said.append("")
        return None

    def end(self):
        self.process.stdin.close()
        self.process.stdout.read()
        return self.process.wait(PATIENCE)


class Trace:
    """Malloctrace, attached.  It has begun to count when its file exists."""

    def __init__(self, pid, *options):
        self.stream = folder / "heap.pe"
        self.stream.unlink(missing_ok=True)
        self.process = subprocess.Popen([TOOLS / "malloctrace", "-v", "-p", str(pid), "-o", self.stream, *options],
                                        stderr=subprocess.PIPE, text=True)
        until("malloctrace begins", lambda: self.stream.exists() or self.process.poll() is not None)

    def end(self, number=signal.SIGINT):
        """Returns its messages."""
        if number:
            self.process.send_signal(number)
        said = self.process.communicate(timeout=PATIENCE)[1]
        check("malloctrace's status", self.process.returncode == 0, said)
        return said


def sums_of(stream, event):
    """Returns the weight of each function of the program or the plugin that is the innermost one."""
    named = folder / "named.pe"
    subprocess.run([TOOLS / "pe-symbolize", "-q", "-o", named, stream], check=True)
    sums = collections.Counter()
    output = subprocess.run([TOOLS / "stackfold", "-q", "--event", event, named], capture_output=True, text=True, check=True).stdout
    for line in output.splitlines():
        stack, _, size = line.rpartition(" ")
        function = next((frame for frame in reversed(stack.split(";")) if frame in SHOWN), "other")
        sums[function.rpartition("::")[2]] += int(size)
    return sums


FUNCTIONS = ("kept_by_thread", "freed_by_thread", "kept_by_new", "other_forms", "by_the_c_library", "grow_old", "load", "first")
#: With their namespace.
SHOWN = FUNCTIONS + tuple(f"(anonymous namespace)::{name}" for name in FUNCTIONS)
#: Of each letter: function, blocks, bytes, and whether they are kept.
DOES = {"t": [("kept_by_thread", 4000, 400000, True), ("freed_by_thread", 4000, 240000, False)],
        "n": [("kept_by_new", 5, 5 * 333, True)],
        "o": [("other_forms", 6, 3 * 300 + 2 * 640 + 1280, True)],
        "c": [("by_the_c_library", 7, 7 * 7, True)],
        "g": [("grow_old", 10, 70000, True)]}


def compare(what, letters, stream):
    """Compares a stream with what the program has done while it was traced."""
    counts, held = sums_of(stream, "alloc-count"), sums_of(stream, "live-bytes")
    for letter in DOES:
        for name, blocks, size, is_kept in DOES[letter]:
            times = letters.count(letter)
            check(f"{what}: allocations of {name}", counts.get(name, 0) == times * blocks, counts)
            check(f"{what}: bytes of {name} held", held.get(name, 0) == (times * size if is_kept else 0), held)


def maps_of(pid):
    return pathlib.Path(f"/proc/{pid}/maps").read_text()


def calls_of_library(pid):
    """Returns how many words of other objects are addresses of the library's code."""
    lines = [line.split(maxsplit=5) for line in maps_of(pid).splitlines()]
    ranges = [([int(end, 16) for end in words[0].split("-")], words[1], words[5] if len(words) > 5 else "") for words in lines]
    code = [range(*place) for place, access, path in ranges if "malloctrace-lib" in path and "x" in access]
    found = 0
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for place, access, path in ranges:
            if path.startswith("/") and "malloctrace" not in path and "x" not in access and "r" in access:
                memory.seek(place[0])
                found += sum(any(word in each for each in code) for (word,) in struct.iter_unpack("Q", memory.read(place[1] - place[0])))
    return found


# It counts exactly, from when it has attached to when it ends.
target = Target()
target.tell("tnoc")
trace = Trace(target.pid)
target.tell("ttnocgf")
check("calls lead to the library", calls_of_library(target.pid) > 10)
said = trace.end()
check("calls are restored", calls_of_library(target.pid) == 0, calls_of_library(target.pid))
compare("first trace", "ttnocgf", trace.stream)
check("frees of older blocks", "of blocks from before, 40 blocks of" in said, said)
check("older bytes", "(0 bytes" not in said and "of its own memory were resident" in said, said)
check("nothing lost", not any(word in said for word in ("not counted", "unknown", "cut", "inconsistent")), said)
target.tell("tnoc")

# The memory of the trace is gone, and its calls are the program's own again; the library is used again.
check("shared memory is gone", "/memfd:malloctrace (deleted)" not in maps_of(target.pid), maps_of(target.pid))
library_before = [line for line in maps_of(target.pid).splitlines() if "malloctrace-lib" in line]
trace = Trace(target.pid)
target.tell("t")

# Two at once: the second one is refused, and the first one is not disturbed.
second = subprocess.run([TOOLS / "malloctrace", "-p", str(target.pid), "-d", "1", "-o", folder / "second.pe"],
                        stderr=subprocess.PIPE, text=True, check=False)
check("two at once", second.returncode == 1 and "is traced already" in second.stderr, second.stderr)
check("no file of the refused one", not (folder / "second.pe").exists())
target.tell("nk")
trace.end()
compare("second trace", "tn", trace.stream)
check("the child of the target", "child 0\n" in target.said, target.said)
check("the library is loaded once", [line for line in maps_of(target.pid).splitlines() if "malloctrace-lib" in line] == library_before)

# Objects that are loaded meanwhile.
trace = Trace(target.pid)
target.tell("p")
for _ in range(200):
    target.tell("lc")
    time.sleep(0.01)
trace.end()
counts = sums_of(trace.stream, "alloc-count")
check("an object that was loaded later", 0 < counts.get("first", 0) <= 200, counts)
check("the others beside it", counts.get("by_the_c_library") == 1400, counts)

# Malloctrace is killed at any moment: the target goes on, and the next one attaches.
random.seed(os.getpid())
for _ in range(25):
    killed = subprocess.Popen([TOOLS / "malloctrace", "-q", "-p", str(target.pid), "-o", folder / "killed.pe"], stderr=subprocess.DEVNULL)
    time.sleep(random.random() * 0.05)
    killed.kill()
    killed.wait()
    target.tell("tnc")
trace = Trace(target.pid)
target.tell("tnoc")
trace.end()
compare("after 25 kills", "tnoc", trace.stream)

# A program at a fixed address, with a stub of malloc.
at_fixed = Target(fixed, plugin)
trace = Trace(at_fixed.pid)
at_fixed.tell("tnocp")
trace.end()
compare("a fixed address", "tnoc", trace.stream)
at_fixed.end()

# A thread that waits in a call that a stop interrupts does not notice it.  SIGSTOP and SIGCONT do no harm.
waiting = Target(program, plugin, "0", "epoll")
for _ in range(5):
    trace = Trace(waiting.pid)
    waiting.tell("noc")
    trace.end()
    compare("a thread in epoll_wait", "noc", trace.stream)
waiting.tell("i")
check("calls that were interrupted", "interrupted 0\n" in waiting.said, waiting.said)
stopper = subprocess.Popen(["sh", "-c", f"for i in $(seq 100); do kill -STOP {waiting.pid}; sleep 0.005; kill -CONT {waiting.pid}; sleep 0.005; done"])
subprocess.run([TOOLS / "malloctrace", "-q", "-p", str(waiting.pid), "-d", "0.3", "-o", folder / "stopped.pe"], stderr=subprocess.DEVNULL, check=False)
stopper.wait()
trace = Trace(waiting.pid)
waiting.tell("noc")
trace.end()
compare("after SIGSTOP and SIGCONT", "noc", trace.stream)
waiting.end()

# Samples, and then all of them again.
trace = Trace(target.pid, "--sample", "1K")
target.tell("tttt")
said = trace.end()
held = sums_of(trace.stream, "live-bytes")
check("no growth besides", "own memory grew" not in said, said)
trace = Trace(target.pid)
target.tell("m")
said = trace.end()
check("growth that no block explains", "its own memory grew by 67" in said, said)
check("estimated bytes", 0.7 * 1600000 < held.get("kept_by_thread", 0) < 1.3 * 1600000, held)
trace = Trace(target.pid)
target.tell("tnoc")
trace.end()
compare("after samples", "tnoc", trace.stream)

# The end of the target, by exit and by exec.
trace = Trace(target.pid)
target.tell("tn")
check("the target's status", target.end() == 0)
trace.end(None)
compare("at the target's end", "tn", trace.stream)
target = Target()
trace = Trace(target.pid)
target.process.stdin.write("e")
target.process.stdin.flush()
said = trace.end(None)
check("exec", "executed another program" in said, said)
target.process.kill()


def refuse(what, refused, why, letters=""):
    """The target cannot be traced, and goes on."""
    refused.tell(letters)
    said = subprocess.run([TOOLS / "malloctrace", "-p", str(refused.pid), "-o", folder / "none.pe"], stderr=subprocess.PIPE,
                          text=True, check=False, timeout=PATIENCE)
    check(what, said.returncode == 1 and why in said.stderr, said.stderr)
    check(f"{what}: no file", not (folder / "none.pe").exists())
    refused.tell("n")
    refused.end()


def refuse_busy(what, letter, why, **variables):
    """The only thread of the target is where it may hold a lock; afterwards it can be traced."""
    busy = Target(program, plugin, "0", **variables)
    busy.process.stdin.write(letter)
    busy.process.stdin.flush()
    stream = folder / f"{letter}.pe"
    with subprocess.Popen([TOOLS / "malloctrace", "-p", str(busy.pid), "-o", stream], stderr=subprocess.PIPE, text=True) as refused:
        yield
        said = refused.communicate(timeout=PATIENCE)[1]
    check(what, refused.returncode == 1 and why in said, said)
    check(f"{what}: no file", not stream.exists())
    busy.process.stdin.write(".")
    busy.tell("n")
    trace = Trace(busy.pid)
    busy.tell("noc")
    trace.end()
    compare(what, "noc", trace.stream)
    busy.end()


# Each takes as long as malloctrace's patience.
refusals = [refuse_busy("a signal handler", "h", "it is in a signal handler"),
            refuse_busy("the dynamic linker", "p", "it is in the dynamic linker", HEAP_PLUGIN_READS="1")]
for refusal in refusals:
    next(refusal)
for refusal in refusals:
    for _ in refusal:
        pass
refuse("static", Target(static, plugin), "is static")
refuse("a filter of system calls", Target(), "would end it", "s")
sys.exit(1 if failures else 0)
