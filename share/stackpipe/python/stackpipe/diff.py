"""stackpipe diff: compares two profiles of any kind by flamediff, as text and as a flame graph."""
from typing import Sequence

from stackpipe import files, inputs, outputs, pipeline
from stackpipe.command import read_options
from stackpipe.messages import Failure, UsageError
from stackpipe.options import HELP, VERSION, Option

NAME = "stackpipe"
USAGE = """Usage: stackpipe diff [OPTION]... BEFORE AFTER
       stackpipe diff [OPTION]... --before FROM,TO --after FROM,TO PROFILE
Print which functions changed beyond noise, and draw the difference.  BEFORE and AFTER are flame graphs of ours,
folded text, pprof or speedscope profiles, sample streams, perf.data, or kept runs: a name that stackpipe runs list
prints, latest, previous, or a folder.
"""
GREW = 3
_STDOUT = "/dev/stdout"
FORMS, DEFAULT = ("svg", "html", "folded"), "diff.svg"
OPTIONS = (
    Option("top", "n", "N", "rows of the table (default 20)"),
    Option("with-noise", "", "", "also print changes that may be noise"),
    Option("fail-over", "", "N%", "exit with status 3 if a function's share grew by more than N%, beyond noise"),
    Option("json", "", "", "print the table as JSON"),
    Option("markdown", "", "", "print the table for tickets"),
    Option("before", "", "FROM,TO", "the time in PROFILE that is BEFORE: 14:05,14:10 or +15s,+30s"),
    Option("after", "", "FROM,TO", "the time that is AFTER, such as -30s: the last 30 s"),
    Option("absolute", "", "", "compare counts, not shares of each profile"),
    Option("no-strip", "", "", "keep parts of names that differ between builds and runs, and the names of renamed programs"),
    *outputs.options(FORMS, DEFAULT),
    HELP,
    VERSION,
)


def main(arguments: Sequence[str], tools: pipeline.Tools) -> int:
    """Returns 0, or 3 if --fail-over found growth."""
    line = read_options(NAME, USAGE, OPTIONS, arguments, tools)
    names = [*line.operands, *(line.command or [])]
    times = [line.last("before"), line.last("after")]
    if any(times) and len(names) == 1:
        names *= 2
    if len(names) != 2:
        raise UsageError("two profiles are needed; for example: stackpipe diff before.folded after.folded")
    output = outputs.read_output(line, FORMS, default=DEFAULT)
    outputs.must_differ(output, names)
    is_stdout = any(each.path == _STDOUT for each in output.all)
    for option in ("fail-over", "json", "markdown"):
        if is_stdout and line.has(option):
            raise UsageError(f"--output: standard output has the table of --{option}; give a file")
    tools.shows_stages = line.has("verbose")
    work = files.temporary_folder()
    try:
        sides = [inputs.folded_file(name, work, tools, time=time) for name, time in zip(names, times)]
        inputs.must_count_alike(names)
        rows = (["--top", line.last("top")] if line.has("top") else []) + ["--with-noise"] * line.has("with-noise")
        limit = ["--fail-over", line.last("fail-over")] if line.has("fail-over") else []
        how = [f"--{name}" for name in ("absolute", "no-strip") if line.has(name)]
        if is_stdout:  # the table would be mixed with the result
            write(tools, output, how, sides)
            return 0
        texts = ["flamediff", "--text", *(f"--{name}" for name in ("json", "markdown") if line.has(name)), *how, *rows, *limit, "--", *sides]
        tools.show([texts])
        status = tools.pipe([texts])[0]
        if status not in (0, GREW):
            raise Failure("")
        write(tools, output, [*how, "-q"], sides)  # the table has reported the same
        return status
    finally:
        files.remove_folder(work)


def write(tools: pipeline.Tools, output: outputs.Output, how: Sequence[str], sides: Sequence[str]) -> None:
    """Writes the difference as a flame graph, or as folded text with two counts."""
    for number, each in enumerate(output.all):
        form = ["--folded"] if each.form == "folded" else ["--html"] if each.form == "html" else []
        if not outputs.write(tools, each, [["flamediff", *form, *how, "--", *sides]], is_told=number > 0):
            raise Failure(f"{each.path}: not written, because the profiles are empty")
