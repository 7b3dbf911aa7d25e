"""merge_fleet(1): adds up the folded text of many hosts, by a tree of `stackfold --merge-sorted`.

A merge opens at most --fan-in files.  So memory depends on the number of concurrent merges, not on the amount of text.
gzip or zstd unpacks a compressed file into a pipe, which stackfold opens as /dev/fd/N.
"""
import concurrent.futures
import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from decimal import Context, Decimal
from typing import NamedTuple, NoReturn, Sequence

from stackpipe import files, pipeline
from stackpipe.command import read_options
from stackpipe.messages import Failure, UsageError, say, say_lines, text_of
from stackpipe.options import HELP, VERSION, CommandLine, Option

NAME = "merge_fleet"
USAGE = """Usage: merge_fleet [OPTION]... FILE...
Add up sorted folded text, plain or compressed by gzip or zstd, from any number
of files in constant memory on all CPUs.
"""
OPTIONS = (
    Option("files-from", "", "FILE", "merge the files that FILE names, each name followed by a zero byte; -: standard input"),
    Option("jobs", "j", "N", "so many merges at a time (default: one a CPU)"),
    Option("fan-in", "", "N", "files that a merge has open at a time (default 100)"),
    Option("temp", "", "DIR", "folder for what is half merged (default: TMPDIR)"),
    Option("stats", "", "", "tell how much was read and written"),
    Option("map", "", "", "mapper and combiner for Hadoop streaming: fold standard input, with a tab before each count"),
    HELP,
    VERSION,
)
#: The magic number of compressed files, and the command that unpacks them.
_UNPACKERS = {b"\x1f\x8b": ["gzip", "-dc"], b"\x28\xb5\x2f\xfd": ["zstd", "-dcq"]}
_TOTALS = re.compile(r"stackfold: read (\d+) lines?, a count of ([0-9.]+); wrote (\d+) stacks?, a count of ([0-9.]+)")
_EXACT = Context(prec=1000)
_FEWEST_OF_A_BRANCH = 16


class Totals(NamedTuple):
    """The lines, stacks and counts that a merge has read and written."""

    lines: int
    read: Decimal
    stacks: int
    written: Decimal


def main(arguments: Sequence[str], tools: pipeline.Tools) -> int:
    """Writes the sum on standard output."""
    line = read_options(NAME, USAGE, OPTIONS, arguments, tools)
    if line.has("map"):
        if len(arguments) != 1:
            raise UsageError("--map: reads standard input, and nothing goes with it")
        return map_input(tools)
    jobs = read_number(line, "jobs", 1, str(len(os.sched_getaffinity(0))))
    fan_in = read_number(line, "fan-in", 2, str(usual_fan_in(resource.getrlimit(resource.RLIMIT_NOFILE)[0])))
    names = read_names(line)
    for number in pipeline.STOP_SIGNALS:
        signal.signal(number, stop)
    with Merger(tools, line.last("temp"), jobs) as merger:
        totals = merge_tree(merger, names, fan_in)
    if line.has("stats"):
        say(f"{len(names)} files: read {totals.lines} lines, a count of {text_of_count(totals.read)}; "
            f"wrote {totals.stacks} stacks")
    return 0


def stop(number: int, frame: object) -> NoReturn:
    """Handles a signal: exits, so that Merger ends its processes and removes its files."""
    sys.exit(128 + number)


def map_input(tools: pipeline.Tools) -> int:
    """Runs as Hadoop's mapper.  sed finds each line's last blank 30 times as fast as Python."""
    statuses = tools.pipe([["stackfold", "--from", "folded"], ["sed", "-E", r"s/ ([0-9.]+)$/\t\1/"]])
    failures = [status for status in statuses if status]
    status = failures[-1] if failures else 0
    return 1 if status == 4 else status  # sed's status if the disk is full


def read_number(line: CommandLine, name: str, least: int, otherwise: str) -> int:
    """Returns the number of an option; raises UsageError."""
    text = line.last(name, otherwise)
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text) or int(text) < least:
        raise UsageError(f"--{name}: not a number above {least - 1}: '{text}'")
    return int(text)


