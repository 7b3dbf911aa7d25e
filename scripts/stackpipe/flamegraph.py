"""flamegraph(1): records a command, draws its flame graph, and returns its status."""
import os
from typing import Sequence

from stackpipe import files, pipeline
from stackpipe.command import read_options
from stackpipe.messages import Failure, UsageError, printable
from stackpipe.options import HELP, VERSION, Option

NAME = "flamegraph"
OWN_FAILURE = 125
USAGE = """Usage: flamegraph [OPTION]... OUT.svg -- COMMAND [ARGUMENT]...
Record a command and draw where its time went.
"""
OPTIONS = (Option("freq", "F", "HZ", "samples a second and CPU (default 99)"), HELP, VERSION)


def main(arguments: Sequence[str], tools: pipeline.Tools) -> int:
    """Returns the status of the recorded command, or our own."""
    line = read_options(NAME, USAGE, OPTIONS, arguments, tools)
    if not line.operands:
        raise UsageError("the name of the picture is missing")
    if len(line.operands) > 1:
        raise UsageError("the command goes behind --")
    if not line.command:
        raise UsageError("the command is missing: flamegraph out.svg -- command")
    return record_and_draw(line.operands[0], line.last("freq", "99"), line.command, tools)


def record_and_draw(out: str, hz: str, command: Sequence[str], tools: pipeline.Tools) -> int:
    """Records the command and draws its flame graph into the file `out`."""
    recorder = tools.find("pe-record")
    try:
        files.check_writable(out)
        work = files.temporary_folder()
    except Failure as failure:
        raise Failure(str(failure), OWN_FAILURE) from None
    try:
        pipeline.go_on()
        stream = os.path.join(work, "raw.pe")
        status = pipeline.wait_for(tools.start([recorder, "-F", hz, "-o", stream, "--", *command], as_user=True))
        pipeline.stop_listening()
        if not os.path.exists(stream) or os.path.getsize(stream) == 0:
            return status
        # If pe-record was killed, the stream has no end, and pe-symbolize fails.
        result = pipeline.draw(tools, out, [["pe-symbolize", stream], ["stackfold", "--annotate"],
                                            ["flamesvg", "--colors", "kind", "--title", printable(" ".join(command))]])
    finally:
        files.remove_folder(work)
    return pipeline.report_picture(NAME, out, result, status)
