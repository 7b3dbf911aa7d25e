"""Keeps a recorder going: starts it again when it has ended, and follows a target that restarts.

The recorder (pe-record --keep) writes segments into a folder, and removes the oldest.  Nothing but the end of the watch ends this: a
failure is a line, and a pause that grows.
"""
import json
import os
import select
import signal
import subprocess
import time
from typing import Callable, NamedTuple, Sequence

from stackpipe import pipeline, recorder
from stackpipe.messages import Failure, text_of
from stackpipe.watch import log
from stackpipe.watch.watched import Covered, Watched

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_GOOD_RUN_S = 30.0  #: a recorder that ran so long was not broken from its start
_END_S = 10.0  #: the longest time that a recorder may need to end
_MOST_SAID = 65536
_USAGE = 2  #: the status of a tool for a wrong command line
WAITS = "cpu,waits"


class Plan(NamedTuple):
    """How to record."""

    event: str = ""  #: as for pe-record; empty: CPU time
    may_lack_waits: bool = False  #: records CPU time alone if this user may not record waits
    options: Sequence[str] = ()  #: of pe-record
    slow: Sequence[str] = ()  #: those with which it reports slow calls to a descriptor


class Lines:
    """The lines that come from a pipe, which is never waited for."""

    def __init__(self, pipe: int):
        self.pipe = pipe
        self._rest = b""
        os.set_blocking(pipe, False)

    def read(self) -> list[str]:
        """Returns the lines that have come, at most 64 KiB at once.  Drops what has no end of line for so long."""
        try:
            data = os.read(self.pipe, _MOST_SAID)
        except OSError:
            data = b""
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-_MOST_SAID:]
        return [text_of(line) for line in lines]

    def close(self) -> None:
        """Closes the pipe."""
        os.close(self.pipe)


class _Running:
    """A recorder, its messages and its reports."""

    def __init__(self, tools: pipeline.Tools, words: Sequence[str], slow: Sequence[str]):
        said, saying = os.pipe()
        reports, reporting = os.pipe() if slow else (-1, -1)
        try:
            more = [*slow, "--report", str(reporting)] if slow else []
            self.recorder = recorder.start(tools, [*words, *more], descriptors=[reporting] if slow else [],
                                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=saying)
        except Failure:
            for end in (said, *([reports] if slow else [])):
                os.close(end)
            raise
        finally:
            for end in (saying, *([reporting] if slow else [])):
                os.close(end)
        self.process = self.recorder.process
        self.said, self.reports = Lines(said), Lines(reports) if slow else None
        self.end = os.pidfd_open(self.process.pid)
        self.began = time.monotonic()

    def descriptors(self) -> list[int]:
        return [self.end, self.said.pipe, *([self.reports.pipe] if self.reports else [])]

    def close(self) -> None:
        os.close(self.end)
        self.said.close()
        if self.reports:
            self.reports.close()


