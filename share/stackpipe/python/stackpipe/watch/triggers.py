"""The conditions at which a watch writes a flame graph by itself.

Each is checked from time to time, and returns a text that tells what happened.  Times are those of CLOCK_MONOTONIC, so a clock that is
set, or a machine that was asleep, is not an event.
"""
import os
import re
import signal
import subprocess
import time
from typing import Iterable

from stackpipe import pipeline
from stackpipe.messages import Failure, UsageError, printable
from stackpipe.options import CommandLine, read_seconds, text_of_seconds
from stackpipe.watch import log, processes
from stackpipe.watch.dumps import reason_of
from stackpipe.watch.watched import Watched

_LOOK_S = 1.0
_WINDOW_S = 1.0  #: over which CPU time is averaged
_COMMAND_S = 10.0  #: the longest time of a command
_NOT_EXECUTED = (126, 127)
_PERCENT = re.compile(r"([1-9][0-9]{0,5})%?", re.ASCII)


class Trigger:
    """A condition."""

    reason = ""  #: a part of the file's name
    every_s = _LOOK_S  #: between two checks

    def __init__(self) -> None:
        self.due = 0.0  #: the time of the next check
        self.rests_until = 0.0  #: the time before which it writes nothing more

    def check(self) -> str:
        """Returns what has happened since the last check; empty: nothing."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ends what it has started."""


class Busy(Trigger):
    """The target uses more than a share of one CPU, on average over a second."""

    reason = "busy"
    every_s = _WINDOW_S / 4

    def __init__(self, watched: Watched, percent: int):
        super().__init__()
        self._watched, self._percent = watched, percent
        self._past: list[tuple[float, dict[tuple[int, int], int]]] = []  #: times, and the CPU time of each process then

    def _ticks(self) -> dict[tuple[int, int], int]:
        """Returns the CPU time of each process of the target, and of their descendants at the last look."""
        if self._watched.kind == "all":
            return {(0, 0): processes.machine_busy_ticks()}
        now = map(processes.process_of, processes.with_descendants(set(self._watched.alive), self._watched.everything))
        return {(process.pid, process.start_ticks): process.cpu_ticks for process in now if process}

    def check(self) -> str:
        now, ticks = time.monotonic(), self._ticks()
        self._past.append((now, ticks))
        while len(self._past) > 2 and self._past[1][0] <= now - _WINDOW_S:
            del self._past[0]
        at, before = self._past[0]
        if now < at + _WINDOW_S:
            return ""
        used = sum(count - before[key] for key, count in ticks.items() if key in before)
        share = 100 * used / processes.TICKS / (now - at)
        return f"used {share:.0f} % of a CPU for {now - at:.1f} s" if share > self._percent else ""


class Stall(Trigger):
    """A process had a thread that was ready, and none of its threads ran for some time."""

    reason = "stall"

    def __init__(self, watched: Watched, limit_s: float):
        super().__init__()
        self._watched, self._limit_s = watched, limit_s
        self.every_s = max(limit_s / 5, 0.02)
        self._ready: dict[tuple[int, int], tuple[int, dict[tuple[int, int], float]]] = {}

    def check(self) -> str:
        before, self._ready = self._ready, {}
        text = ""
        for pid, known in self._watched.alive.items():
            process = processes.process_of(pid)
            if process and process.start_ticks == known.start_ticks:
                text = self._check_process(process, before.get((pid, process.start_ticks), (-1, {}))) or text
        return text

    def _check_process(self, process: processes.Process, before: tuple[int, dict[tuple[int, int], float]]) -> str:
        """Remembers since when which threads have been ready without running.  Reads threads only if the process has not run."""
        key, now = (process.pid, process.start_ticks), time.monotonic()
        if before[0] != process.cpu_ticks:
            self._ready[key] = process.cpu_ticks, {}
            return ""
        ready = {(thread.tid, thread.ran): before[1].get((thread.tid, thread.ran), now)
                 for thread in processes.threads_of(process.pid) if thread.state == "R"}
        self._ready[key] = process.cpu_ticks, ready
        waited = now - min(ready.values(), default=now)
        return f"no thread of process {process.pid} ran for {waited:.2f} s, and one was ready" if waited >= self._limit_s else ""


