"""Messages that are safe to print, and the two ways in which a command fails.

A name of a file, process or function may hold anything.  Nothing that steers a terminal, or makes text look like other
text, is printed as it is: control characters, bytes that are no UTF-8, and the characters that change the direction of
text (Unicode Standard Annex 9) or end a line.  The tools write them in the same way (base/quote.h).
"""
import os
import re

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Failure(Exception):
    """The command cannot go on: "subject: problem"; without a text, somebody else has said why."""

    def __init__(self, text: str, status: int = 1):
        super().__init__(text)
        self.status = status


class UsageError(Failure):
    """The command line is wrong."""

    def __init__(self, text: str):
        super().__init__(f"{text} (see --help)", 2)


def _escape(match: re.Match) -> str:
    code = ord(match[0])
    if code >= 0xD800 and code <= 0xDFFF:  # a byte that is no UTF-8, by surrogateescape
        return f"\\x{code & 0xFF:02x}"
    if code > 0xFF:
        return f"\\u{code:04x}"
    return "".join(f"\\x{byte:02x}" for byte in match[0].encode())


def printable(text: str) -> str:
    """The text in one line, with escapes for all that is not safe to print."""
    return _UNSAFE.sub(_escape, text)


def printable_lines(text: str) -> str:
    """The same of several lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def text_of(data: bytes) -> str:
    """Text of any bytes; bytes_of() gives them back."""
    return data.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """The bytes of text that came from the system or from text_of()."""
    return text.encode("utf-8", "surrogateescape")


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of it; raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view):]


def say(command: str, text: str) -> None:
    """A line on standard error.  If it cannot be printed, nobody can be told."""
    try:
        write_all(2, bytes_of(f"{command}: {printable(text)}\n"))
    except OSError:
        pass


def say_lines(text: str) -> None:
    """What tools have said, on standard error, made safe."""
    try:
        write_all(2, bytes_of(printable_lines(text)))
    except OSError:
        pass


def print_out(text: str, status: int = 1) -> None:
    """Writes text to standard output.  A full disk does not look like success; a reader that has gone ends the command
    without a word, as it ends the tools."""
    try:
        write_all(1, bytes_of(text))
    except BrokenPipeError:
        raise Failure("", 141) from None
    except OSError as error:
        raise Failure(f"stdout: {error.strerror}", status) from None


def count_of(number: int, what: str) -> str:
    """ "1 run", "2 runs"."""
    return f"{number} {what}{'' if number == 1 else 's'}"
