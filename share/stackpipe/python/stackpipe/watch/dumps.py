"""The flame graphs that a watch writes by itself: at a trigger, and at SIGUSR1.

A process of its own draws each one, at a low priority, so that the watch goes on, and its memory does not grow.
"""
import os
import re
import subprocess
import time
from typing import BinaryIO, NamedTuple

from stackpipe import files, outputs, pipeline
from stackpipe.messages import Failure, text_of
from stackpipe.watch import draw, log, store
from stackpipe.watch.own import OwnFiles

#: How long a sample may need from the kernel to the folder: the recorder flushes four times a second.
LATE_S = 1.0
_MOST_S = 120.0  #: a drawing that takes longer is given up
_MOST_SAID = 65536
_POLL_S = 0.1


class Wish(NamedTuple):
    """A flame graph that is to be written."""

    reason: str  #: a part of the file's name
    text: str  #: tells people what happened
    at: float  #: the event, on the clock of recordings
    before_s: float
    after_s: float
    wall: float  #: the event as Unix time, by the clock of then

    @property
    def due(self) -> float:
        """The time from which on all of it is in the folder."""
        return self.at + self.after_s + LATE_S


class _Drawing(NamedTuple):
    wish: Wish
    file: str
    process: subprocess.Popen
    said: BinaryIO
    until: float


class Dumps:
    """Writes the flame graphs of a watch, one after the other."""

    def __init__(self, tools: pipeline.Tools, name: str, form: str, most_files: int):
        self.written = 0
        self.failed = 0
        self._tools, self._name, self._form, self._most = tools, name, form, most_files
        self._wishes: list[Wish] = []
        self._drawing: _Drawing | None = None
        self._store: store.Store | None = None
        self._own: OwnFiles | None = None

    def use(self, opened: store.Store) -> None:
        """Writes into this folder from now on.  Raises Failure."""
        folder = opened.make(store.DUMPS)
        self._store, self._own = opened, OwnFiles(folder, opened.path_of("files"))
        self._remove_drafts(folder)

    def _remove_drafts(self, folder: str) -> None:
        """Removes the drafts of a drawing that was killed, as by the end of the machine."""
        for name in os.listdir(folder):
            if _is_ours(files.replaced_by(name), self._name) and files.replaced_by(name).endswith(outputs.FORMS[self._form].suffix):
                os.unlink(os.path.join(folder, name))

    def wish(self, wish: Wish) -> None:
        """Writes a flame graph once all of its time is recorded."""
        self._wishes.append(wish)

    @property
    def is_idle(self) -> bool:
        """Is everything drawn?"""
        return not self._wishes and not self._drawing

    def next_due(self) -> float:
        """Returns the time of the next poll()."""
        if self._drawing:
            return time.monotonic() + _POLL_S
        return min((wish.due for wish in self._wishes), default=float("inf"))

    def poll(self) -> bool:
        """Starts and ends drawings; returns whether one has ended."""
        has_ended = False
        if self._drawing and (self._drawing.process.poll() is not None or time.monotonic() > self._drawing.until):
            self._end(self._drawing)
            self._drawing, has_ended = None, True
        due = [wish for wish in self._wishes if wish.due <= time.monotonic()]
        if due and not self._drawing:
            self._wishes.remove(due[0])
            self._begin(due[0])
        return has_ended

    def stop(self) -> None:
        """Ends the drawing, and prints how to draw what is not drawn yet."""
        left = self._wishes
        if self._drawing:
            self._drawing.process.terminate()
            self._drawing.process.wait()
            self._drawing.said.close()
            left = [self._drawing.wish, *left]
        for wish in left:
            span = draw.range_of(wish.at - wish.before_s, wish.at + wish.after_s)
            log.say(f"{self._name}: {wish.text}: not drawn; to draw it: stackpipe watch --dump {self._name} --time {span}")

    def _begin(self, wish: Wish) -> None:
        said = None
        try:
            said = files.scratch()
            file = self._free_name(wish)
            path = os.path.join(self._store.path_of(store.DUMPS), file)
            program = os.path.join(self._tools.here, "stackpipe")
            words = ["setpriv", "--pdeathsig", "TERM", "--", "nice", "-n", "10", program, "watch", "--dump", self._name, "--time",
                     draw.range_of(wish.at - wish.before_s, wish.at + wish.after_s), "--format", self._form, "-q", "-o", path]
            process = self._tools.start(words, as_user=True, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            self._drawing = _Drawing(wish, file, process, said, time.monotonic() + _MOST_S)
        except (Failure, OSError) as failure:
            if said:
                said.close()
            self._fail(wish, str(failure))

    def _free_name(self, wish: Wish) -> str:
        stem = f"{self._name}-{time.strftime('%Y%m%dT%H%M%S', time.localtime(wish.wall))}-{wish.reason}"
        suffix = outputs.FORMS[self._form].suffix
        for number in range(1, 1000):
            name = f"{stem}{'' if number == 1 else f'-{number}'}{suffix}"
            if not os.path.lexists(os.path.join(self._store.path_of(store.DUMPS), name)):
                return name
        raise Failure(f"{stem}{suffix}: no free name")

    def _fail(self, wish: Wish, why: str) -> None:
        self.failed += 1
        log.say(f"{self._name}: {wish.text}: not drawn: {why}")

    def _end(self, drawing: _Drawing) -> None:
        """A drawing has ended, or has taken too long."""
        if drawing.process.poll() is None:
            drawing.process.terminate()
        status = pipeline.wait_for(drawing.process)
        drawing.said.seek(0)
        said = text_of(drawing.said.read(_MOST_SAID)).splitlines()
        drawing.said.close()
        if status:
            self._fail(drawing.wish, said[-1] if said else f"exit status {status}")
            return
        self.written += 1
        log.say(f"{self._name}: {drawing.wish.text}: wrote {os.path.join(self._store.path, store.DUMPS, drawing.file)}")
        try:
            self._own.add(drawing.file)
            self._own.keep_latest(self._most)
        except Failure as failure:
            log.say(f"{self._name}: {failure}")


def _is_ours(file: str, name: str) -> bool:
    """Is this the form of the names that we give?"""
    return re.fullmatch(re.escape(name) + r"-[0-9]{8}T[0-9]{6}-[A-Za-z0-9_.-]+", file) is not None


def reason_of(text: str) -> str:
    """Returns a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9_.]+", "_", text)[:40].strip("_") or "trigger"