class ThreadStall(Trigger):
    """A thread of this name did not run for some time."""

    def __init__(self, watched: Watched, name: str, limit_s: float):
        super().__init__()
        self.reason = reason_of(f"stall-{name}".replace("-", "_"))
        self._watched, self._name, self._limit_s = watched, name, limit_s
        self.every_s = max(limit_s / 5, 0.02)
        self._since: dict[tuple[int, int], float] = {}

    def check(self) -> str:
        before, now = self._since, time.monotonic()
        self._since = {(thread.tid, thread.ran): before.get((thread.tid, thread.ran), now)
                       for pid in self._watched.alive for thread in processes.threads_of(pid, self._name)}
        waited = now - min(self._since.values(), default=now)
        return f"thread {printable(self._name)} did not run for {waited:.2f} s" if waited >= self._limit_s else ""


class Command(Trigger):
    """A command of the user fails.  It has a process group of its own: tools.hears_keys is false."""

    reason = "command"

    def __init__(self, text: str, tools: pipeline.Tools):
        super().__init__()
        self._text, self._tools = text, tools
        self._process: subprocess.Popen | None = None
        self._until = 0.0
        self._once = log.Once()

    def check(self) -> str:
        if self._process is None:
            self._start()
            return ""
        # It is not waited for yet, so no other process has its number when its group is killed.
        has_ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        if not has_ended and time.monotonic() < self._until:
            return ""
        process = self._process
        self.stop()
        status = process.returncode if has_ended else None
        if status in _NOT_EXECUTED:
            self._once.say(f"--on '{self._text}': exit status {status}: the command could not be executed")
            return ""
        how = f"did not end within {_COMMAND_S:.0f} s" if status is None else f"ended with status {128 - status if status < 0 else status}"
        return f"'{self._text}' {how}" if status != 0 else ""

    def _start(self) -> None:
        try:
            # It needs none of the capabilities that a service gives to the recorder.
            words = ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--pdeathsig", "KILL", "--", "sh", "-c", self._text]
            self._process = self._tools.start(words, as_user=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL)
            self._until = time.monotonic() + _COMMAND_S
        except Failure as failure:
            self._once.say(f"--on '{self._text}': {failure}")

    def stop(self) -> None:
        """Kills the command and all that it has started."""
        if self._process:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except OSError:
                pass
            self._process.wait()
            self._process = None


class Slow(Trigger):
    """A call of a function took longer than a time."""

    def __init__(self, longer_s: float):
        super().__init__()
        self._longer_s = longer_s
        self._worst: dict | None = None

    def take(self, calls: Iterable[dict]) -> None:
        """Accepts the reports of the recorder."""
        for call in calls:
            if self._worst is None or call["ns"] > self._worst["ns"]:
                self._worst = call

    def check(self) -> str:
        call, self._worst = self._worst, None
        if call is None or call["ns"] < self._longer_s * 1e9:
            return ""
        self.reason = reason_of(f"slow_{call['function'].rpartition(':')[2]}")
        return f"{printable(call['function'])[:200]} took {call['ns'] / 1e6:.0f} ms in thread {call['tid']}"


def needs_all_processes(line: CommandLine) -> bool:
    """Does a trigger need the processes that the target has started?"""
    return line.has("on-busy")


def slow_options(line: CommandLine) -> list[str]:
    """Returns the options with which pe-record reports slow calls; raises UsageError."""
    if line.has("on-slow") != line.has("longer"):
        raise UsageError("--on-slow, --longer: need each other, such as --on-slow handle --longer 200ms")
    if not line.has("on-slow"):
        return []
    spans = [word for function in line.values["on-slow"] for word in ("--span", function)]
    return [*spans, "--slow-calls", text_of_seconds(read_seconds("longer", line.last("longer"), most=3600))]


def read_triggers(line: CommandLine, watched: Watched, tools: pipeline.Tools) -> list[Trigger]:
    """Returns the triggers that the command line asks for; raises UsageError."""
    found: list[Trigger] = []
    if line.has("on-busy"):
        match = _PERCENT.fullmatch(line.last("on-busy"))
        if not match:
            raise UsageError(f"--on-busy: not a percentage of one CPU: '{line.last('on-busy')}'")
        found.append(Busy(watched, int(match[1])))
    for text in line.values.get("on-stall", []):
        name, is_thread, limit = text.rpartition("=")
        if watched.kind == "all":
            raise UsageError("--on-stall: needs a process: on the whole machine some thread always waits")
        seconds = read_seconds("on-stall", limit, least=0.1, most=3600)
        found.append(ThreadStall(watched, name, seconds) if is_thread else Stall(watched, seconds))
    found += [Command(text, tools) for text in line.values.get("on", [])]
    if line.has("on-slow"):
        found.append(Slow(read_seconds("longer", line.last("longer"), most=3600)))
    return found
