"""Options of a command.  The same table parses its command line and prints its --help.

argparse is not strict enough: it parses a value that starts with "-" as an option and reorders operands.  It changed both
from 3.11 to 3.14.  The grammar is that of the tools: "--name VALUE", "--name=VALUE", "-n VALUE" and "-nVALUE", without
abbreviations.  Operands may be anywhere before "--".
"""
import re
from typing import Callable, NamedTuple, Sequence

from stackpipe.messages import UsageError

_TEXT_COLUMN = 28
_WIDTH = 80


class Option(NamedTuple):
    """An option of a command."""

    name: str
    letter: str
    value: str  #: the name of its value; empty: it has none
    text: str  #: empty: --help leaves it out
    repeats: bool = False  #: it may be given several times
    choices: tuple[str, ...] = ()  #: the allowed values; empty: see `value`
    also: tuple[str, ...] = ()  #: older names, which still work; --help leaves them out


HELP = Option("help", "h", "", "print this help and exit")
VERSION = Option("version", "V", "", "print the version and exit")


class CommandLine(NamedTuple):
    """A parsed command line."""

    values: dict[str, list[str]]  #: the values of each option, in order
    operands: list[str]
    command: list[str] | None  #: the words after "--"; None: there is no "--"
    has_dashes: bool = True  #: false: the command began without "--"

    def last(self, name: str, otherwise: str = "") -> str:
        """Returns the last value of an option; earlier ones are ignored."""
        return self.values[name][-1] if name in self.values else otherwise

    def has(self, name: str) -> bool:
        """Was the option given?"""
        return name in self.values


def read(options: Sequence[Option], arguments: Sequence[str], check: Callable[[str, str], None] = lambda name, value: None,
         runs_command: bool = False) -> CommandLine:
    """Parses a command line.  Calls `check` with each option and its value, in order.  With `runs_command`, the first operand
    starts a command, whose own options follow.  Raises UsageError."""
    known = {f"--{option.name}": option for option in options}
    known |= {f"-{option.letter}": option for option in options if option.letter}
    known |= {f"--{name}": option for option in options for name in option.also}
    values: dict[str, list[str]] = {}
    operands: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            return CommandLine(values, operands, list(words))
        if runs_command and not word.startswith("-"):
            return CommandLine(values, [], [word, *words], has_dashes=False)
        if not word.startswith("-") or word == "-":
            operands.append(word)
            continue
        if word.startswith("--"):
            spelling, is_joined, value = word.partition("=")
        else:
            spelling, is_joined, value = word[:2], word[2:], word[2:]
        option = known.get(spelling)
        if option is None or (is_joined and not option.value):
            raise UsageError(f"unrecognised option '{word}'")
        if option.value and not is_joined:
            try:
                value = next(words)
            except StopIteration:
                raise UsageError(f"{word}: needs a value") from None
        check(option.name, value)
        values.setdefault(option.name, []).append(value)
        if option in (HELP, VERSION):  # the rest is ignored
            break
    return CommandLine(values, operands, None)


def read_bytes(name: str, text: str) -> int:
    """Parses a number of bytes; K, M and G are powers of 1024.  Raises UsageError."""
    match = re.fullmatch(r"([0-9]{1,15})([KMG]?)", text, re.ASCII | re.IGNORECASE)
    count = int(match[1]) << 10 * " KMG".index(match[2].upper() or " ") if match else 0
    if not 0 < count <= 1 << 40:
        raise UsageError(f"--{name}: not a number of bytes up to 1024G, such as 256M: '{text}'")
    return count


_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


def read_seconds(name: str, text: str, least: float = 0.001, most: float = 86400) -> float:
    """Parses a time such as 500ms, 30s or 10m.  Raises UsageError."""
    match = re.fullmatch(r"([0-9]{1,9})(ms|s|m|h)", text, re.ASCII)
    seconds = int(match[1]) * _UNITS[match[2]] if match else -1
    if not least <= seconds <= most:
        raise UsageError(f"--{name}: not a time from {text_of_seconds(least)} to {text_of_seconds(most)}: '{text}'")
    return seconds


def text_of_seconds(seconds: float) -> str:
    """Formats a time as read_seconds() reads it; fractions of a millisecond are lost."""
    whole = round(seconds * 1000)
    unit, factor = next((unit, factor) for unit, factor in (("h", 3600000), ("m", 60000), ("s", 1000), ("ms", 1)) if whole % factor == 0 and whole or factor == 1)
    return f"{whole // factor}{unit}"


def describe(options: Sequence[Option]) -> str:
    """Returns the lines of --help that list the options."""
    import textwrap
    lines = []
    for option in options:
        if not option.text:
            continue
        begin = f"  -{option.letter}, " if option.letter else "      "
        begin += f"--{option.name}{' ' + option.value if option.value else ''}"
        begin = begin.ljust(_TEXT_COLUMN) if len(begin) < _TEXT_COLUMN else begin + "  "
        lines += textwrap.wrap(begin + option.text, _WIDTH, subsequent_indent=" " * _TEXT_COLUMN, break_on_hyphens=False,
                               drop_whitespace=True)
    return "\n".join(lines) + "\n"
