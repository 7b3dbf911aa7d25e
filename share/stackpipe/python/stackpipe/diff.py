"""stackpipe diff: compares two profiles of any kind by flamediff, as text and as a flame graph."""
from typing import Sequence

from stackpipe import files, inputs, outputs, pipeline
from stackpipe.command import read_options
from stackpipe.messages import Failure, UsageError
from stackpipe.options import HELP, VERSION, Option

NAME = "stackpipe"
USAGE = """Usage: stackpipe diff [OPTION]... BEFORE AFTER
Print which functions changed beyond noise, and draw the difference.  BEFORE and AFTER are folded text, pprof profiles,
sample streams, perf.data, or kept runs: a name that stackpipe runs list prints, latest, previous, or a folder.
"""
GREW = 3
OPTIONS = (
    Option("top", "n", "N", "rows of the table (default 20)"),
    Option("fail-over", "", "N%", "exit with status 3 if a function grew by more, beyond noise"),
    *outputs.OPTIONS,
    HELP,
    VERSION,
)


def main(arguments: Sequence[str], tools: pipeline.Tools) -> int:
    """Returns 0, or 3 if --fail-over found growth."""
    line = read_options(NAME, USAGE, OPTIONS, arguments, tools)
    if len(line.operands) != 2:
        raise UsageError("two profiles are needed; for example: stackpipe diff before.folded after.folded")
    output = outputs.read_output(line, ("svg", "folded"))
    tools.shows_stages = line.has("verbose")
    work = files.temporary_folder()
    try:
        sides = [inputs.folded_file(name, work, tools) for name in line.operands]
        rows = ["--top", line.last("top")] if line.has("top") else []
        limit = ["--fail-over", line.last("fail-over")] if line.has("fail-over") else []
        texts = ["flamediff", "--text", *rows, *limit, "--", *sides]
        tools.show([texts])
        status = tools.pipe([texts])[0]
        if status not in (0, GREW):
            raise Failure("", status)
        form = ["--folded"] if output.form == "folded" else []
        outputs.write(tools, output, [["flamediff", *form, "--", *sides]])
        return status
    finally:
        files.remove_folder(work)
