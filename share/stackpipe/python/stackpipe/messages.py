"""Messages that are safe to print, and the two ways in which a command fails.

A name of a file, process or function is untrusted.  It may hold characters that control a terminal, or make text look
like other text.  So the commands escape control characters, bytes that are not UTF-8, and characters that end a line or
change the direction of text (Unicode Standard Annex 9).  The tools escape them in the same way (base/text.h).
"""
import os
import re
import sys

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Failure(Exception):
    """The command cannot go on.  The text is "subject: problem"; it is empty if the reason has been printed already.  Without a
    status, the command exits with that of its own failures."""

    def __init__(self, text: str, status: int | None = None):
        super().__init__(text)
        self.status = status


class UsageError(Failure):
    """The command line is wrong."""

    def __init__(self, text: str):
        super().__init__(f"{text} (see --help)", 2)


def program_name() -> str:
    """Returns the name that users typed: "stackpipe", or an older name such as "profile_run"."""
    return os.path.basename(sys.argv[0])


def typed_name(name: str) -> str:
    """Returns how the user typed the command `name`: an older name, or "stackpipe COMMAND"."""
    if program_name() != "stackpipe" or len(sys.argv) < 2 or name == "stackpipe":
        return name
    return "stackpipe " + " ".join(sys.argv[1:3] if name == "profile-push" else sys.argv[1:2])


def _escape(match: re.Match) -> str:
    code = ord(match[0])
    if code >= 0xD800 and code <= 0xDFFF:  # a byte that is not UTF-8, from surrogateescape
        return f"\\x{code & 0xFF:02x}"
    if code > 0xFF:
        return f"\\u{code:04x}"
    return "".join(f"\\x{byte:02x}" for byte in match[0].encode())


def printable(text: str) -> str:
    """Returns the text as one line, with escapes for unsafe characters."""
    return _UNSAFE.sub(_escape, text)


def printable_lines(text: str) -> str:
    """Like printable(), but keeps line breaks."""
    return "\n".join(printable(line) for line in text.split("\n"))


def text_of(data: bytes) -> str:
    """Converts any bytes to text; bytes_of() reverses this."""
    return data.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Returns the bytes of text that came from the system or from text_of()."""
    return text.encode("utf-8", "surrogateescape")


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of the data; raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view):]


def say(text: str) -> None:
    """Prints a line on standard error.  Ignores an error: there is no other place to report it."""
    try:
        write_all(2, bytes_of(f"{program_name()}: {printable(text)}\n"))
    except OSError:
        pass


def say_lines(text: str) -> None:
    """Prints the messages of tools on standard error, with unsafe characters escaped."""
    try:
        write_all(2, bytes_of(printable_lines(text)))
    except OSError:
        pass


def print_out(text: str, status: int = 1) -> None:
    """Writes text to standard output; on a terminal, with unsafe characters escaped.  Raises Failure if the disk is full.  If the reader has closed the pipe, the command
    ends without a message, as the tools do."""
    try:
        write_all(1, bytes_of(printable_lines(text) if os.isatty(1) else text))
    except BrokenPipeError:
        raise Failure("", 141) from None
    except OSError as error:
        raise Failure(f"stdout: {error.strerror}", status) from None


def print_json(members: dict) -> None:
    """Prints one object on a line of standard output.  Raises Failure as print_out()."""
    import json  # few commands need it
    print_out(json.dumps(members) + "\n")


def count_of(number: int, what: str) -> str:
    """Returns a count with its noun, such as "1 run" or "2 runs"."""
    return f"{number} {what}{'' if number == 1 else 's'}"
