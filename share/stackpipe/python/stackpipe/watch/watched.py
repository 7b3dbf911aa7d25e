"""The target of a watch: a process, all processes of a name, or the machine."""
from typing import Iterable

from stackpipe.messages import UsageError, printable
from stackpipe.options import CommandLine
from stackpipe.watch import processes
from stackpipe.watch.processes import Process

_MOST_PID = 1 << 22  # the kernel's


class Watched:
    """A target, and its processes at the last look()."""

    def __init__(self, kind: str, text: str, needs_all: bool = False):
        """`kind` is pid, name or all; `text` the process or its name.  `needs_all`: look() reads all processes."""
        self.kind, self.text = kind, text
        self.alive: dict[int, Process] = {}  #: those of the target
        self.everything: dict[int, Process] = {}  #: all processes, if needed
        self._needs_all = needs_all or kind == "name"
        self._named = processes.Named(text)
        self._start_ticks = -1

    @property
    def title(self) -> str:
        """Describes it to people."""
        return {"pid": f"process {self.text}", "name": printable(self.text), "all": "the whole system"}[self.kind]

    @property
    def is_there(self) -> bool:
        """Was there something to record at the last look()?"""
        return self.kind == "all" or bool(self.alive)

    @property
    def is_over(self) -> bool:
        """Has it ended forever?"""
        return self.kind == "pid" and not self.alive

    def look(self) -> None:
        """Reads its processes."""
        if self._needs_all and self.kind != "all":
            self.everything = processes.scan()
        if self.kind == "name":
            self.alive = {process.pid: process for process in self._named.of(self.everything)}
        elif self.kind == "pid":
            self._look_at_process(int(self.text))

    def _look_at_process(self, pid: int) -> None:
        process = self.everything.get(pid) if self._needs_all else processes.process_of(pid)
        is_same = process and self._start_ticks in (-1, process.start_ticks)  # PIDs are used again
        self.alive = {pid: process} if process and process.is_alive and is_same else {}
        if self.alive:
            self._start_ticks = process.start_ticks

    def options(self) -> list[str]:
        """Returns the options of pe-record that select its processes."""
        return ["-a"] if self.kind == "all" else ["-p", ",".join(map(str, self.alive)), "--children"]


class Covered:
    """The processes that a recorder records: those of its start, and all that they start."""

    def __init__(self, watched: Watched):
        self._known = self._keys(watched, watched.alive)

    def _keys(self, watched: Watched, roots: Iterable[int]) -> set[tuple[int, int]]:
        found = processes.with_descendants(set(roots), watched.everything or watched.alive)
        return {(pid, (watched.everything or watched.alive)[pid].start_ticks) for pid in found}

    def missing(self, watched: Watched) -> list[int]:
        """Returns the processes of the target that are not recorded.  One whose parents ended before a look is among them."""
        still = [pid for pid, start in self._known if (found := (watched.everything or watched.alive).get(pid)) and found.start_ticks == start]
        self._known = self._keys(watched, still)
        return [process.pid for process in watched.alive.values() if (process.pid, process.start_ticks) not in self._known]


def read_watched(line: CommandLine, needs_all: bool) -> Watched:
    """Returns the target that the command line names; raises UsageError."""
    if line.has("pid") == line.has("all"):
        raise UsageError("--pid, --all: choose one of them" if line.has("pid") else "nothing to watch: give -p PID, -p NAME or -a; for example: stackpipe watch -p nginx")
    if line.has("all"):
        return Watched("all", "machine", needs_all)
    text = line.last("pid")
    if not text or "," in text or "/" in text or "\n" in text:
        raise UsageError(f"--pid: neither a process nor the name of one: '{text}'")
    if not text.isascii() or not text.isdecimal():
        return Watched("name", text, needs_all)
    if not 0 < int(text) <= _MOST_PID:
        raise UsageError(f"--pid: not a process: '{text}'")
    return Watched("pid", text, needs_all)
