"""Options of a command: one table, by which its command line is read and its --help is written.

argparse is not strict enough: it takes a value that begins with "-" for an option, moves operands about, and changed
both from 3.11 to 3.14.  The grammar is that of the tools: no abbreviations; "--name VALUE", "--name=VALUE", "-n VALUE"
and "-nVALUE"; operands anywhere in front of "--".
"""
import textwrap
from typing import Callable, NamedTuple, Sequence

from stackpipe.messages import UsageError

_TEXT_COLUMN = 28
_WIDTH = 80


class Option(NamedTuple):
    """One of a command's options."""

    name: str
    letter: str
    value: str  #: what its value is called; empty: it has none
    text: str
    repeats: bool = False  #: it may be given several times
    choices: tuple[str, ...] = ()  #: what its value may be; empty: see its name


HELP = Option("help", "h", "", "print this help and exit")
VERSION = Option("version", "V", "", "print the version and exit")


class CommandLine(NamedTuple):
    """What was given."""

    values: dict[str, list[str]]  #: of each option, in order
    operands: list[str]
    command: list[str] | None  #: what follows "--"; None: no "--" is there

    def last(self, name: str, otherwise: str = "") -> str:
        """The last value of an option; the others do not count."""
        return self.values[name][-1] if name in self.values else otherwise

    def has(self, name: str) -> bool:
        """Was the option given?"""
        return name in self.values


def read(options: Sequence[Option], arguments: Sequence[str],
         check: Callable[[str, str], None] = lambda name, value: None) -> CommandLine:
    """Takes a command line apart.  `check` sees each option and its value in order.  Raises UsageError."""
    known = {f"--{option.name}": option for option in options}
    known |= {f"-{option.letter}": option for option in options if option.letter}
    values: dict[str, list[str]] = {}
    operands: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            return CommandLine(values, operands, list(words))
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
                raise UsageError(f"{word}: a value is missing") from None
        check(option.name, value)
        values.setdefault(option.name, []).append(value)
        if option in (HELP, VERSION):  # nothing behind it counts
            break
    return CommandLine(values, operands, None)


def describe(options: Sequence[Option]) -> str:
    """The lines of --help that list them."""
    lines = []
    for option in options:
        begin = f"  -{option.letter}, " if option.letter else "      "
        begin += f"--{option.name}{' ' + option.value if option.value else ''}"
        begin = begin.ljust(_TEXT_COLUMN) if len(begin) < _TEXT_COLUMN else begin + "  "
        lines += textwrap.wrap(begin + option.text, _WIDTH, subsequent_indent=" " * _TEXT_COLUMN, break_on_hyphens=False,
                               drop_whitespace=True)
    return "\n".join(lines) + "\n"
