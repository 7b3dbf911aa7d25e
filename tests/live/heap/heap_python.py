#!/usr/bin/env python3
"""The heap of a Python program has the program's functions, with the bytes that tracemalloc reports.

PE_PYTHON may name another Python than /usr/bin/python3.
SPDX-License-Identifier: MIT
"""
import ast
import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(os.environ["PE_TOOLS"])
PROGRAM = pathlib.Path(__file__).resolve().parent / "heap_python_program.py"
MOST_DIFFERENCE = 0.02
#: Functions that hold less are not compared.
LEAST_BYTES = 20000
KNOWN = ("3.11", "3.12", "3.13", "3.14", "3.15")
#: Names of variables and their hashes decide how full dictionaries are.
ENVIRONMENT = {**os.environ, "PYTHONHASHSEED": "0"}

python = os.environ.get("PE_PYTHON") or shutil.which("python3", path="/usr/bin:/bin")
if python is None:
    print("skipped: no python3")
    sys.exit(77)
version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True).stdout.strip()
if version not in KNOWN:
    print(f"skipped: frames of Python {version} are not known")
    sys.exit(77)

folder = pathlib.Path(tempfile.mkdtemp())
failures = 0


def check(what, holds, detail=""):
    global failures
    if not holds:
        failures += 1
        print(f"FAILED: {what} {detail}")


def tool(*words):
    """Runs one of the tools."""
    return subprocess.run([TOOLS / words[0], *words[1:]], capture_output=True, text=True, timeout=150, env=ENVIRONMENT)


def function_of_line():
    """Returns the name of the function that each line of the program belongs to."""
    names = {}

    def visit(node, name):
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, ast.FunctionDef) else name
            if hasattr(child, "lineno"):
                names.setdefault(child.lineno, inner)
            visit(child, inner)

    visit(ast.parse(PROGRAM.read_text()), "<module>")
    return names


NAMES = function_of_line()


def by_tracemalloc():
    """Returns the bytes that each function holds at the end."""
    output = folder / "tracemalloc"
    subprocess.run([python, PROGRAM, "trace", output], check=True, env=ENVIRONMENT)
    sums = collections.Counter()
    for line in output.read_text().splitlines():
        place, size = line.split()
        sums["<made>" if place == "<made>" else NAMES[int(place)]] += int(size)
    return sums


def trace(command, *options):
    """Returns malloctrace's messages, and the stacks with their bytes; each frame is FUNCTION:FILE:LINE."""
    stream, named = folder / "heap.pe", folder / "named.pe"
    run = tool("malloctrace", "-v", *options, "-o", stream, "--", python, *command)
    check("status", run.returncode == 0, run.stderr)
    tool("pe-symbolize", "-q", "--lines", "-o", named, stream)
    stacks = []
    for line in tool("stackfold", "-q", "--lines", "--annotate", "--event", "live-bytes", named).stdout.splitlines():
        if not line.startswith("# "):
            stack, _, size = line.rpartition(" ")
            stacks.append((stack.split(";"), int(size)))
    return run.stderr, stacks


def scripts_of(stack):
    """Returns (function, file, line) of each Python function of a stack."""
    return [tuple(frame.replace("_[s]", "").rsplit(":", 2)) for frame in stack if "_[s]" in frame]


def by_function(stacks):
    """Returns the bytes of each function of the program that is the innermost one of Python."""
    sums = collections.Counter()
    for stack, size in stacks:
        scripts = [script for script in scripts_of(stack) if len(script) == 3]
        if scripts and scripts[-1][1] in (PROGRAM.name, "<made>"):
            _, file, line = scripts[-1]
            sums["<made>" if file == "<made>" else NAMES[int(line)]] += size
    return sums


expected = by_tracemalloc()
said, stacks = trace([PROGRAM, "plain", folder / "tracemalloc"])
found = by_function(stacks)
large = {name: size for name, size in expected.items() if size >= LEAST_BYTES}
check("functions that hold much", len(large) >= 12, large)
for name, size in large.items():
    check(f"bytes of {name}", abs(found[name] / size - 1) <= MOST_DIFFERENCE, f"{found[name]} instead of {size}")
check("bytes of C code without the lock", 300000 <= found["without_lock"] < 300000 + LEAST_BYTES, found["without_lock"])
check("functions that hold little", all(size < LEAST_BYTES for name, size in found.items() if name not in large and name != "without_lock"), found)
check("no unknown blocks", "unknown blocks" not in said, said)
check("no advice about PYTHONMALLOC", "PYTHONMALLOC" not in said, said)

# The functions are in the places of the interpreter's loop, with all their callers.
seen = collections.Counter()
for stack, size in stacks:
    names = [script[0] for script in scripts_of(stack)]
    check("no loop beside its functions", not names or not any("_PyEval_EvalFrameDefault" in frame for frame in stack), stack)
    if names and names[-1] in ("make_record", "by_key"):
        caller = {"make_record": "keep_records", "by_key": "call_back"}[names[-1]]
        check(f"callers of {names[-1]}", names == ["<module>", "main", caller, names[-1]], stack)
        seen[names[-1]] += 1
    if names and names[-1] == "by_key":
        places = [place for place, frame in enumerate(stack) if "_[s]" in frame]
        check("C code between a function and its callback", places[-1] > places[-2] + 1, stack)
check("stacks of both", seen["make_record"] > 0 < seen["by_key"], seen)

# With a limit of frames, the innermost ones of both kinds are left.
said, cut = trace([PROGRAM, "plain", folder / "tracemalloc"], "--max-depth", "3")
check("max-depth: frames", max(len(scripts_of(stack)) for stack, _ in cut) == 3)
check("max-depth: functions", by_function(cut)["make_record"] == found["make_record"], by_function(cut))

# A forked process has its own stacks, and frees blocks of its parent.
forks = """
import os, sys
kept = ["before %d" % i for i in range(3000)]
if os.fork() == 0:
    def in_child():
        return ["after %d" % i for i in range(4000)]
    kept = in_child()
    os._exit(0)
sys.exit(os.WEXITSTATUS(os.wait()[1]))
"""
said, forked = trace(["-c", forks])
in_child = sum(size for stack, size in forked if any(script[0] == "in_child" for script in scripts_of(stack)))
check("fork: the child's objects", in_child > 4000 * 50, in_child)

# A thread in a subinterpreter has the functions of both interpreters.
subinterpreter = """
try:
    import _interpreters as interpreters
    run = interpreters.exec
except ImportError:
    import _xxsubinterpreters as interpreters
    run = interpreters.run_string
def enter():
    run(interpreters.create(), '''
import os
def inside():
    kept = []
    for i in range(4000):
        kept.append("inside %d" % i)
    os._exit(0)
inside()
''')
enter()
"""
said, entered = trace(["-c", subinterpreter])
sums = collections.Counter()
for stack, size in entered:
    names = tuple(script[0] for script in scripts_of(stack))
    if names[-1:] == ("inside",):
        sums[names] += size
check("subinterpreter: its functions, and their callers", list(sums) == [("<module>", "enter", "<module>", "inside")], sums)
check("subinterpreter: its objects", sum(sums.values()) > 4000 * 50, sums)

shutil.rmtree(folder)
sys.exit(failures != 0)