def usual_fan_in(most_open: int) -> int:
    """Returns 100, or fewer if the descriptor limit requires it: an unpacker's file needs two descriptors."""
    if most_open == resource.RLIM_INFINITY or most_open > 220:
        most_open = 220
    return (max(most_open, 24) - 20) // 2


def read_names(line: CommandLine) -> list[str]:
    """Returns the files to merge; raises Failure if one cannot be read."""
    names = line.operands + (line.command or [])
    if line.has("files-from"):
        if names:
            raise UsageError("--files-from, FILE: only one of them")
        names = read_list(line.last("files-from"))
    if not names:
        raise UsageError("no file to merge")
    missing = 0
    for name in names:
        if not (os.path.isfile(name) and os.access(name, os.R_OK)):
            missing += 1
            say(f"{name}: {'no file that can be read' if os.path.exists(name) else 'No such file or directory'}")
    if missing:
        raise Failure(f"{missing} of {len(names)} files missing: nothing is written")
    return [f"./{name}" if name.startswith("-") else name for name in names]  # neither stdin nor an option


def read_list(path: str) -> list[str]:
    """Reads file names, each followed by a zero byte."""
    try:
        with sys.stdin.buffer if path == "-" else open(path, "rb") as file:
            names = text_of(file.read()).split("\0")
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    return names if names[-1] else names[:-1]


def unpacker_of(name: str) -> list[str]:
    """Returns the command that unpacks a file, by its first bytes; empty for plain text."""
    with open(name, "rb") as file:
        begin = file.read(4)
    return next((command for magic, command in _UNPACKERS.items() if begin.startswith(magic)), [])


class Unpacker(NamedTuple):
    """A process that unpacks a file into a pipe."""

    process: subprocess.Popen
    file: str
    said: str  #: a file with its messages

    def has_failed(self) -> bool:
        """Waits for its end, and reports a failure.  SIGPIPE or SIGTERM is not one: the rest was not needed."""
        status = pipeline.wait_for(self.process)
        if status in (0, 128 + signal.SIGPIPE, 128 + signal.SIGTERM):
            return False
        with open(self.said, "rb") as file:
            lines = text_of(file.read()).splitlines()
        say(f"{self.file}: {lines[-1] if lines else f'cannot be unpacked, status {status}'}")
        return True


class Merger:
    """Runs up to `jobs` merges at a time.  On exit, it ends all of them."""

    def __init__(self, tools: pipeline.Tools, parent: str, jobs: int):
        self._tools, self._parent, self.jobs = tools, parent, jobs
        self._folder = ""
        self._number = 0
        self._pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self._lock = threading.RLock()  # merges start one at a time, so this process has few open descriptors
        self._is_stopped = False
        self._running: set[subprocess.Popen] = set()

    def __enter__(self) -> "Merger":
        return self

    def __exit__(self, *exception: object) -> None:
        for number in pipeline.STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        with self._lock:
            self._is_stopped = True
            for process in self._running:
                process.terminate()
        self._pool.shutdown(cancel_futures=True)
        if self._folder:
            files.remove_folder(self._folder)

    def new_path(self) -> str:
        """Returns a new path in a temporary folder, which the first call creates."""
        with self._lock:
            self._folder = self._folder or files.temporary_folder(self._parent, "merge_fleet.")
            self._number += 1
            return os.path.join(self._folder, str(self._number))

    def why_not_written(self) -> str:
        """Like files.why_not_written(), for the temporary folder."""
        return files.why_not_written(self._folder)

    def submit(self, inputs: Sequence[str], path: str = "") -> concurrent.futures.Future:
        """Merges into a new file, or standard output, in the background.  The future yields Totals or raises Failure."""
        return self._pool.submit(self._merge, inputs, path)

    def _merge(self, inputs: Sequence[str], path: str) -> Totals | None:
        with self._lock:
            if self._is_stopped:
                raise Failure("")
            merge, unpackers = self._start(inputs, path)
            processes = {merge, *(unpacker.process for unpacker in unpackers.values())}
            self._running |= processes
        with merge.stderr as file:
            said = text_of(file.read())
        status = pipeline.wait_for(merge)
        failed = [unpacker.has_failed() for unpacker in unpackers.values()]
        with self._lock:
            self._running -= processes
        totals = tell(said, {pipe: unpacker.file for pipe, unpacker in unpackers.items()})
        if status > 1 and status != 128 + signal.SIGPIPE and not self._is_stopped:
            say(f"stackfold ended with status {status}, of {len(inputs)} files from this on: {inputs[0]}")
        if status or any(failed):
            raise Failure("", status or 1)
        return totals

    def _start(self, inputs: Sequence[str], path: str) -> tuple[subprocess.Popen, dict[str, Unpacker]]:
        """Starts a merge.  Returns its process, and its unpackers by the names of their pipes."""
        unpackers: dict[str, Unpacker] = {}
        names, pipes = [], []
        try:
            for name in inputs:
                if command := unpacker_of(name):
                    reading, writing = os.pipe()
                    pipes.append(reading)
                    said = self.new_path()
                    try:
                        with open(name, "rb") as file, files.create(said) as messages:
                            process = self._tools.start(command, stdin=file, stdout=writing, stderr=messages)
                    finally:
                        os.close(writing)
                    unpackers[f"/dev/fd/{reading}"] = Unpacker(process, name, said)
                    name = f"/dev/fd/{reading}"
                names.append(name)
            with files.create(path) if path else contextlib.nullcontext() as out:
                merge = self._tools.start(["stackfold", "--merge-sorted", "--stats", "--", *names], stdout=out,
                                          stderr=subprocess.PIPE, pass_fds=pipes)
        finally:
            for descriptor in pipes:
                os.close(descriptor)
        return merge, unpackers


