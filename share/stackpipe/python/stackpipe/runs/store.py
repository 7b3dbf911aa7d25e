"""The folder of runs: their names, their files, and how to find one.

A run is OUTPUT/YYYY-MM-DDTHH-MM-SSZ[-N], and holds
  named.pe.gz     the sample stream with symbols, pe-stream(5)
  stacks.folded   folded(5)
  flame.svg       the flame graph
  report.txt      for people
  meta.json       for programs
  messages.txt    the messages of the tools
A run is written under a name that starts with a dot, and renamed once it is complete.  Users may have edited any part.
"""
import json
import os
import re
from typing import NamedTuple

from stackpipe import files
from stackpipe.messages import Failure, count_of, printable, say, text_of

FORMAT = 1
_RUN = re.compile(r"([0-9]{4}-.*T.*)Z(?:-([0-9]{1,9}))?.*", re.DOTALL)
#: The units of modes that do not count samples.  The noise of times is unknown to every comparison.
_UNITS = {"offcpu": "us", "hotcold": "us", "heap": "bytes"}


_MOST_META_BYTES = 16 << 20
_MOST_NUMBER = 1e18  #: more than any count of ours; floats have all of its digits but three


def _read_integer(text: str) -> int | float:
    """Reads an integer in JSON.  Python refuses to read more than some thousand digits, or to print them."""
    return int(text) if len(text) < 20 else float(text)


def unit_of(mode: str) -> str:
    """Returns the unit of a mode's counts."""
    return _UNITS.get(mode, "samples")


def text_of_number(number: int | float) -> str:
    """Formats a number as short as possible without an exponent."""
    return str(number) if isinstance(number, int) else f"{number:.9f}".rstrip("0").rstrip(".")


class Run(NamedTuple):
    """A folder that is a run, or has the name of one."""

    folder: str

    @property
    def name(self) -> str:
        """The run's name in messages and tables."""
        return os.path.basename(self.folder)

    def path(self, file: str) -> str:
        """Returns the path of one of the run's files."""
        return os.path.join(self.folder, file)

    @property
    def stacks(self) -> str:
        """The path of the run's folded text."""
        return self.path("stacks.folded")

    def meta(self) -> dict:
        """Returns the content of meta.json; empty if it cannot be read."""
        try:
            with files.open_regular(self.path("meta.json")) as file:
                meta = json.loads(text_of(file.read(_MOST_META_BYTES)), strict=False, parse_int=_read_integer)
        except (OSError, ValueError, RecursionError):
            return {}
        return meta if isinstance(meta, dict) else {}

    def text(self, key: str) -> str:
        """Returns a text in meta.json; empty if there is none."""
        value = self.meta().get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> int | float | None:
        """Returns a number in meta.json; None if it is missing, negative, too large to be true, or not finite."""
        value = self.meta().get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _MOST_NUMBER:
            return None
        return value

    def figure(self, key: str) -> str:
        """Returns the same number as text, or "-"."""
        number = self.number(key)
        return "-" if number is None else text_of_number(number)

    @property
    def unit(self) -> str:
        """The unit of the run's counts."""
        return unit_of(self.text("mode"))

    def why_broken(self) -> str:
        """Returns the reason why the folder is not a complete run; empty if it is one."""
        for file in ("meta.json", "stacks.folded"):
            if not os.path.isfile(self.path(file)):
                return f"no {file}"
        found = self.meta().get("format")
        if isinstance(found, int) and found > FORMAT:
            return "a later version of stackpipe made it"
        return "" if found == FORMAT else "meta.json cannot be read"


def program_of(workload: str) -> str:
    """Returns a workload without its process number, so that "process 12 (nginx)" and "process 13 (nginx)" are the
    same."""
    return re.sub(r"^process [0-9]* ", "", workload)


