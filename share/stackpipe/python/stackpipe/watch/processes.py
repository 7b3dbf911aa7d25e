"""Processes as /proc shows them: names, CPU times, and the states of threads.

A file of another process may vanish at any time, and its text holds a name that the process has chosen.
"""
import os
from typing import Iterator, NamedTuple

from stackpipe.messages import bytes_of, text_of

TICKS = os.sysconf("SC_CLK_TCK")
_COMM_BYTES = 15
_MOST_BYTES = 4096
_DEAD = "ZX"


class Process(NamedTuple):
    """A process, or a thread, at a moment."""

    pid: int
    name: str
    state: str  #: a letter, proc_pid_stat(5)
    parent: int
    cpu_ticks: int  #: of its threads
    start_ticks: int  #: since the machine has started; with the PID, it names one process

    @property
    def is_alive(self) -> bool:
        """Can it still run?  A zombie only waits for its parent process."""
        return self.state not in _DEAD


def _read(path: str) -> bytes:
    """Returns the start of a file of /proc; empty if it is gone."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, _MOST_BYTES)
    except OSError:
        return b""
    finally:
        os.close(file)


def process_of(pid: int | str, path: str = "") -> Process | None:
    """Returns a process; None if it is gone.  `path` is that of the stat file of a thread."""
    head, _, rest = _read(path or f"/proc/{pid}/stat").rpartition(b") ")
    fields = rest.split()
    if len(fields) < 20:
        return None
    return Process(int(pid), text_of(head.partition(b" (")[2]), text_of(fields[0]), int(fields[1]), int(fields[11]) + int(fields[12]), int(fields[19]))


def scan() -> dict[int, Process]:
    """Returns all processes, also zombies."""
    found = (process_of(name) for name in os.listdir("/proc") if name.isdecimal())
    return {process.pid: process for process in found if process}


class Named:
    """Finds the processes of a name as pe-record does: by their name, or by the file of their program."""

    def __init__(self, name: str):
        self._name, self._comm = name, text_of(bytes_of(name)[:_COMM_BYTES])
        self._files: dict[tuple[int, int, str], bool] = {}  #: does its program have this name?

    def of(self, processes: dict[int, Process]) -> list[Process]:
        """Returns those of the processes that have the name and are alive."""
        before, self._files = self._files, {}
        return [process for process in processes.values() if process.is_alive and self._has_name(process, before)]

    def _has_name(self, process: Process, before: dict[tuple[int, int, str], bool]) -> bool:
        if process.name == self._name and len(bytes_of(self._name)) <= _COMM_BYTES:
            return True
        key = process.pid, process.start_ticks, process.name
        if key not in before:
            before[key] = self._is_program(process.pid)
        self._files[key] = before[key]
        return before[key]

    def _is_program(self, pid: int) -> bool:
        try:
            path = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            return False
        return os.path.basename(path.removesuffix(" (deleted)")) == self._name


def with_descendants(roots: set[int], processes: dict[int, Process]) -> set[int]:
    """Returns the processes and all that they, or their descendants, have started."""
    found = {pid for pid in roots if pid in processes}
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    left = list(found)
    while left:
        for pid in children.get(left.pop(), []):
            if pid not in found:
                found.add(pid)
                left.append(pid)
    return found


class Thread(NamedTuple):
    """A thread at a moment."""

    tid: int
    name: str
    state: str
    ran: int  #: grows whenever the thread runs


def threads_of(pid: int, name: str = "") -> Iterator[Thread]:
    """Yields the threads of a process; those of this name, if there is one."""
    try:
        tids = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for tid in tids:
        folder = f"/proc/{pid}/task/{tid}"
        if name and text_of(_read(f"{folder}/comm")).removesuffix("\n") != name:
            continue
        thread = process_of(tid, f"{folder}/stat")
        if thread and thread.is_alive:
            yield Thread(thread.pid, thread.name, thread.state, _ran(folder, thread))


def _ran(folder: str, thread: Process) -> int:
    """Returns the time that a thread has run, in ns; a kernel without this figure (CONFIG_SCHED_INFO) has ticks."""
    fields = _read(f"{folder}/schedstat").split()
    return int(fields[0]) if len(fields) == 3 and fields[0] != b"0" else thread.cpu_ticks


def machine_busy_ticks() -> int:
    """Returns the time that all CPUs together were not idle, in ticks: proc_stat(5)."""
    fields = [int(field) for field in _read("/proc/stat").partition(b"\n")[0].split()[1:]]
    return sum(fields[:8]) - fields[3] - fields[4] if len(fields) >= 8 else 0  # user and nice have guest's