def tell(said: str, names: dict[str, str]) -> Totals | None:
    """Forwards stackfold's messages, with the names of files in place of their pipes.  Returns the totals among the
    messages."""
    totals = None
    for line in said.splitlines():
        if match := _TOTALS.fullmatch(line):
            totals = Totals(int(match[1]), Decimal(match[2]), int(match[3]), Decimal(match[4]))
        else:
            say_lines(re.sub(r"/dev/fd/\d+", lambda match: names.get(match[0], match[0]), line) + "\n")
    return totals


def merge_tree(merger: Merger, names: list[str], fan_in: int) -> Totals:
    """Merges all files.  The first level has at least as many branches as merges run at a time; a few files need only one
    merge.  Returns the totals that the first level has read and the last merge has written.  Raises Failure if the two
    differ."""
    size = min(max(-(-len(names) // merger.jobs), _FEWEST_OF_A_BRANCH), fan_in)
    first = None
    while len(names) > size:
        merged, totals = merge_level(merger, names, size)
        if first is None:
            first = totals
        else:
            for name in names:
                os.unlink(name)
        names, size = merged, fan_in
    last = merger.submit(names).result()
    return check_sums(first if first is not None else [last], last)


def merge_level(merger: Merger, names: list[str], size: int) -> tuple[list[str], list[Totals | None]]:
    """Merges each group of `size` files into one."""
    merged, futures = [], []
    failed = 0
    for begin in range(0, len(names), size):
        merged.append(merger.new_path())
        futures.append(merger.submit(names[begin:begin + size], merged[-1]))
    totals: list[Totals | None] = []
    for future in futures:
        try:
            totals.append(future.result())
        except Failure:
            failed += 1
    if failed:
        raise Failure(f"{failed} of {len(futures)} merges failed{merger.why_not_written()}: nothing is written")
    return merged, totals


def check_sums(first: Sequence[Totals | None], last: Totals | None) -> Totals:
    """Raises Failure unless the last merge has written the count that the first level has read."""
    if last is None or any(totals is None for totals in first):
        raise Failure("stackfold did not tell how much was read and written: something was lost")
    read = Decimal(0)
    for totals in first:
        read = _EXACT.add(read, totals.read)
    if read != last.written:
        raise Failure(f"a count of {text_of_count(read)} was read, but of {text_of_count(last.written)} written: something was lost")
    return Totals(sum(totals.lines for totals in first), read, last.stacks, last.written)


def text_of_count(count: Decimal) -> str:
    """Formats a count without zeros at the end of its fraction."""
    text = format(count, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