def read_runs(output: str, with_broken: bool = False) -> list[Run]:
    """Returns the runs, oldest first; runs of the same second are in the order of their numbers."""
    found = []
    try:
        names = os.listdir(output)
    except OSError:
        names = []
    for name in names:
        match = _RUN.fullmatch(name)
        run = Run(os.path.join(output, name))
        if match and os.path.isdir(run.folder) and (with_broken or os.path.isfile(run.path("meta.json"))):
            found.append((re.sub(r"[^0-9T-]", "", match[1]), int(match[2] or 1), run))
    return [run for _, _, run in sorted(found)]


def find_run(output: str, name: str, option: str) -> Run:
    """Returns a run by its name in `output`, its folder, "latest" or "previous".  Of a folder of runs, returns the latest.  Raises
    Failure, which names the option."""
    if name in ("latest", "previous"):
        with_samples = [run for run in read_runs(output) if os.path.isfile(run.stacks) and os.path.getsize(run.stacks) > 0]
        back = 1 if name == "latest" else 2
        if len(with_samples) < back:
            raise Failure(f"{option}: no {name} run with samples in '{output}'")
        return with_samples[-back]
    run = Run(name.rstrip("/") or name)
    if "/" not in name and os.path.isfile(os.path.join(output, name, "stacks.folded")):
        run = Run(os.path.join(output, name))
    if not os.path.isfile(run.stacks):  # perhaps a folder of runs
        inside = [one for one in read_runs(run.folder) if os.path.isfile(one.stacks) and os.path.getsize(one.stacks) > 0]
        if not inside:
            raise Failure(f"{option}: not a run: '{name}'")
        run = inside[-1]
    return Run(os.path.join(".", run.folder)) if run.folder.startswith("-") else run


def must_count_alike(option: str, run: Run, unit: str) -> None:
    """Raises Failure if the units differ: shares of bytes and of samples are not comparable."""
    if run.unit != unit:
        raise Failure(f"{option}: {run.name} counts {run.unit}, not {unit}")


def keep_run(draft: str, opened: str, output: str, stamp: str) -> Run:
    """Turns a draft into a run, by renaming it.  `opened` is the open folder of runs (files.open_folder), `output` its name."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(draft, 0o777 & ~mask)
    name = os.path.join(opened, files.name_of_folder(draft))
    for number in range(1, 1001):
        made = stamp if number == 1 else f"{stamp}-{number}"
        try:
            # rename(2) does not replace a folder that is not empty.
            os.rename(name, os.path.join(opened, made))
            return Run(os.path.join(output, made))
        except OSError:
            continue
    raise Failure(f"{os.path.join(output, stamp)}: cannot be made")


def table_of(runs: list[Run]) -> str:
    """Returns a table with a line for each run."""
    form = "{:<22} {:<9} {:>9} {:>6} {:>8}  {}\n"
    text = form.format("run", "mode", "samples", "lost", "seconds", "workload")
    for run in runs:
        problem = run.why_broken()
        if problem:
            text += f"{printable(run.name):<22} broken: {problem}\n"
        else:
            text += form.format(printable(run.name), printable(run.text("mode")), run.figure("samples"), run.figure("lost"),
                                run.figure("seconds"), printable(run.text("workload")))
    return text


def members_of(run: Run) -> dict:
    """Returns what a program may want to know of a run."""
    known = {"name": printable(run.name), "folder": printable(run.folder)}
    if problem := run.why_broken():
        return {**known, "broken": problem}
    return {**known, "mode": run.text("mode"), "unit": run.unit, "workload": run.text("workload"),
            **{name: run.number(name) for name in ("samples", "lost", "seconds")}}


def print_drafts(output: str) -> None:
    """Reports unfinished captures, if any."""
    try:
        drafts = [entry for entry in os.scandir(output) if entry.name.startswith(".capture-") and entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    if drafts:
        say(f"unfinished: {count_of(len(drafts), 'capture')}, {output}/.capture-*: still recording, or ended before the run was written")
