"""How a command is run: its descriptors, its one catch of errors, its --help and --version."""
import importlib
import os
import signal
import sys
from typing import NoReturn, Sequence

from stackpipe import messages, options
from stackpipe.messages import Failure
from stackpipe.pipeline import Tools


def _plug_descriptors() -> None:
    """Nothing that is opened here becomes a standard descriptor that is closed; what is printed there fails."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open("/dev/null", os.O_RDONLY if number else os.O_WRONLY)


def _restore_locale() -> None:
    """Python sets LC_CTYPE where the locale is C (PEP 538).  What it starts gets what the user has."""
    if os.environ.get("LC_CTYPE") == "C.UTF-8":
        with open("/proc/self/environ", "rb") as file:
            if b"\0LC_CTYPE=" not in b"\0" + file.read():
                del os.environ["LC_CTYPE"]


def read_options(name: str, usage: str, table: Sequence[options.Option], arguments: Sequence[str], tools: Tools) -> options.CommandLine:
    """The command line; --help and --version are answered here, and end the command."""
    line = options.read(table, arguments)
    if line.has("help"):
        print_help(name, usage, table)
    if line.has("version"):
        print_version(name, tools)
    return line


def print_help(name: str, usage: str, table: Sequence[options.Option], closing: str = "") -> NoReturn:
    """The usage, the options, and where there is more."""
    messages.print_out(f"{usage}\nOptions:\n{options.describe(table)}\n{closing}More in {name}(1).\n")
    raise Failure("", 0)


def print_version(name: str, tools: Tools) -> NoReturn:
    """The version of the tools is that of the commands."""
    statuses, text = tools.read([["stackfold", "--version"]])
    if statuses != [0]:
        raise Failure("", statuses[0])
    messages.print_out(f"{name} {messages.text_of(text).partition(' ')[2]}")
    raise Failure("", 0)


def run(name: str, here: str) -> NoReturn:
    """Runs the module of a command, and ends as it says.  `here` is the folder of the command."""
    _plug_descriptors()
    _restore_locale()
    module = importlib.import_module("stackpipe." + name.replace("-", "_"))
    try:
        status = module.main(sys.argv[1:], Tools(here))
    except Failure as failure:
        if str(failure):
            messages.say(name, str(failure))
        status = failure.status
    except KeyboardInterrupt:  # as a program ends that does nothing about it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        status = 130
    except MemoryError:
        messages.say(name, "out of memory")
        status = getattr(module, "OWN_FAILURE", 1)
    except OSError as error:
        messages.say(name, f"{error.filename}: {error.strerror}" if error.filename else f"{error.strerror}")
        status = getattr(module, "OWN_FAILURE", 1)
    sys.exit(status)
