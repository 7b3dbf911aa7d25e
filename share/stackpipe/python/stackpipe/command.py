"""Runs a command: prepares its descriptors, catches its errors, answers --help and --version."""
import importlib
import os
import signal
import sys
from typing import NoReturn, Sequence

from stackpipe import messages, options
from stackpipe.messages import Failure
from stackpipe.pipeline import Stopped, Tools

#: The older names of commands, and their modules.
OLDER_NAMES = {"flamegraph": "flamegraph", "hotcold": "hotcold", "merge_fleet": "merge.merge_fleet", "profile-push": "push.profile_push",
               "profile_run": "runs.profile_run"}


def _plug_descriptors() -> None:
    """Opens /dev/null for closed standard descriptors, in a mode in which reads or writes fail.  So no file that the
    command opens later gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open("/dev/null", os.O_RDONLY if number else os.O_WRONLY)


def _restore_locale() -> None:
    """Python sets LC_CTYPE if the locale is C (PEP 538).  Child processes must get the user's environment, so this removes
    it."""
    if os.environ.get("LC_CTYPE") == "C.UTF-8":
        with open("/proc/self/environ", "rb") as file:
            if b"\0LC_CTYPE=" not in b"\0" + file.read():
                del os.environ["LC_CTYPE"]


def read_options(name: str, usage: str, table: Sequence[options.Option], arguments: Sequence[str], tools: Tools,
                 runs_command: bool = False) -> options.CommandLine:
    """Returns the command line.  Answers --help and --version, which end the command."""
    tools.options = [option.name for option in table]
    line = options.read(table, arguments, runs_command=runs_command)
    if line.has("help"):
        print_help(name, usage, table)
    if line.has("version"):
        print_version(name, tools)
    return line


def print_help(name: str, usage: str, table: Sequence[options.Option], closing: str = "") -> NoReturn:
    """Prints the usage, the options, and a reference to the man page.  The usage names the command as the user typed it."""
    usage = usage.replace(f"Usage: {name} ", f"Usage: {messages.typed_name(name)} ")
    messages.print_out(f"{usage}\nOptions:\n{options.describe(table)}\n{closing}More in {name}(1).\n")
    raise Failure("", 0)


def print_version(name: str, tools: Tools) -> NoReturn:
    """Prints the version of the tools, which is also that of the commands."""
    statuses, text = tools.read([["stackfold", "--version"]])
    if statuses != [0]:
        raise Failure("", statuses[0])
    messages.print_out(f"{messages.program_name()} {messages.text_of(text).partition(' ')[2]}")
    raise Failure("", 0)


def run(here: str) -> NoReturn:
    """Runs the command that the user typed, and exits with its status.  `here` is the folder of the command."""
    _plug_descriptors()
    _restore_locale()
    try:
        status = _run(here)
    except (KeyboardInterrupt, Stopped) as stop:  # end by the signal, like a program that does not handle it
        number = getattr(stop, "number", signal.SIGINT)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        status = 128 + number
    sys.exit(status)


def _run(here: str) -> int:
    """Returns the exit status."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    module = importlib.import_module(f"stackpipe.{OLDER_NAMES.get(messages.program_name(), 'front')}")
    own_failure = getattr(module, "own_failure", lambda arguments: getattr(module, "OWN_FAILURE", 1))(sys.argv[1:])
    try:
        return module.main(sys.argv[1:], Tools(here))
    except Failure as failure:
        if str(failure):
            messages.say(str(failure))
        return own_failure if failure.status is None else failure.status
    except MemoryError:
        messages.say("out of memory")
        return own_failure
    except OSError as error:
        messages.say(f"{error.filename}: {error.strerror}" if error.filename else f"{error.strerror}")
        return own_failure
