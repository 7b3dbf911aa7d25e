"""profile_run(1): records profiles, keeps each as a folder, reports and compares them.  It runs the other tools.

This module parses the command line.  Each command has its own module, which is imported when the command runs.
"""
import importlib
import re
from typing import NamedTuple, Sequence

from stackpipe import options, pipeline
from stackpipe.command import print_help, print_version
from stackpipe.messages import Failure, UsageError, print_json, print_out
from stackpipe.options import HELP, VERSION, Option

NAME = "profile_run"
#: Each command, the module with its run_COMMAND(), and its text in --help.
COMMANDS = {
    "capture": ("capture", "record a program, a process or the system as a new run"),
    "flamegraph": ("report", "draw a run's flame graph again; options after -- go to flamesvg"),
    "analyze": ("report", "print a run's hot spots, with the usual advice for them"),
    "diff": ("compare", "compare two runs: a table, and a flame graph of the differences"),
    "list": ("profile_run", "list the runs"),
    "trend": ("trend", "print and draw a function's share in all runs"),
    "watch": ("watch", "record continuously at 1 Hz, a file an hour; raise alerts"),
    "ci": ("compare", "compare with a baseline: a Markdown summary, and an exit status"),
}
MODES = ("default", "quick", "detailed", "system", "offcpu", "heap", "hotcold")
_LISTED = "".join(f"  {name:<12} {text}\n" for name, (_, text) in COMMANDS.items())
USAGE = f"""Usage: profile_run COMMAND [OPTION]... [-- PROGRAM [ARGUMENT]...]
Record profiles, keep each as a folder, report and compare them.

Commands:
{_LISTED}"""
_OPERANDS = {"analyze": ("run",), "flamegraph": ("run",), "diff": ("before", "after")}  # the options for which they stand
CLOSING = "A RUN is a name in --output, a folder, latest or previous.\n"
OPTIONS = (
    Option("output", "o", "DIR", "the folder of the runs (default profiles)"),
    Option("workload", "", "TEXT", "the program and its arguments, split at blanks; or give them after --"),
    Option("pid", "p", "PID", "record this process; watch: or all of this name, also when they start again"),
    Option("duration", "d", "S", "stop after S seconds, and end the program with SIGTERM (default for a program: when it ends; "
           "for a process: as the mode says)"),
    Option("freq", "F", "HZ", "samples per second and CPU (default for a program 997, for a process as the mode says, for watch 1)",
           also=("rate",)),
    Option("mode", "", "MODE", "default (10 s at 499 Hz), quick (5 s), detailed (20 s at 997 Hz), system (10 s at 99 Hz); offcpu, "
           "heap, hotcold", choices=MODES),
    Option("run", "", "RUN", "the run to show (default latest)"),
    Option("baseline", "", "RUN", "the run to compare with"),
    Option("before", "", "RUN", "diff: the first run"),
    Option("after", "", "RUN", "diff: the second run (default latest)"),
    Option("time", "", "FROM,TO", "show, flamegraph: only what happened between two times: 14:05,14:10 or +5s, or -30s"),
    Option("top", "n", "N", "rows of tables (default 20)"),
    Option("json", "", "", "list, show, diff: print JSON"),
    Option("markdown", "", "", "show, diff: print a table for tickets"),
    Option("svg", "", "FILE", "the flame graph to write"),
    Option("work", "", "REGEX", "capture, ci: find the amount of work in the program's output, to compare the cost per unit"),
    Option("runs", "", "N", "ci: record N runs of each side, in turn (default 5)"),
    Option("shares", "", "", "ci: compare shares of the samples, not the CPU time of a run"),
    Option("baseline-workload", "", "TEXT", "ci: the program before the change, recorded in turn with the other"),
    Option("no-strip", "", "", "ci, diff, trend: keep parts of names that differ between builds and runs"),
    Option("fail-over", "", "N%", "ci, watch: the growth that counts (default 1% of the cost of a run, 5% of all samples)"),
    Option("summary", "", "FILE", "ci: append the summary to FILE instead"),
    Option("interval", "", "S", "watch: seconds between checks (default 60)"),
    Option("keep", "", "N", "watch: number of hours to keep (default 168)"),
    Option("keep-size", "", "SIZE", "watch: disk space for these hours (default 1G)"),
    Option("limit", "", "FN=N%", "watch: raise an alert if FN's share exceeds N percent", repeats=True),
    Option("alert", "", "TEXT", "watch: the program to run for an alert, split at blanks"),
    Option("push", "", "URL", "watch: send profiles to this server, such as Pyroscope"),
    Option("push-name", "", "APP", "watch: the application's name (default: the process's name)"),
    Option("push-label", "", "KEY=VALUE", "watch: a label of the profiles; hostname is always one", repeats=True),
    Option("push-tenant", "", "ID", "watch: the tenant, if the server has several"),
    Option("token-file", "", "FILE", "watch: a file with the server's token, or USER:PASSWORD"),
    Option("ca-file", "", "FILE", "watch: trust the certificates in FILE, not the system's"),
    Option("spool-size", "", "SIZE", "watch: disk space for profiles that wait for the server (default 256M)"),
    Option("insecure-http", "", "", "watch: allow http, which anyone on the network can read"),
    HELP,
    VERSION,
)
#: Options that only some commands have.
ONLY_WITH = {"json": ("list", "analyze", "diff"), "markdown": ("analyze", "diff"), "work": ("capture", "ci"), "no-strip": ("ci", "diff", "trend"), "runs": ("ci",), "shares": ("ci",), "baseline-workload": ("ci",),
             "freq": ("capture", "ci", "watch"), "time": ("analyze", "flamegraph"), **dict.fromkeys(("interval", "keep", "keep-size", "limit", "alert", "push", "push-name", "push-label", "push-tenant",
                              "token-file", "ca-file", "spool-size", "insecure-http"), ("watch",))}
