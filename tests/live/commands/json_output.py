#!/usr/bin/python3
"""What the commands print with --json fits the schemas of docs/schema, and has the figures of the profile; tables of Markdown have as
many cells in each row as in their heading.  Needs python3-jsonschema.

Usage: json_output.py SCHEMAS, with PE_TOOLS, PE_SCRIPTS and PE_WORKLOAD in the environment.
SPDX-License-Identifier: MIT
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema

TOOLS, SCRIPTS, WORKLOAD = (os.environ[name] for name in ("PE_TOOLS", "PE_SCRIPTS", "PE_WORKLOAD"))
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in pathlib.Path(sys.argv[1]).glob("*.json")}
used = set()
failed = 0


def fail(text):
    global failed
    failed = 1
    print(f"FAILED: {text}")


def run(*command):
    program = os.path.join(SCRIPTS, command[0]) if command[0] == "stackpipe" else os.path.join(TOOLS, command[0])
    done = subprocess.run([program, *command[1:]], stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
    if done.returncode not in (0, 3):
        fail(f"{' '.join(command)}: status {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode()


def strict(schema):
    """Returns the schema without room for members that it does not describe: those must be in docs/schema, too."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {"additionalProperties": False} if "properties" in schema and schema.get("type") == "object" else {}
    return {**{key: strict(value) for key, value in schema.items()}, **closed}


def read(name, *command):
    text = run(*command)
    try:
        document = json.loads(text)
        jsonschema.validate(document, strict(SCHEMAS[name]))
    except (ValueError, jsonschema.ValidationError) as error:
        fail(f"{' '.join(command)}: {error}\n{text[:500]}")
        return None
    used.add(name)
    return document


def check_table(*command):
    rows = [line for line in run(*command).splitlines() if line.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
    if len(rows) < 3 or len(widths) != 1:
        fail(f"{' '.join(command)}: no table: {rows}")


def check_profiles():
    pathlib.Path("a.folded").write_text("# unit: us\nm;f|g`h 3000000\nm;x 5000000.5\nm;w;[lock]_[o] 10\n", encoding="utf-8")
    pathlib.Path("b.folded").write_text("m;f 3000\nm;x 9000\n", encoding="utf-8")
    pathlib.Path("c.folded").write_text("m;f 6000\nm;x 3000\n", encoding="utf-8")
    for more in ([], ["--tree"], ["--by", "comm"], ["--callers", "x"], ["--hints"], ["--total", "-n", "1"]):
        top = read("top", "stackpipe", "top", "--json", *more, "a.folded")
        if top and (top["unit"], top["counted"]) != ("us", 8000010.5):
            fail(f"top {more}: {top}")
        check_table("stackpipe", "top", "--markdown", *more, "a.folded")
        tsv = [line.count("\t") for line in run("stackpipe", "top", "--tsv", *more, "a.folded").splitlines()]
        if len(tsv) < 2 or len(set(tsv)) != 1:
            fail(f"top --tsv {more}: {tsv}")
    for more in ([], ["--with-noise"], ["--absolute"], ["--fail-over", "5%"]):
        diff = read("diff", "stackpipe", "diff", "-q", "-o", "d.svg", "--json", *more, "b.folded", "c.folded")
        if diff and (diff["before"], diff["after"], {line["name"] for line in diff["lines"]}) not in (
                (12000, 9000, {"f", "x"}), (12000, 9000, {"f", "x", "m"})):
            fail(f"diff {more}: {diff}")
        check_table("stackpipe", "diff", "-q", "-o", "d.svg", "--markdown", *more, "b.folded", "c.folded")
    read("diff", "flamediff", "-q", "--json", "--period", "0", "b.folded", "c.folded")  # noise is unknown


def check_recordings():
    heap = read("heap", "stackpipe", "heap", "-q", "--json", "-o", "heap.svg", "--", "ls", "/")
    if heap and not (heap["peak_bytes"] > 0 and "heap.svg" in heap["outputs"]):
        fail(f"heap: {heap}")
    waits = read("waits", "stackpipe", "waits", "-q", "--json", "-o", "waits.svg", "-o", "waits.folded", "--", "sleep", "0.3")
    if waits and not (waits["sleep"] >= 0.25 and waits["outputs"] == ["waits.svg", "waits.folded"]):
        fail(f"waits: {waits}")
    check = read("check", "stackpipe", "check", "--json")
    rows = [line for line in run("stackpipe", "check").splitlines() if line]
    if check and len(check["answers"]) != len(rows) - 1:  # the last row is the engine
        fail(f"check: {len(check['answers'])} answers for {len(rows)} rows")
    for _ in range(2):
        run("stackpipe", "runs", "capture", "--", WORKLOAD, "shares", "0.3")
    os.mkdir("profiles/2020-01-01T00-00-00Z")
    runs = read("runs", "stackpipe", "runs", "list", "--json")
    if runs and ["broken" in each for each in runs["runs"]] != [True, False, False]:
        fail(f"runs: {runs}")
    read("top", "stackpipe", "runs", "show", "--json")
    read("diff", "stackpipe", "runs", "diff", "--json", "previous", "latest")
    check_table("stackpipe", "runs", "show", "--markdown")


for schema in SCHEMAS.values():
    jsonschema.Draft7Validator.check_schema(schema)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    check_profiles()
    check_recordings()
    os.chdir("/")
if used != set(SCHEMAS):
    fail(f"schemas without a command: {set(SCHEMAS) - used}")
sys.exit(failed)
