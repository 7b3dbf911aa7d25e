"""What a recording prints without -v: one line on what was recorded, one on what is wrong with it, one on what was written."""
import contextlib
import re
from typing import Iterator, Sequence

from stackpipe.messages import count_of, say, say_lines
from stackpipe.pipeline import Tools

#: What is normal on most machines.
_USUAL = re.compile(r": no hardware counters here: sampling ")
#: What a note is about, the most important first: each kind has a pattern.  Any other note comes after these.
_KINDS = (re.compile(r"killed by signal|exited with|could not|cannot"), re.compile(r"\blost\b"), re.compile(r"incomplete"), re.compile(r"stripped|without a name"))
#: What the user has asked for: --span, --longer.
_ASKED = re.compile(r"^stackfold: .*(took longer than |: [0-9]+ calls?\b)")
_NAMELESS = re.compile(r"frames without a name \(([0-9.]+) %\)")
_STRIPPED_FILE = re.compile(r" % of the samples\)")


@contextlib.contextmanager
def lines(tools: Tools, is_wanted: bool) -> Iterator[None]:
    """In the block, the messages of tools and the names of outputs are kept, and printed in short at its end."""
    tools.is_short = is_wanted
    try:
        yield
    finally:
        tools.is_short = False
        asked = [note for note in tools.notes if _ASKED.search(note)]
        if text := "".join(dict.fromkeys(asked)) + most_useful([note for note in tools.notes if note not in asked]):
            say_lines(text)
        if tools.told:
            say(f"wrote {', '.join(tools.told)}")


def most_useful(notes: Sequence[str]) -> str:
    """Returns the most important of these lines, and how many others there are; empty if there is none."""
    left = list(dict.fromkeys(note for note in notes if not _USUAL.search(note)))
    stripped = stripped_line(left)
    if stripped:
        left = [stripped, *(note for note in left if not is_stripped(note))]
    if not left:
        return ""
    first = min(left, key=lambda note: next((rank for rank, kind in enumerate(_KINDS) if kind.search(note)), len(_KINDS)))
    others = len(left) - 1
    more = f" ({count_of(others, 'more note')}: -v)" if others else ""
    return f"{first.rstrip()}{more}\n"


def is_stripped(note: str) -> bool:
    """Is it one of the two lines of pe-symbolize about files without symbols?"""
    return _NAMELESS.search(note) is not None or bool(re.search(r" (is|are) stripped", note))


def stripped_line(notes: Sequence[str]) -> str:
    """Returns one line in place of both."""
    share = next((match[1] for note in notes if (match := _NAMELESS.search(note))), "")
    files = max((len(_STRIPPED_FILE.findall(note)) for note in notes if is_stripped(note)), default=0)
    if not share or not files:
        return ""
    return f"pe-symbolize: {share} % of frames have no name, in {count_of(files, 'stripped file')}: -v lists them and the packages with their symbols\n"
