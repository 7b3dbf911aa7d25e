"""stackpipe top: prints the functions that use most, by stacktop."""
from typing import Sequence

from stackpipe import files, inputs, pipeline
from stackpipe.command import read_options
from stackpipe.messages import UsageError
from stackpipe.options import HELP, VERSION, Option

NAME = "stackpipe"
USAGE = """Usage: stackpipe top [OPTION]... PROFILE...
Print the hottest functions.  A PROFILE is a flame graph of ours, folded text, a pprof or speedscope profile, a sample
stream, perf.data, or a kept run: a name that stackpipe runs list prints, latest, previous, or a folder.
"""
#: Options that stacktop(1) has, too.
PASSED = (
    Option("top", "n", "N", "rows (default 20)"),
    Option("total", "", "", "sort by the time in a function and its callees"),
    Option("callers", "", "FN", "show the callers of the function FN"),
    Option("callees", "", "FN", "show the functions that FN calls"),
    Option("tree", "", "", "print a call tree"),
    Option("by", "", "WHAT", "count by comm, module or thread, not by function", choices=("comm", "module", "thread")),
    Option("hints", "", "", "add advice for well-known functions"),
    Option("json", "", "", "print JSON"),
    Option("tsv", "", "", "print tab-separated columns"),
    Option("markdown", "", "", "print a table for tickets"),
)
OPTIONS = (*PASSED, Option("time", "", "FROM,TO", "only what happened in this time: 14:05, +15s, -30s; TO may be left out"), Option("verbose", "v", "", "print the pipelines that run"), HELP, VERSION)


def main(arguments: Sequence[str], tools: pipeline.Tools) -> int:
    """Returns the status of stacktop."""
    line = read_options(NAME, USAGE, OPTIONS, arguments, tools)
    names = [*line.operands, *(line.command or [])]
    if not names:
        raise UsageError("nothing to read: give a profile; for example: stackpipe top run.folded")
    tools.shows_stages = line.has("verbose")
    passed = [f"--{option.name}={line.last(option.name)}" if option.value else f"--{option.name}" for option in PASSED if line.has(option.name)]
    work = files.temporary_folder()
    try:
        command = ["stacktop", *passed, "--", *(inputs.folded_file(name, work, tools, time=line.last("time")) for name in names)]
        tools.show([command])
        return tools.pipe([command])[0]
    finally:
        files.remove_folder(work)