_COUNT = "0|[1-9][0-9]{0,8}"
_DECIMAL = r"[0-9]{1,9}(\.[0-9]{1,9})?"
#: The allowed forms of values, and their descriptions in messages.
FORMS = {"pid": (_COUNT, "a process"), "duration": (_DECIMAL, "a number of seconds"),
         "runs": ("[1-9][0-9]{0,8}", "a number above 0"), "mode": ("|".join(MODES), f"one of {', '.join(MODES)}"),
         "top": (_COUNT, "a number of functions"), "fail-over": (r"[0-9]{1,3}(\.[0-9]{1,9})?%?", "a percentage"),
         "freq": (_COUNT, "a number of samples per second"), "interval": (f"(?=.*[1-9]){_DECIMAL}", "a number of seconds"),
         "keep": (_COUNT, "a number of hours"), "limit": (r"(?s:.+)=[0-9]{1,3}(\.[0-9]{1,9})?%?", "FUNCTION=PERCENT"),
         "output": ("(?s:.+)", "a folder"), "push": ("(?s:.+)", "a server"), "workload": (r"(?s:.*[^ \t].*)", "a program"),
         "baseline-workload": (r"(?s:.*[^ \t].*)", "a program")}
_WATCHED = (r"[^/,\0\n]+", "a process, or the name of one")  #: what watch accepts for --pid
#: The character classes of POSIX, so that users can write regular expressions as for grep -E.
_CLASSES = {"alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": " \\t", "digit": "0-9", "lower": "a-z", "punct": "!-/:-@\\[-`{-~",
            "space": "\\s", "upper": "A-Z", "xdigit": "0-9a-fA-F"}


class Settings(NamedTuple):
    """The command line, after the checks."""

    command: str
    line: options.CommandLine

    @property
    def output(self) -> str:
        """The folder of runs; it never starts with "-", so no program parses it as an option."""
        return path_of(self.line.last("output", "profiles"))

    @property
    def svg(self) -> str:
        """The SVG file to write; empty: the default."""
        return path_of(self.line.last("svg"))

    @property
    def fail_over(self) -> str:
        """The limit of growth, with its "%"."""
        return self.line.last("fail-over", "5").removesuffix("%") + "%"

    @property
    def top(self) -> int:
        """The number of functions to report."""
        return int(self.line.last("top", "20"))

    @property
    def table(self) -> list[str]:
        """The options of stacktop and flamediff for the form of a table."""
        return [f"--{name}" for name in ("json", "markdown") if self.line.has(name)]

    @property
    def pid(self) -> str:
        """The process to record; empty: none."""
        return self.line.last("pid")

    @property
    def work(self) -> re.Pattern | None:
        """The expression that finds the units of work in the program's output."""
        return compile_regex(self.line.last("work")) if self.line.has("work") else None

    def workload(self) -> list[str]:
        """Returns the program to record and its arguments; empty: none."""
        given = words_of(self.line.last("workload"))
        if self.line.command:
            if given:
                raise UsageError("--workload, --: cannot be combined")
            return self.line.command
        return given