class Keeper:
    """The recorder of a watch, or the pause before the next one."""

    def __init__(self, tools: pipeline.Tools, watched: Watched, plan: Plan, segments: Callable[[], str]):
        """`segments` returns the folder of segments, and may raise Failure."""
        self.plan = plan
        self.started = 0  #: recorders so far
        self.lost = 0  #: samples, as far as recorders that have ended know
        self.problem = ""  #: why the last recorder ended, if it should not have
        self.without_s = 0.0  #: the time in which the target was there and no recorder was
        self._tools, self._watched, self._segments = tools, watched, segments
        self._running: _Running | None = None
        self._covered: Covered | None = None
        self._said_at_start: list[str] = []
        self._due = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self._was_there = True
        self._last_poll = time.monotonic()
        self._slow: list[dict] = []

    @property
    def pid(self) -> int:
        """The process of the recorder; 0: none runs."""
        return self._running.process.pid if self._running else 0

    @property
    def running_s(self) -> float:
        """How long the recorder has run; 0: none runs."""
        return time.monotonic() - self._running.began if self._running else 0.0

    def descriptors(self) -> list[int]:
        """Returns the descriptors that are readable when there is something to do."""
        return self._running.descriptors() if self._running else []

    def take_slow_calls(self) -> list[dict]:
        """Returns the slow calls that the recorder has reported since the last time."""
        calls, self._slow = self._slow, []
        return calls

    def poll(self) -> None:
        """Reads what the recorder says, and starts it if needed.  Raises Failure if this user can never record this target."""
        now = time.monotonic()
        if not self._running and self._watched.is_there and self.started:
            self.without_s += now - self._last_poll
        self._last_poll = now
        if self._running:
            self._read()
            if self._running.process.poll() is not None:
                self._end()
        self._tell_presence()
        if not self._running and self._watched.is_there and now >= self._due:
            self._start()

    def follow(self) -> None:
        """After a look at the target: if the recorder misses a process of its name, ends it, so that the next one records that, too."""
        if not self._running or not self._covered or self._watched.kind != "name":
            return
        missing = self._covered.missing(self._watched)
        if missing and time.monotonic() >= self._running.began + self._pause_s:
            log.say(f"{self._watched.title}: process {missing[0]} has this name now: a new recorder includes it")
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
            self.end_recorder()

    def end_recorder(self) -> None:
        """Ends the recorder in good order, as far as that takes no longer than 10 s."""
        if not self._running:
            return
        process = self._running.process
        process.send_signal(signal.SIGTERM)
        until = time.monotonic() + _END_S
        while process.poll() is None:
            if time.monotonic() > until:
                process.kill()
            select.select([self._running.said.pipe, self._running.end], [], [], 0.1)
            self._read()
        self._end(is_wanted=True)

    def _tell_presence(self) -> None:
        if self._watched.is_there == self._was_there:
            return
        self._was_there = self._watched.is_there
        if self._was_there:
            log.say(f"{self._watched.title}: process {min(self._watched.alive)} has this name: recording goes on")
            self._due = 0.0  # the pause was that of another process
        elif self._watched.kind == "name":
            log.say(f"{self._watched.title}: no process has this name any more: waiting for one")

    def _start(self) -> None:
        self._said_at_start = []
        try:
            words = ["pe-record", "-q", "--engine", "best", *(["-e", self.plan.event] if self.plan.event else []), *self.plan.options,
                     "-o", self._segments(), *self._watched.options()]
            self._running = _Running(self._tools, words, self.plan.slow)
            self._covered = Covered(self._watched)
            self.started += 1
        except Failure as failure:
            self._postpone(str(failure))

    def _postpone(self, why: str) -> None:
        """Prints why there is no recorder, and when the next one starts."""
        self.problem = why
        log.say(f"{self._watched.title}: {why}; the next recorder starts in {self._pause_s:.0f} s")
        self._due = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def _read(self) -> None:
        for line in self._running.said.read():
            self._said_at_start.append(line)
            del self._said_at_start[:-20]
            if self.started > 1 or not self.plan.may_lack_waits:
                log.say(line)
        if self._running.reports:
            self._slow += filter(None, map(read_call, self._running.reports.read()))
            del self._slow[:-1000]

    def _end(self, is_wanted: bool = False) -> None:
        """The recorder has ended."""
        running, self._running = self._running, None
        summary, status = running.recorder.summary, running.process.returncode
        running.close()
        self.lost += int(summary.figures.get("lost", 0))
        if is_wanted:
            return
        if self.started == 1 and self._is_hopeless(summary, status):
            return
        ran_s = time.monotonic() - running.began
        if ran_s >= _GOOD_RUN_S:
            self._pause_s = _FIRST_PAUSE_S
        self._watched.look()
        if summary.is_whole and not self._watched.is_there:
            return  # its target has ended
        why = f"was killed (signal {-status})" if status < 0 else f"ended (exit status {status})"
        self._postpone(f"the recorder {why}{': ' if summary.texts.get('text') else ''}{summary.texts.get('text', '')}")

    def _is_hopeless(self, summary: recorder.Summary, status: int) -> bool:
        """Handles the end of the first recorder because of missing privileges or options.  Raises Failure, or returns True if the next
        one records less."""
        if status == _USAGE:
            raise Failure("\n".join(self._said_at_start).removeprefix("pe-record: "), _USAGE)
        is_lacking = self.plan.may_lack_waits and summary.lacks_counters
        if not is_lacking:
            for line in self._said_at_start if self.plan.may_lack_waits else []:
                log.say(line)
            if summary.is_denied:
                raise Failure("", 1)  # the recorder has told why
            return False
        log.say(f"{self._watched.title}: records CPU time without waits: {summary.failure.strip()}")
        self.plan = self.plan._replace(event="", may_lack_waits=False)
        self.started = 0
        self._due = 0.0
        return True


def read_call(line: str) -> dict | None:
    """Reads a line about a slow call; None if it is damaged."""
    try:
        members = json.loads(line)
        is_good = isinstance(members["function"], str) and all(isinstance(members[name], int) and 0 <= members[name] < 1 << 63 for name in ("ns", "tid", "time_ns"))
    except (KeyError, RecursionError, TypeError, ValueError):
        return None
    return members if is_good else None
