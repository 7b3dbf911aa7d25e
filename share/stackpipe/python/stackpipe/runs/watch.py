"""profile_run watch: profiles continuously.  Writes a folded file an hour, removes the oldest, raises alerts, and can send
profiles to a server.

The recorder of `stackpipe watch` records without end into a folder of segments.  Every interval, their samples since the last one are
added to the file of the hour, so no sample is between two intervals.  profile-push sends from a spool folder in parallel; the recording
never waits for it.
"""
import contextlib
import math
import os
import re
import select
import shutil
import signal
import subprocess
import time
from typing import Callable

from stackpipe import files, pipeline
from stackpipe.messages import Failure, UsageError, text_of
from stackpipe.options import read_bytes
from stackpipe.push.spool import Spool
from stackpipe.runs.hours import Alerts, Hours
from stackpipe.runs.profile_run import Settings, need, path_of
from stackpipe.watch import draw, log, store
from stackpipe.watch.command import signals
from stackpipe.watch.dumps import LATE_S
from stackpipe.watch.keeper import Keeper, Plan
from stackpipe.watch.watched import Watched

_PUSH_OPTIONS = ("push-name", "push-label", "push-tenant", "token-file", "ca-file", "spool-size", "insecure-http")
_SHORTEST_KEEP_S = 600  #: segments are kept at least so long
_IDLE_S = 2.0  #: a recorder that has written nothing for so long has an idle target
_LOOK_S = 1.0  #: between two looks at the target
_POSITION = "position.json"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Push:
    """The two uses of profile-push: one command puts profiles into a spool, the other sends them."""

    def __init__(self, settings: Settings, folder: str, tools: pipeline.Tools):
        line = settings.line
        program = os.path.join(tools.here, "profile-push")
        spool = [f"--spool={folder}/spool"] + [f"--spool-size={line.last('spool-size')}"] * line.has("spool-size")
        self._tools = tools
        self._put = [program, *spool, f"--name={line.last('push-name') or name_of(settings.pid)}",
                     f"--rate={line.last('freq', '1')}", *(f"--label={label}" for label in line.values.get("push-label", []))]
        self._send = [program, *spool, f"--url={line.last('push')}", "--follow"]
        self._send += [f"--{name}={path_of(line.last(name))}" for name in ("token-file", "ca-file") if line.has(name)]
        self._send += [f"--tenant={line.last('push-tenant')}"] * line.has("push-tenant")
        self._send += ["--insecure-http"] * line.has("insecure-http")
        self._unspooled = self._spooled = 0
        self._spool = Spool(f"{folder}/spool", read_bytes("spool-size", line.last("spool-size", "256M")))
        self._before = self._spool.counts()
        # Check the arguments of both before recording starts.
        for command in (self._put, self._send):
            status = tools.pipe([[*command, "--dry-run"]], stdin=subprocess.DEVNULL)[0]
            if status:
                raise Failure("", status)
        self._start()

    def _start(self) -> None:
        """Starts the sender.  It ignores Ctrl-C, so that it also sends the last profile.  It stops when its input ends, also
        if we are killed."""
        before = {number: signal.signal(number, signal.SIG_IGN) for number in pipeline.STOP_SIGNALS}
        try:
            self._sender = self._tools.start(self._send, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def put(self, named: str, span: str, began: float, ended: float, once: log.Once) -> None:
        """Puts the profile of a time of a stream with symbols into the spool, with its start and end time."""
        fold = self._tools.start(["stackfold", "--to", "pprof", "--time", span, "--", named], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        put = self._tools.start([*self._put, "--from", f"{began:.3f}", "--until", f"{ended:.3f}"], stdin=fold.stdout,
                                stderr=subprocess.PIPE)
        fold.stdout.close()
        once.forward(text_of(put.communicate()[1]))
        fold.wait()
        is_put = pipeline.wait_for(put) == 0
        self._spooled += is_put
        self._unspooled += not is_put
        if self._sender.poll() is not None:
            self._sender.stdin.close()
            self._start()

    def end(self) -> bool:
        """Ends the sender, which reports its result, and reports profiles that were not sent or not put into the spool.  Returns False
        if there were profiles, and none was sent."""
        self._sender.stdin.close()
        status = pipeline.wait_for(self._sender)
        if status:
            log.say(f"--push: not everything was sent (profile-push: exit status {status})")
        if self._unspooled:
            log.say(f"--push: {self._unspooled} of the profiles could not be put into the spool")
        return self._spool.counts().since(self._before)["sent"] > 0 or not self._spooled + self._unspooled


def name_of(pid: str) -> str:
    """Returns the default application name for Pyroscope: the process's name."""
    if not pid.isdecimal():
        return re.sub(r"[^A-Za-z0-9_./-]", "_", pid) or "stackpipe"
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            name = text_of(file.read()).rstrip("\n")
    except OSError:
        name = ""
    return re.sub(r"[^A-Za-z0-9_./-]", "_", name) or "stackpipe"


def reason_of(failure: Failure | OSError) -> str:
    """Returns what failed, without an error number."""
    if isinstance(failure, Failure):
        return str(failure)
    return f"{failure.filename}: {failure.strerror}" if failure.filename else failure.strerror or str(failure)


def has_stacks(folded: str) -> bool:
    """Does folded text have more than facts?"""
    with open(folded, "rb") as file:
        return any(not line.startswith(b"#") for line in file)


class Intervals:
    """Takes the samples of one interval after the other from the segments.

    The file position.json has the last time, on the clock of recordings, that is in an hourly file.  After a watch that was killed, the
    next one continues there.
    """

    def __init__(self, folder: store.Store, scratch: str, tools: pipeline.Tools, keep_s: float):
        self._store, self._tools, self._keep_s = folder, tools, keep_s
        self._chunk = os.path.join(scratch, "chunk")
        self._once = log.Once()
        self.folded = 0  #: intervals that are in hourly files
        self.missing = 0  #: intervals that could not be folded in time
        self.is_behind = False  #: the last call failed
        with open(_BOOT_ID, encoding="ascii") as file:
            self._boot = file.read().strip()
        now, known = time.monotonic(), folder.read(_POSITION)
        begin = known.get("us")
        is_valid = known.get("boot") == self._boot and isinstance(begin, int) and 0 <= begin <= now * 1e6
        self._begin_us = max(begin, int((now - keep_s) * 1e6)) if is_valid else int(now * 1e6)

    def fold(self, end: float, hours: Hours, push: Push | None) -> str:
        """Adds the samples up to this time to the file of the hour, and returns its path; empty if they stay for the next call, because
        of a failure, which is reported."""
        end_us = int(end * 1e6)
        if end_us <= self._begin_us or not self._store.kept().last:
            return ""
        span = draw.range_of((self._begin_us + 1) / 1e6, end_us / 1e6)
        ahead = time.time() - time.monotonic()
        self.is_behind = True
        try:
            if self._make_chunk(span):
                hour = hours.add(self._chunk, ahead + self._begin_us / 1e6)
                self.folded += 1
                began_us, self._begin_us, self.is_behind = self._begin_us, end_us, False
                self._finish(hour, hours)
                if push and has_stacks(self._chunk):
                    push.put(f"{self._chunk}.named", span, ahead + began_us / 1e6, ahead + end_us / 1e6, self._once)
                return hour
        except (Failure, OSError) as failure:
            self._once.say(f"watch: {reason_of(failure)}")
        if end_us - self._begin_us > self._keep_s * 1e6:
            self.missing += 1
            self._begin_us = end_us
        return ""

    def _finish(self, hour: str, hours: Hours) -> None:
        """The samples are in the file; failures from now on are no reason to add them again."""
        try:
            self._store.write(_POSITION, {"boot": self._boot, "us": self._begin_us})
            hours.remove_oldest(hour)
        except (Failure, OSError) as failure:
            self._once.say(f"watch: {reason_of(failure)}")

    def _make_chunk(self, span: str) -> bool:
        """Symbolizes and folds the time; on failure, reports it and returns False."""
        named, segments = f"{self._chunk}.named", self._store.path_of(store.SEGMENTS)
        # pe-symbolize fails if no segment has this time.  Those of an idle target are small, so all of them are read then.
        return ((self._run(["pe-symbolize", "--time", span, segments], named, is_quiet=True) or self._run(["pe-symbolize", segments], named)) and
                self._run(["stackfold", "--annotate", "--time", span, "--", named], self._chunk))

    def _run(self, command: list[str], path: str, is_quiet: bool = False) -> bool:
        """Writes the output of a command to a file; on failure, reports it unless `is_quiet`, and returns False."""
        if os.path.lexists(path):
            os.unlink(path)
        with files.create(path) as out:
            process = self._tools.start(command, stdout=out, stderr=subprocess.PIPE)
            said = text_of(process.communicate()[1])
        is_done = pipeline.wait_for(process) == 0
        if not is_done and not is_quiet:
            self._once.forward(said)
        return is_done


def open_folder(output: str) -> store.Store:
    """Opens the folder of the watch, creates it if needed, and locks it: two watches in it would overwrite each other's files.  Others may
    no longer enter it, as those of earlier versions.  Raises Failure."""
    path = os.path.join(output, "watch")
    try:
        os.makedirs(path, 0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.fchmod(descriptor, 0o700)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Failure(f"{path}: cannot be made: {error.strerror}") from None
    opened = store.Store(path)
    try:
        opened.lock()
    except Failure:
        opened.close()
        raise Failure(f"{path}: another profile_run is watching here; give one of them another --output") from None
    return opened


def remove_left_chunks(opened: str) -> None:
    """Removes the chunks of a killed watch.  We hold the lock, so no other process writes them."""
    with os.scandir(opened) as found:
        left = [entry.path for entry in found if entry.name.startswith(".chunk-") and entry.is_dir(follow_symlinks=False)]
    for path in left:
        shutil.rmtree(path, ignore_errors=True)


def read_target(settings: Settings) -> Watched:
    """Returns the target; raises UsageError or Failure."""
    line = settings.line
    if line.has("workload") or line.command is not None:
        raise UsageError("watch: watches the whole system, or --pid")
    if line.last("mode", "system") != "system":
        raise UsageError("watch: has no modes")
    if not line.has("push") and any(line.has(name) for name in _PUSH_OPTIONS):
        raise UsageError("watch: options for sending profiles need --push")
    watched = Watched("pid" if settings.pid.isdecimal() else "name", settings.pid) if settings.pid else Watched("all", "machine")
    watched.look()
    if watched.is_over:
        raise Failure(f"watch: no process {settings.pid}")
    return watched


def run_watch(settings: Settings, tools: pipeline.Tools) -> int:
    """Watches until --duration is over, the process has ended, or a signal arrives."""
    need(tools, "pe-record", "watch")
    watched = read_target(settings)
    folder = open_folder(settings.output)
    scratch, push, failures = "", None, []
    try:
        remove_left_chunks(folder.folder)
        scratch = files.temporary_folder(folder.folder, ".chunk-")
        hours = Hours(settings, folder.path, folder.folder, tools)
        alerts = Alerts(settings, hours, folder.folder, tools)
        tools.hears_keys = False  # Ctrl-C ends the watch, which ends the recorder and then folds
        with signals() as (waking, arrived):
            push = Push(settings, folder.path, tools) if settings.line.has("push") else None
            keep_s = max(_SHORTEST_KEEP_S, math.ceil(2 * interval_of(settings)))
            intervals = Intervals(folder, scratch, tools, keep_s)
            keeper = Keeper(tools, watched, Plan(options=["-F", settings.line.last("freq", "1"), "--keep", f"{keep_s}s"]), lambda: folder.make(store.SEGMENTS))
            loop = Loop(settings, watched, keeper, folder, lambda end: (hour := intervals.fold(end, hours, push)) and alerts.check(hour))
            try:
                loop.run(waking, arrived)
            finally:
                keeper.end_recorder()
            loop.fold(time.monotonic())
            log.say(f"wrote to {folder.path}")
            if keeper.problem and not intervals.folded:
                failures.append(f"watch: nothing was recorded: {keeper.problem}")
            if intervals.missing or intervals.is_behind:
                failures.append("watch: samples could not be folded" + (" and are missing" if intervals.missing else "; the next watch does so if it starts soon"))
    finally:
        if push and not push.end():
            failures.append("watch: no profile was sent")
        if scratch:
            files.remove_folder(scratch)
        folder.close()
    if failures:
        raise Failure("; ".join(failures))
    return 0


def interval_of(settings: Settings) -> float:
    """Returns the seconds between two checks."""
    return float(settings.line.last("interval", "60"))


class Loop:
    """Keeps the recorder going, and folds every interval."""

    def __init__(self, settings: Settings, watched: Watched, keeper: Keeper, folder: store.Store, fold: Callable[[float], None]):
        """`fold` adds the samples up to a time, and checks for alerts."""
        self.fold = fold
        self._watched, self._keeper, self._folder, self._interval_s = watched, keeper, folder, interval_of(settings)
        self._limit_s = float(settings.line.last("duration") or "inf")
        self._end = math.inf
        self._last = folder.kept().last

    def _left_s(self) -> float:
        """Returns the time until the end of --duration.  It begins with the first segment, when a recorder has failed, or when one has
        nothing to write."""
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        if self._end == self._limit_s == math.inf:
            return math.inf
        is_idle = self._keeper.running_s > _IDLE_S
        if self._end == math.inf and (is_idle or self._keeper.problem or self._folder.kept().last != self._last):
            self._end = now + self._limit_s
        return self._end - now if self._end < math.inf else _LOOK_S / 10

    def run(self, waking: int, arrived: list[int]) -> None:
        """Runs until the time is over, the process has ended, or a signal that ends programs has arrived."""
        look_due, fold_due = 0.0, time.monotonic() + self._interval_s + LATE_S
        while not any(number != signal.SIGUSR1 for number in arrived):
            now = time.monotonic()
            if now >= look_due:
                look_due = now + _LOOK_S
                self._watched.look()
                self._keeper.follow()
            self._keeper.poll()
            if now >= fold_due:
                fold_due = now + self._interval_s
                self.fold(now - LATE_S)
            left_s = self._left_s()
            if left_s <= 0 or self._watched.is_over and not self._keeper.pid:
                return
            select.select([waking, *self._keeper.descriptors()], [], [], max(min(look_due - now, fold_due - now, left_s), 0.01))
            with contextlib.suppress(BlockingIOError):
                os.read(waking, 4096)
