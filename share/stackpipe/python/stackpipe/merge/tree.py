"""The tree of merges of merge_fleet(1): which merge reads which files, and whether the sums are right.

here.py, parallel.py and dask.py run the merges of this tree.
"""
import re
from decimal import Context, Decimal
from typing import Callable, NamedTuple, Sequence

from stackpipe.messages import Failure, say_lines

NAME = "merge_fleet"
#: A merge on another machine, or below GNU parallel, is this command.  It reads the names from standard input.
TASK = (NAME, "-j", "1", "--stats", "--files-from", "-")
# A report may come from another machine, so its numbers are bounded.
#: Its option for names that are to stay as they are.
NO_STRIP = "--no-strip"
_REPORT = re.compile(r"merge_fleet: ([0-9]{1,9}) files: read ([0-9]{1,20}) lines, a count of ([0-9]{1,40}(?:\.[0-9]{1,9})?); "
                     r"wrote ([0-9]{1,20}) stacks\n?")
#: The most characters of the messages of a merge on another machine.  The end is kept, which has the report.
MOST_SAID = 64 * 1024
_EXACT = Context(prec=1000)
_FEWEST_OF_A_BRANCH = 16


class Totals(NamedTuple):
    """The lines, stacks and counts that a merge has read and written."""

    lines: int
    read: Decimal
    stacks: int
    written: Decimal


#: The inputs of each merge, as positions among the files or among the results of the level before.
Level = list[range]
#: The files that a level has written, and the totals of each merge; None: a merge has not reported them.
Merged = tuple[list[str], list[Totals | None]]


def tree_of(count: int, jobs: int, fan_in: int, is_remote: bool = False) -> list[Level]:
    """Returns the levels of the merge of `count` files; the last level is one merge.  The first level has at least as many
    merges as run at a time; a few files need only one merge.  If the files are remote, the last merge reads only results."""
    size = min(max(-(-count // jobs), _FEWEST_OF_A_BRANCH), fan_in)
    levels: list[Level] = []
    while count > size or (is_remote and not levels):
        levels.append([range(begin, min(begin + size, count)) for begin in range(0, count, size)])
        count, size = len(levels[-1]), fan_in
    return [*levels, [range(count)]]


def climb(names: list[str], levels: Sequence[Level], merge_level: Callable[[list[str], Level], Merged],
          remove: Callable[[str], None]) -> Merged:
    """Merges level after level, and removes the results of each level after the next one.  Returns the results of the last
    level, and the totals of the first."""
    first: list[Totals | None] | None = None
    for level in levels:
        merged, totals = merge_level(names, level)
        if first is None:
            first = totals
        else:
            for name in names:
                remove(name)
        names = merged
    return names, first or []


def report_of(files: int, totals: Totals) -> str:
    """Returns the text that --stats reports."""
    return (f"{files} files: read {totals.lines} lines, a count of {text_of_count(totals.read)}; "
            f"wrote {totals.stacks} stacks")


def shortened(said: str, left_out: int = 0) -> str:
    """Returns the last lines of messages, which a machine may send without end.  `left_out` is the size of what was not read."""
    left_out += max(len(said) - MOST_SAID, 0)
    if not left_out:
        return said
    return f"{NAME}: {left_out} characters of messages left out\n" + said[-MOST_SAID:].partition("\n")[2]


def read_report(said: str, files: int) -> Totals | None:
    """Forwards the messages of a TASK.  Returns the totals in its report, or None if it has not merged all files."""
    lines = shortened(said).splitlines(keepends=True)
    report = _REPORT.fullmatch(lines[-1]) if lines else None
    say_lines("".join(lines[:-1] if report else lines))
    if report is None or int(report[1]) != files:
        return None
    return Totals(int(report[2]), Decimal(report[3]), int(report[4]), Decimal(report[3]))


def check_sums(first: Sequence[Totals | None], last: Totals | None) -> Totals:
    """Raises Failure unless the last merge has written the count that the first level has read."""
    if last is None or any(totals is None for totals in first):
        raise Failure("a merge did not report how much it read and wrote: something was lost")
    read = Decimal(0)
    for totals in first:
        read = _EXACT.add(read, totals.read)
    if read != last.written:
        raise Failure(f"a count of {text_of_count(read)} was read, but of {text_of_count(last.written)} written: "
                      "something was lost")
    return Totals(sum(totals.lines for totals in first), read, last.stacks, last.written)


def text_of_count(count: Decimal) -> str:
    """Formats a count without zeros at the end of its fraction."""
    text = format(count, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
