"""The main loop of stackpipe watch."""
import contextlib
import os
import select
import signal
import time
from typing import NamedTuple, Sequence

from stackpipe import outputs, pipeline
from stackpipe.messages import Failure, UsageError
from stackpipe.options import CommandLine, read_seconds
from stackpipe.watch import log, processes, state, store, triggers
from stackpipe.watch.dumps import Dumps, Wish
from stackpipe.watch.keeper import Keeper, Plan
from stackpipe.watch.watched import Watched

_LOOK_S = 1.0  #: between two looks at the target and the folder
_STATE_S = 15.0  #: between two writes of state and counters
_SHORTEST_WAIT_S = 0.01


class Settings(NamedTuple):
    """The options of a watch."""

    name: str
    metrics: str = ""  #: the file for node_exporter; empty: none
    form: str = "svg"
    before_s: float = 25
    after_s: float = 5
    rest_s: float = 60
    last_s: float = 30
    most_files: int = 20


def read_settings(line: CommandLine, name: str) -> Settings:
    """Returns the settings; raises UsageError."""
    form = line.last("format", "svg")
    if form not in outputs.FORMS:
        raise UsageError(f"--format: unknown format '{form}'; the formats are {', '.join(outputs.FORMS)}")
    files = line.last("files", "20")
    if not (files.isascii() and files.isdecimal() and 0 < int(files[:6]) and len(files) < 6):
        raise UsageError(f"--files: not a number from 1 to 99999: '{files}'")
    return Settings(name, line.last("metrics"), form, read_seconds("before", line.last("before", "25s"), least=0),
                    read_seconds("after", line.last("after", "5s"), least=0), read_seconds("rest", line.last("rest", "1m"), least=0),
                    read_seconds("last", line.last("last", "30s")), int(files))


class Watching:
    """A watch that runs."""

    def __init__(self, settings: Settings, watched: Watched, plan: Plan, conditions: Sequence[triggers.Trigger], base: str, tools: pipeline.Tools):
        """Opens and locks the folder; raises Failure."""
        self._settings, self._watched, self._conditions, self._base = settings, watched, conditions, base
        self._since = time.time()
        self._once = log.Once()
        self._look_due = self._state_due = 0.0
        self._told = ()  #: what the state file has of the recorder
        self._dumps = Dumps(tools, settings.name, settings.form, settings.most_files)
        self._store: store.Store | None = None
        self._open()
        self._keeper = Keeper(tools, watched, plan, self._segments)

    def _open(self) -> None:
        opened = store.create(self._base, self._settings.name)
        try:
            opened.lock()
            self._dumps.use(opened)
        except (Failure, OSError):
            opened.close()
            raise
        if self._store:
            self._store.close()
        self._store = opened

    def _segments(self) -> str:
        """Returns the folder of segments; creates it again if someone has removed it."""
        if not self._store.is_there():
            try:
                self._open()
            except OSError as error:
                raise Failure(f"{self._store.path}: {error.strerror}") from None
        return self._store.make(store.SEGMENTS)

    def run(self, waking: int, arrived: list[int]) -> int:
        """Watches; `waking` is readable when a signal has been added to `arrived`."""
        log.say(f"{self._settings.name}: watches {self._watched.title}, in {self._store.path}")
        try:
            while self._go_on(arrived):
                ready = [waking, *self._keeper.descriptors()]
                select.select(ready, [], [], max(self._next_due() - time.monotonic(), _SHORTEST_WAIT_S))
                with contextlib.suppress(BlockingIOError):
                    os.read(waking, 4096)
        finally:
            for condition in self._conditions:
                condition.stop()
            self._keeper.end_recorder()
            self._dumps.stop()
            with contextlib.suppress(Failure):
                self._write_state()
        return 0

    def _go_on(self, arrived: list[int]) -> bool:
        """Does all that is due; returns False at the end of the watch."""
        if any(number != signal.SIGUSR1 for number in arrived):
            return False
        while arrived:
            arrived.pop()
            self._dumps.wish(Wish("dump", "SIGUSR1", time.monotonic(), self._settings.last_s, 0, time.time()))
        now = time.monotonic()
        if now >= self._look_due:
            self._look_due = now + _LOOK_S
            self._look()
        self._keeper.poll()
        if self._watched.is_over and not self._keeper.pid:
            if self._dumps.is_idle:
                log.say(f"{self._settings.name}: {self._watched.title} has ended; what is kept is in {self._store.path}")
                return False
        self._check(now)
        has_drawn = self._dumps.poll()
        if now >= self._state_due or has_drawn or self._told != (self._keeper.pid, self._keeper.started):
            self._state_due = now + _STATE_S
            try:
                self._write_state()
            except Failure as failure:
                self._once.say(f"{self._settings.name}: {failure}")
        return True

    def _look(self) -> None:
        self._watched.look()
        self._keeper.follow()
        is_there = self._store.is_there()
        if is_there and (not self._keeper.pid or os.path.isdir(self._store.path_of(store.SEGMENTS))):
            return
        self._keeper.end_recorder()
        try:
            if not is_there:
                self._open()
            log.say(f"{self._settings.name}: {self._store.path} was removed, and is made again")
        except (Failure, OSError) as failure:
            self._once.say(f"{self._settings.name}: {self._store.path} was removed: {failure}")

    def _check(self, now: float) -> None:
        """Checks the triggers that are due."""
        calls = self._keeper.take_slow_calls()
        for condition in self._conditions:
            if calls and isinstance(condition, triggers.Slow):
                condition.take(calls)
                condition.due = 0
            if now < condition.due:
                continue
            condition.due = now + condition.every_s
            text = condition.check()
            if text and now >= condition.rests_until:
                condition.rests_until = now + self._settings.rest_s
                log.say(f"{self._settings.name}: {condition.reason}: {text}")
                self._dumps.wish(Wish(condition.reason, condition.reason, now, self._settings.before_s, self._settings.after_s, time.time()))

    def _next_due(self) -> float:
        return min(self._look_due, self._state_due, self._dumps.next_due(), *(condition.due for condition in self._conditions))

    def _write_state(self) -> None:
        """Writes the state and the counters; raises Failure."""
        keeper, here = self._keeper, processes.process_of(os.getpid())
        self._told = keeper.pid, keeper.started
        known = state.State(os.getpid(), here.start_ticks if here else -1, self._watched.title, keeper.plan.event or "cpu", self._since, bool(keeper.pid), keeper.started,
                            self._dumps.written, self._dumps.failed, keeper.lost, keeper.without_s)
        self._store.write(store.STATE, known._asdict())
        if self._settings.metrics:
            state.write_metrics(self._settings.metrics, state.metrics(self._settings.name, known, self._store.kept()))
