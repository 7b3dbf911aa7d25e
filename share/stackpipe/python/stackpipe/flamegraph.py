"""flamegraph(1): stackpipe record in one line, also as users of cargo-flamegraph type it."""
from typing import Sequence

from stackpipe import outputs, targets
from stackpipe.command import read_options
from stackpipe.options import HELP, VERSION, Option
from stackpipe.pipeline import Tools
from stackpipe.record import Request, record

NAME = "flamegraph"
OWN_FAILURE = 125
USAGE = """Usage: flamegraph [OPTION]... [FILE.svg] {-- COMMAND [ARGUMENT]... | -p PID}
Record a command or a process, and draw where its CPU time went.
"""
OPTIONS = (
    Option("output", "o", "FILE", "the flame graph (default flamegraph.svg)"),
    targets.PID,
    targets.DURATION,
    targets.FREQ,
    *(option for option in outputs.OPTIONS if option.name in ("open", "force", "verbose", "quiet")),
    HELP,
    VERSION,
)


def main(arguments: Sequence[str], tools: Tools) -> int:
    """Returns the status of the recorded command, or our own."""
    line = read_options(NAME, USAGE, OPTIONS, arguments, tools)
    line = outputs.with_operand(line)
    target = targets.read_target(line, "flamegraph out.svg -- ./program")
    rate = ["-F", line.last("freq")] if line.has("freq") else []
    return record(Request(target, outputs.read_output(line, otherwise="svg"), rate, is_verbose=line.has("verbose")), tools)
