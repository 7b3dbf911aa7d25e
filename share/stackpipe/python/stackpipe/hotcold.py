"""hotcold(1): the older form of stackpipe waits."""
from typing import Sequence

from stackpipe import outputs, waits
from stackpipe.command import read_options
from stackpipe.pipeline import Tools

NAME = "hotcold"
OWN_FAILURE = 125
USAGE = """Usage: hotcold [OPTION]... OUT.svg {-p PID | -t TID | -a | -- COMMAND [ARGUMENT]...}
Draw where a program runs, in warm colours, and where it waits, in cold ones.
"""
OPTIONS = waits.OPTIONS


def main(arguments: Sequence[str], tools: Tools) -> int:
    """Returns the status of the recorded command, or our own."""
    line = outputs.with_operand(read_options(NAME, USAGE, OPTIONS, arguments, tools))
    return waits.draw(waits.with_time(waits.read_request(line, "hotcold out.svg -p PID", "svg"), line, tools), tools)
