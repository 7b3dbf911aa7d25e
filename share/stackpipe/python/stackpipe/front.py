"""stackpipe(1): one command in front of the tools, like git or cargo.  Each of its commands has its own module."""
import importlib
import os
import re
from typing import Sequence

from stackpipe import options
from stackpipe.command import print_help, print_version
from stackpipe.messages import UsageError, print_json, print_out, printable, text_of
from stackpipe.options import HELP, VERSION, Option
from stackpipe.pipeline import Tools

NAME = "stackpipe"
#: Each command, its module, its text in --help, and its manual page.
COMMANDS = {
    "record": ("record", "record where CPU time goes, and draw a flame graph", "stackpipe"),
    "waits": ("waits", "the same, including the time that threads wait", "hotcold"),
    "heap": ("heap", "draw a program's peak memory, leaks and allocations", "malloctrace"),
    "watch": ("watch.command", "keep the last minutes, and draw them when something went wrong", "stackpipe-watch"),
    "draw": ("draw", "draw a recorded profile, or write it in another format", "stackpipe"),
    "diff": ("diff", "show the differences between two profiles", "flamediff"),
    "top": ("top", "print the hottest functions", "stacktop"),
    "check": ("front", "report what can be recorded here, and what is missing", "pe-record"),
    "runs": ("runs.commands", "keep, list and compare profiles, watch a server, fail slow merges", "profile_run"),
    "merge": ("merge.merge_fleet", "add up folded text from many machines", "merge_fleet"),
    "help": ("front", "open the manual page of a command or a tool", "stackpipe"),
}
#: The other manual pages.
PAGES = ("stackpipe", "stackpipe-watch", "pe-record", "offcpu", "malloctrace", "pe-symbolize", "stackfold", "flamesvg", "flamediff", "stacktop", "flamegraph",
         "hotcold", "merge_fleet", "profile_run", "profile-push", "pe-stream", "folded", "sp_sigprof")
OPTIONS = (HELP, VERSION)
_ANSWER = 36  #: the column of answers of pe-record --check
_LISTED = "".join(f"  {name:<9} {text}\n" for name, (_, text, _) in COMMANDS.items())
USAGE = f"""Usage: stackpipe COMMAND [OPTION]... [ARGUMENT]...
Find out where programs spend time and memory.

Commands:
{_LISTED}
  stackpipe record -- ./server --benchmark   writes flamegraph.svg
  stackpipe record -p 1234 -d 10 --open      shows it in the browser
  stackpipe record --help                    lists the options of a command
"""


def own_failure(arguments: Sequence[str]) -> int:
    """Returns the exit status for failures of a command itself: 125 if it runs the user's program."""
    module = COMMANDS.get(arguments[0] if arguments else "", ("front",))[0]
    return getattr(importlib.import_module(f"stackpipe.{module}"), "OWN_FAILURE", 1)


def main(arguments: Sequence[str], tools: Tools) -> int:
    """Runs one of the commands."""
    command, *rest = arguments or ["--help"]
    if command in ("-h", "--help"):
        print_help(NAME, USAGE, OPTIONS)
    if command in ("-V", "--version"):
        print_version(NAME, tools)
    if command not in COMMANDS:
        if "/" in command and os.path.isfile(command) and os.access(command, os.X_OK):
            raise UsageError(f"unknown command '{command}'; to record a program: stackpipe record -- {command}")
        kind = "option" if command.startswith("-") else "command"
        raise UsageError(f"unknown {kind} '{command}'; the commands are {', '.join(COMMANDS)}")
    if command == "help":
        return open_page(rest, tools)
    if command == "check":
        return check(rest, tools)
    return importlib.import_module(f"stackpipe.{COMMANDS[command][0]}").main(rest, tools)


def check(arguments: Sequence[str], tools: Tools) -> int:
    """Reports what can be recorded here, as pe-record --check does."""
    table = (Option("json", "", "", "print JSON"), *OPTIONS)
    line = options.read(table, arguments)
    if line.has("help"):
        print_help(NAME, "Usage: stackpipe check [--json]\nReport what can be recorded here, and what is missing.\n", table)
    if line.has("version"):
        print_version(NAME, tools)
    if line.operands or line.command is not None:
        raise UsageError("check: takes no operands")
    is_json = line.has("json")
    statuses, text = tools.read([["pe-record", "--check"]])
    lines = text_of(text).splitlines(keepends=True)
    best = [line for line in lines if line.startswith("--engine best would use")]
    others = [line for line in lines if not line.startswith("--engine ")]
    if is_json:
        columns = [(row[:_ANSWER].rstrip(), *re.split("  +", row[_ANSWER:].strip(), maxsplit=1), "") for row in others]
        print_json({"version": 1, "engine": best[0][_ANSWER:].strip() if best else None,
                    "answers": [{"what": printable(what), "answer": printable(answer), "more": printable(more)} for what, answer, more, *_ in columns]})
        return statuses[0]
    print_out("".join([*others, *(line.replace("--engine best would use".ljust(36), "stackpipe record uses the engine".ljust(36)) for line in best)]))
    return statuses[0]


def open_page(arguments: Sequence[str], tools: Tools) -> int:
    """Opens the manual page of a command or a tool, and returns the status."""
    if len(arguments) > 1:
        raise UsageError("help: one command or tool at a time")
    topic = arguments[0] if arguments else NAME
    topics = {page: page for page in PAGES} | {name: page for name, (_, _, page) in COMMANDS.items()}
    if topic not in topics:
        raise UsageError(f"help: unknown topic '{topic}'; the topics are {', '.join([*COMMANDS, *PAGES])}")
    from stackpipe import manual

    return manual.open_page(topics[topic], tools)
