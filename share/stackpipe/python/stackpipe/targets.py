"""What a recording command records: a command that it starts, processes, threads, or the whole system."""
import re
from typing import NamedTuple

from stackpipe import outputs
from stackpipe.messages import UsageError, say, text_of
from stackpipe.options import CommandLine, Option

_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?|\.[0-9]{1,9}")
PID = Option("pid", "p", "PID|NAME[,...]", "record all threads of these processes")
TID = Option("tid", "t", "TID[,TID]", "record these threads")
ALL = Option("all", "a", "", "record the whole system")
CHILDREN = Option("children", "", "", "with --pid: also record the processes that they have started")
DURATION = Option("duration", "d", "S", "stop after S seconds; a command that still runs gets SIGTERM")
FREQ = Option("freq", "F", "HZ", "samples per second on each CPU, or max: the kernel's limit (default 997 for a command, else 99)")
OPTIONS = (PID, CHILDREN, TID, ALL, DURATION, FREQ)
_HZ = re.compile(r"(?=.*[1-9])[0-9]{1,9}(\.[0-9]{1,9})?")
#: Options of ours, and the values with which they look misplaced among the arguments of a command.
_MISPLACED = {"-o": re.compile(".*(" + "|".join(re.escape(form.suffix) for form in outputs.FORMS.values()) + ")"),
              "-d": _SECONDS, "-F": _HZ, "-p": re.compile("[0-9]+")}
_KINDS = {"pid": "process", "tid": "thread", "all": "the whole system"}


class Target(NamedTuple):
    """What to record."""

    options: list[str]  #: the options of the recorders that select it; empty for a command
    command: list[str]  #: the command to start; empty: what runs already
    title: str  #: describes it to people
    limit: list[str]  #: the option of the recorders for the duration


def read_target(line: CommandLine, example: str) -> Target:
    """Returns the target that the command line names.  Raises UsageError, which shows the `example`."""
    chosen = [name for name in _KINDS if line.has(name)]
    command = line.command or []
    if len(chosen) + bool(command) > 1:
        names = [f"--{name}" for name in chosen] + ["a command"] * bool(command)
        raise UsageError(f"{', '.join(names)}: choose one of them")
    if not chosen and not command:
        raise UsageError(f"nothing to record: give a command or -p PID; for example: {example}")
    if line.has("children") and "pid" not in chosen:
        raise UsageError("--children: only with --pid")
    if line.has("freq") and not (line.last("freq") == "max" or _HZ.fullmatch(line.last("freq"))):
        raise UsageError(f"--freq: neither a number of samples per second nor max: '{line.last('freq')}'")
    if command and not command[0]:
        raise UsageError("the name of the command is empty")
    duration = line.last("duration")
    if line.has("duration") and not (_SECONDS.fullmatch(duration) and float(duration) > 0):
        raise UsageError(f"--duration: not a number of seconds above 0: '{duration}'")
    limit = ["-d", duration] if duration else []
    if command and not line.has_dashes and not line.has("quiet"):
        warn_of_misplaced(command)
    if command:
        return Target([], command, " ".join(command), limit)
    kind = chosen[0]
    if kind == "all":
        return Target(["-a"], [], _KINDS[kind], limit)
    value = ",".join(line.values[kind])
    if not all(line.values[kind]):
        raise UsageError(f"--{kind}: give a process or thread")
    name = command_line_of(value) if kind == "pid" else ""
    more = ["--children"] if line.has("children") else []
    return Target([f"-{kind[0]}", value, *more], [], f"{_KINDS[kind]} {value}{name and f' ({name})'}", limit)


def warn_of_misplaced(command: list[str]) -> None:
    """Prints a warning if the arguments of a command have an option that looks like one of ours."""
    for option, value in zip(command[1:], command[2:]):
        if option in _MISPLACED and _MISPLACED[option].fullmatch(value):
            say(f"'{option} {value}' was passed to {command[0]}; put options of stackpipe before the command")
            return


def command_line_of(pid: str) -> str:
    """Returns the start of a process's command line; empty if there is no such process."""
    if not pid.isdecimal():
        return ""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return text_of(file.read(200).replace(b"\0", b" ")).rstrip(" ")
    except OSError:
        return ""
