#!/usr/bin/env python3
"""The names in a profile hold characters that control terminals, or change the direction of text.  No command writes them to one.

Usage: terminal_names.py, with PE_TOOLS and PE_SCRIPTS in the environment.
"""
import os
import re
import subprocess
import sys
import tempfile
import threading

TOOLS, SCRIPTS = os.environ["PE_TOOLS"], os.environ["PE_SCRIPTS"]
UNSAFE = [*map(chr, [*range(1, 9), *range(11, 32), *range(127, 160)]), "\u061c", "\u200e", "\u200f", *map(chr, range(0x2028, 0x202F)), *map(chr, range(0x2066, 0x206A))]
COLOUR = re.compile(r"\x1b\[(?:[012]|31|33)m")  # others could hide text
COMMANDS = [["stackfold", "a.folded"], ["stackfold", "--to", "speedscope", "a.folded"], ["flamesvg", "a.folded"], ["flamediff", "--period", "1", "a.folded", "b.folded"],
            ["flamediff", "--period", "1", "--text", "a.folded", "b.folded"], ["flamediff", "--folded", "a.folded", "b.folded"], ["stacktop", "a.folded"],
            ["stacktop", "--tree", "a.folded"], ["stacktop", "--callers", "f", "a.folded"], ["stacktop", "--json", "a.folded"], ["stacktop", "--tsv", "a.folded"],
            ["stacktop", "--by", "module", "a.folded"], ["stackpipe", "top", "a.folded"], ["stackpipe", "diff", "-o", "x.svg", "a.folded", "b.folded"],
            ["stackpipe", "diff", "-o", "/dev/stdout", "--format", "svg", "a.folded", "b.folded"],
            ["profile_run", "list", "--output", "runs"], ["profile_run", "analyze", "--output", "runs"], ["profile_run", "trend", "--output", "runs", "f"],
            ["profile_run", "diff", "--output", "runs", "--before", "previous"], ["profile_run", "ci", "--shares", "--output", "runs", "--baseline", "previous"],
            ["merge_fleet", "a.folded"], ["stackfold", "-o", "/dev/fd/1", "a.folded"], ["flamesvg", "-o", "/dev/stdout", "a.folded"], ["pe-symbolize", "a.folded"], ["stackfold", "\x9bno.folded"], ["profile-push", "--spool", "s", "\u202eno"]]


def on_terminal(command):
    """Runs a command whose output and messages go to a terminal, and returns what that gets."""
    ours, theirs = os.openpty()
    got = []

    def read():
        try:
            while piece := os.read(ours, 65536):
                got.append(piece)
        except OSError:  # all of the other side is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    program = next((path for folder in (SCRIPTS, TOOLS) if os.path.isfile(path := os.path.join(folder, command[0]))), command[0])
    subprocess.run([program, *command[1:]], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, timeout=60, check=False)
    os.close(theirs)
    reader.join()
    os.close(ours)
    return b"".join(got).decode("utf-8", "surrogateescape")


def main():
    names = "".join(f"main;f;a{character}b_{number} {number + 50}\n" for number, character in enumerate(UNSAFE)) + "main;f;\x1b[8mhidden 9\n"
    for path, text in (("a.folded", names), ("b.folded", names.replace("main;f;a", "main;f;g;a"))):
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    hostile = "".join(UNSAFE)
    for number, path in enumerate(("a.folded", "b.folded")):
        folder = f"runs/2026-01-0{number + 1}T00-00-00Z\x9b\u202e"
        os.makedirs(folder)
        os.link(path, f"{folder}/stacks.folded")
        with open(f"{folder}/meta.json", "w", encoding="utf-8") as file:
            file.write('{"format": 1, "mode": "quick\\u009b", "samples": 9, "workload": "%s"}' % "".join(f"\\u{ord(c):04x}" for c in hostile))
    failed = 0
    for command in COMMANDS:
        text = on_terminal(command)
        found = sorted({c for c in COLOUR.sub("", text.replace("\r\n", "\n")) if c in UNSAFE})
        if found or not text:
            failed = 1
            print(f"FAILED: {command}: {len(text)} characters, with {found}")
    return failed


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    status = main()
    os.chdir("/")
sys.exit(status)