def words_of(text: str) -> list[str]:
    """Splits text at blanks and tabs; quotes, patterns and variables have no meaning."""
    return [word for word in re.split("[ \t]+", text) if word]


def path_of(path: str) -> str:
    """Returns a path that no program parses as an option."""
    return f"./{path}" if path.startswith("-") else path


def compile_regex(text: str) -> re.Pattern:
    """Compiles a regular expression from the user; raises re.error."""
    if not text:
        raise re.error("empty")
    return re.compile(re.sub(r"\[:([a-z]+):\]", lambda match: _CLASSES.get(match[1], match[0]), text))


def check_value(command: str, name: str, value: str) -> None:
    """Raises UsageError if the command does not have the option, or its value is invalid."""
    commands = ONLY_WITH.get(name, (command,))
    if command not in commands:
        raise UsageError(f"--{name}: only with {' or '.join(commands)}")
    if name == "work":
        try:
            compile_regex(value)
        except re.error:
            raise UsageError(f"--work: not a regular expression: '{value}'") from None
    form, what = _WATCHED if (command, name) == ("watch", "pid") else FORMS.get(name, ("(?s:.*)", ""))
    if not re.fullmatch(form, value):
        raise UsageError(f"--{name}: not {what}: '{value}'")


def main(arguments: Sequence[str], tools: pipeline.Tools) -> int:
    """Runs one of the commands."""
    command = arguments[0] if arguments else "--help"
    if command in ("-V", "--version"):
        print_version(NAME, tools)
    if command in ("-h", "--help"):
        print_help(NAME, USAGE, OPTIONS, CLOSING)
    if command not in COMMANDS:
        raise UsageError(f"unknown command '{command}'; the commands are {', '.join(COMMANDS)}")
    tools.options = [option.name for option in OPTIONS]
    line = options.read(OPTIONS, arguments[1:], lambda name, value: check_value(command, name, value),
                        runs_command=command in ("capture", "ci"))
    line = with_runs(command, line)
    if line.has("help"):
        text = COMMANDS[command][1]
        operands = "".join(f" [{name.upper()}]" for name in _OPERANDS.get(command, ()))
        print_help(NAME, f"Usage: {NAME} {command} [OPTION]...{operands}\n{text[0].upper()}{text[1:]}.\n",
                   [option for option in OPTIONS if command in ONLY_WITH.get(option.name, (command,))], CLOSING)
    if line.has("version"):
        print_version(NAME, tools)
    if command == "trend":
        if len(line.operands) != 1:
            raise UsageError("trend: give one function")
    elif line.operands:
        raise UsageError(f"{command}: unexpected '{line.operands[-1 if command in _OPERANDS else 0]}'")
    module = importlib.import_module(f"stackpipe.runs.{COMMANDS[command][0]}")
    return getattr(module, f"run_{command}")(Settings(command, line), tools)


def with_runs(command: str, line: options.CommandLine) -> options.CommandLine:
    """Returns the command line with its operands as the options for which they stand: a run to analyze, or two to compare."""
    names = [name for name in _OPERANDS.get(command, ()) if not line.has(name)]
    if len(line.operands) > len(names):
        return line
    return line._replace(values={**line.values, **{name: [word] for name, word in zip(names, line.operands)}}, operands=[])


def run_list(settings: Settings, tools: pipeline.Tools) -> int:
    """Prints a table of all runs."""
    from stackpipe.runs import store

    runs = store.read_runs(settings.output, with_broken=True)
    if settings.line.has("json"):
        print_json({"version": 1, "runs": [store.members_of(run) for run in runs]})
    else:
        print_out(store.table_of(runs))
    store.print_drafts(settings.output)
    return 0


def need(tools: pipeline.Tools, tool: str, purpose: str) -> None:
    """Raises Failure if a tool is not installed."""
    try:
        tools.find(tool)
    except Failure:
        raise Failure(f"{purpose} needs {tool}, which is not installed") from None
