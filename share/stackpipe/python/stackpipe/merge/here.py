"""Runs merges of merge_fleet(1) on this machine: each is a `stackfold --merge-sorted`.

gzip or zstd unpacks a compressed file into a pipe, which stackfold opens as /dev/fd/N.
"""
import concurrent.futures
import contextlib
import os
import re
import signal
import subprocess
import threading
from decimal import Decimal
from typing import NamedTuple, Sequence

from stackpipe import files, pipeline
from stackpipe.merge.tree import Level, Merged, Totals, climb
from stackpipe.messages import Failure, say, say_lines, text_of

#: The magic number of compressed files, and the command that unpacks them.
_UNPACKERS = {b"\x1f\x8b": ["gzip", "-dc"], b"\x28\xb5\x2f\xfd": ["zstd", "-dcq"]}
_TOTALS = re.compile(r"stackfold: read ([0-9]{1,20}) lines?, a count of ([0-9]{1,40}(?:\.[0-9]{1,9})?); "
                     r"wrote ([0-9]{1,20}) stacks?, a count of ([0-9]{1,40}(?:\.[0-9]{1,9})?)")


def unpacker_of(name: str) -> list[str]:
    """Returns the command that unpacks a file, by its first bytes; empty for plain text."""
    with files.open_regular(name) as file:
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

    def __init__(self, tools: pipeline.Tools, parent: str, jobs: int, strips_names: bool = True):
        """With `strips_names`, names lose what differs between builds and runs.  Only the first merges do that."""
        self._tools, self._parent, self.slots, self.strips_names = tools, parent, jobs, strips_names
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
            running = list(self._running)
        for process in running:
            process.terminate()
        self._pool.shutdown(cancel_futures=True)
        for process in running:  # a thread of the pool has waited for all but those of run_engine()
            process.wait()
        if self._folder:
            files.remove_folder(self._folder)

    def new_path(self) -> str:
        """Returns a new path in a temporary folder, which the first call creates."""
        with self._lock:
            self._folder = self._folder or files.temporary_folder(self._parent, "merge_fleet.")
            self._number += 1
            return os.path.join(self._folder, str(self._number))

    def new_folder(self) -> str:
        """Like new_path(), but also creates a folder there."""
        path = self.new_path()
        os.mkdir(path, 0o700)
        return path

    def failure_of(self, failed: int, merges: int) -> Failure:
        """Returns the failure of a level of the tree."""
        return Failure(f"{failed} of {merges} merges failed{files.why_not_written(self._folder)}: nothing is written")

    def run_engine(self, command: Sequence[str], feed: bytes, **more) -> int:
        """Runs a command that runs merges itself, and returns its status.  On exit, Merger ends it."""
        with self._lock:
            process = self._tools.start(command, stdin=subprocess.PIPE, **more)
            self._running.add(process)
        process.communicate(feed)
        with self._lock:
            self._running.discard(process)
        return pipeline.wait_for(process)

    def merge_branches(self, names: list[str], levels: Sequence[Level]) -> Merged:
        """Runs levels of the tree, and returns the results of the last one and the totals of the first."""
        return climb(names, levels, self.merge_level, os.unlink)

    def merge(self, names: list[str]) -> Totals | None:
        """Merges files into standard output."""
        return pipeline.result_of(self.submit(names))

    def merge_level(self, names: list[str], level: Level) -> Merged:
        """Runs a level of the tree; raises Failure after the other merges if some have failed."""
        merged, futures = [], []
        for group in level:
            merged.append(self.new_path())
            futures.append(self.submit(names[group.start:group.stop], merged[-1]))
        totals: list[Totals | None] = []
        failed = 0
        for future in futures:
            try:
                totals.append(pipeline.result_of(future))
            except Failure:
                failed += 1
        if failed:
            raise self.failure_of(failed, len(futures))
        return merged, totals

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
            say(f"stackfold ended with status {status}, for {len(inputs)} files starting with {inputs[0]}")
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
                        with files.open_regular(name) as file, files.create(said) as messages:
                            process = self._tools.start(command, stdin=file, stdout=writing, stderr=messages)
                    finally:
                        os.close(writing)
                    unpackers[f"/dev/fd/{reading}"] = Unpacker(process, name, said)
                    name = f"/dev/fd/{reading}"
                names.append(name)
            with files.create(path) if path else contextlib.nullcontext() as out:
                is_first = not self._folder or os.path.dirname(inputs[0]) != self._folder
                strip = ["--strip-names"] if self.strips_names and is_first else []
                merge = self._tools.start(["stackfold", "--merge-sorted", "--stats", *strip, "--", *names], stdout=out,
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
