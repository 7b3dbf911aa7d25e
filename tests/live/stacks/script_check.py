#!/usr/bin/env python3
"""Compare recorded stacks of a script with the calls that its runtime has noted.

Usage: script_check.py LANGUAGE CALLS FOLDED.  CALLS was written by LANGUAGE_calls, a line "CALLER;CALLEE" for each call, and
FOLDED by stackfold --annotate.  Prints a line for each number, and on standard error each stack with a caller that the
runtime does not know.
"""
import collections
import re
import sys

# For each language:
# parts      parts of the program, and what must be in their stacks
# checked    for a part, the callees whose callers are checked, if not all
# leaves     whether functions that the runtime does not note are callees of any function
# roots      the outermost functions
# runs       the native functions that run the script; a complete stack without one is the start or the end of the interpreter
#            or of one of its threads
# around     native functions of that start and end which "runs" calls, or which run functions of the interpreter's own
# unnoted    frames inside of a function's own that the runtime does not note, if any
LANGUAGES = {
    "python": {
        "parts": [("shares", "Shares.fifty"), ("shares", "Shares.thirty"), ("shares", "Shares.twenty"), ("shares", "deflate"),
                  ("recursion", "5001 deep"), ("sorts", "qsort"), ("sorts", "by_value"), ("sorts", "by_value from C"),
                  ("generates", "generate"),
                  ("awaits", "inner"), ("catches", "throws"), ("catches", "handles"), ("executes", "made"),
                  ("forks", "in_child"), ("Thread.run", "in_thread.<locals>.<lambda>"), ("enters", "inside")],
        # Native code calls other functions in a new interpreter and in a new process.
        "checked": {"enters": r"inside", "forks": r"in_child|spin"},
        "leaves": False,
        "roots": ["<module>", "Thread._bootstrap"],
        # Not _PyRun_SimpleFileObject: it parses and compiles the script before it calls PyEval_EvalCode.
        "runs": r"_PyEval_EvalFrameDefault|PyEval_EvalCode",
        "around": r"Py_InitializeFromConfig|Py_FinalizeEx",
    },
    "php": {
        "parts": [("shares", "Shares::fifty"), ("shares", "Shares::thirty"), ("shares", "Shares::twenty"), ("shares", "gzcompress"),
                  ("shares", "Shares::replaced"), ("shares", "Shares::by_rest"), ("recursion", "5001 deep"), ("sorts", "usort"),
                  ("sorts", "by_value"), ("sorts", "by_value from C"), ("generates", "generate"), ("delegates", "delegate"),
                  ("delegates", "generate"),
                  ("catches", "throws"), ("catches", "handles"), ("maps", "array_map"), ("magic", "Magic::__get"),
                  ("magic", "Magic::__call"), ("magic", "Magic::__destruct"), ("includes", "php_included.php"),
                  ("fibers", "Fiber::start"), ("fibers", "Fiber::resume"), ("forks", "in_child")],
        "checked": {},
        "leaves": True,
        "roots": ["{main}"],
        "runs": r"php_execute_script",
    },
    "ruby": {
        "parts": [("shares", "fifty"), ("shares", "thirty"), ("shares", "replaced"), ("shares", "twenty"),
                  ("recursion", "3001 deep"), ("sorts", "by_value"), ("sorts", "block in sorts from C"), ("fibers", "block in generate"),
                  ("catches", "throws"), ("catches", "handles"), ("executes", "made"), ("dispatches", "method_missing"),
                  ("forks", "in_child"), ("in_thread", "block in in_thread")],
        "checked": {},
        "leaves": False,
        "roots": ["<main>", "<internal:gem_prelude>", "block (3 levels) in threads"],
        "runs": r"ruby_run_node|rb_vm_exec",
        "around": r"ruby_vm_destruct",
        "unnoted": r"rescue in |ensure in |<compiled>",
    },
}
language = sys.argv[1]
PARTS, CHECKED, LEAVES, ROOTS = (LANGUAGES[language][key] for key in ("parts", "checked", "leaves", "roots"))
RUNS, AROUND = LANGUAGES[language]["runs"], LANGUAGES[language].get("around", "(?!)")
UNNOTED = LANGUAGES[language].get("unnoted", "(?!)")
UNREADABLE = f"[{language}: unreadable]"
CUT = 100  # frames of a recursion at the start of a stack


def read_stacks(path):
    """Yields the frames of each stack, its functions of the script, and its weight."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.startswith("# "):
                stack, count = line.rsplit(" ", 1)
                frames = stack.split(";")
                yield frames, [frame[:-4] for frame in frames if frame.endswith("_[s]")], int(count)


def is_around(frames, functions):
    """Returns whether the stack is one of the interpreter, or of a thread of it, before or after the script.  A machine decides
    how long they take: of 100 samples, two can be in the end of the virtual machine."""
    native = [re.sub(r"_\[[a-z]+\]$", "", frame) for frame in frames]
    is_program = native[1:2] in (["_start"], ["_dl_start_user"])
    is_thread = native[1:2] in (["clone3"], ["clone"], ["__clone"]) and not functions
    return (is_program or is_thread) and (any(re.fullmatch(AROUND, name) for name in native)
                                          or not any(re.fullmatch(RUNS, name) for name in native))


def has_wrong_caller(part, functions, calls, callees):
    return any(pair not in calls and UNREADABLE not in pair and re.match(CHECKED.get(part, ""), pair[1])
               and not (LEAVES and pair[1] not in callees)
               for pair in zip(functions, functions[1:]))


with open(sys.argv[2], encoding="utf-8") as noted:
    known = {tuple(call.rstrip("\n").split(";")) for call in noted}
known_callees = {callee for _, callee in known}
weight = collections.Counter()
for frames, functions, count in read_stacks(sys.argv[3]):
    weight["all"] += count
    weight["unreadable"] += count * (UNREADABLE in functions)
    # How deep a walk gets within its limits of time depends on the machine, and the recorder reports what it cuts.
    is_cut = functions[:CUT] == ["deep"] * CUT
    is_inside = not is_around(frames, functions) and not is_cut
    weight["inside"] += count * is_inside
    weight["rooted"] += count * (is_inside and functions[:1] != [] and functions[0] in ROOTS)
    part = next((part for part, _ in PARTS if part in functions), None)
    if part is None:
        continue
    found = {*functions, *(name for name in ("deflate", "qsort") for frame in frames if frame.startswith(name))}
    found.add(f"{functions.count('deep')} deep")
    found |= {f"{frame[:-4]} from C" for caller, frame in zip(frames, frames[1:])
              if frame.endswith("_[s]") and not caller.endswith("_[s]")}
    weight[part] += count
    weight.update({(part, name): count for name in found})
    if has_wrong_caller(part, [name for name in functions if not re.match(UNNOTED, name)], known, known_callees):
        weight["wrong"] += count
        print(";".join(frames), file=sys.stderr)
print(weight["all"], "samples")
print(weight["wrong"], "wrong callers")
print(f"{100 * weight['unreadable'] / max(weight['all'], 1):.1f} unreadable")
print(f"{100 * weight['rooted'] / max(weight['inside'], 1):.1f} rooted")
for part, name in PARTS:
    print(f"{100 * weight[part, name] / max(weight[part], 1):.1f} {part} {name}")
