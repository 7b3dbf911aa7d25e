"""stackpipe runs: the commands of profile_run(1), and profile-push(1)."""
from typing import Sequence

from stackpipe.command import print_help
from stackpipe.messages import UsageError
from stackpipe.pipeline import Tools
from stackpipe.push import profile_push
from stackpipe.runs import profile_run

NAME = "profile_run"
_SHOW, _PUSH = "show", "push"
#: Each command, and its text in --help.
COMMANDS = {
    "capture": "record a program, a process or the system as a new run",
    "list": "list the runs",
    _SHOW: "print a run's hot spots, with the usual advice for them",
    "diff": "compare two runs: a table, and a flame graph of the differences",
    "trend": "print and draw a function's share in all runs",
    "ci": "compare with a baseline: a Markdown summary, and an exit status",
    "watch": "record continuously at 1 Hz, a file an hour; raise alerts",
    _PUSH: "send a pprof profile to a server, such as Pyroscope",
    "flamegraph": "draw a run's flame graph again; options after -- go to flamesvg",
}
_LISTED = "".join(f"  {name:<12} {text}\n" for name, text in COMMANDS.items())
USAGE = f"""Usage: stackpipe runs COMMAND [OPTION]... [-- PROGRAM [ARGUMENT]...]
Record profiles, keep each as a folder, report and compare them.

Commands:
{_LISTED}"""


def main(arguments: Sequence[str], tools: Tools) -> int:
    """Runs one of the commands."""
    command, *rest = arguments or ["--help"]
    if command in ("-h", "--help"):
        print_help(NAME, USAGE, profile_run.OPTIONS, profile_run.CLOSING)
    if command == _PUSH:
        return profile_push.main(rest, tools)
    if command not in COMMANDS and command not in (*profile_run.COMMANDS, "-V", "--version"):
        raise UsageError(f"runs: unknown command '{command}'; the commands are {', '.join(COMMANDS)}")
    return profile_run.main(["analyze" if command == _SHOW else command, *rest], tools)
