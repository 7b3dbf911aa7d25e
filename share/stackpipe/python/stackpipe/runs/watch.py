"""profile_run watch: profiles continuously.  Writes a folded file an hour, removes the oldest, raises alerts, and can send
profiles to a server.

profile-push sends from a spool folder in parallel; the recording never waits for it.
"""
import fcntl
import os
import re
import shutil
import signal
import subprocess
import time
from typing import Callable

from stackpipe import files, pipeline, recorder
from stackpipe.messages import Failure, UsageError, say, text_of
from stackpipe.runs.profile_run import Settings, need, path_of, words_of
from stackpipe.runs.store import find_run, must_count_alike
from stackpipe.runs.trend import Reader, share_of

_HOUR_FILE = re.compile(r"[0-9]{4}-.*Z\.folded", re.DOTALL)
_PUSH_OPTIONS = ("push-name", "push-label", "push-tenant", "token-file", "ca-file", "spool-size", "insecure-http")


class Once:
    """Prints a repeated message only once.  Messages that differ only in numbers count as the same."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        """Prints a message, unless it is a repetition."""
        key = re.sub("[0-9]", "", text)
        if key not in self._said:
            self._said.add(key)
            say(text)

    def forward(self, said: str) -> None:
        """Forwards the messages of a tool, without repetitions."""
        for line in said.splitlines():
            self.say(line)


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
        self._unspooled = 0
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

    def put(self, named: str, began: float, ended: float, once: Once) -> None:
        """Puts the profile of a stream with symbols into the spool, with its start and end time."""
        fold = self._tools.start(["stackfold", "--to", "pprof", "--", named], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        put = self._tools.start([*self._put, "--from", f"{began:.3f}", "--until", f"{ended:.3f}"], stdin=fold.stdout,
                                stderr=subprocess.PIPE)
        fold.stdout.close()
        once.forward(text_of(put.communicate()[1]))
        fold.wait()
        self._unspooled += pipeline.wait_for(put) != 0
        if self._sender.poll() is not None:
            self._sender.stdin.close()
            self._start()

    def end(self) -> None:
        """Ends the sender, which reports its result, and reports profiles that were not sent or not put into the spool."""
        self._sender.stdin.close()
        status = pipeline.wait_for(self._sender)
        if status:
            say(f"--push: not everything was sent (profile-push: exit status {status})")
        if self._unspooled:
            say(f"--push: {self._unspooled} of the profiles could not be put into the spool")


def name_of(pid: str) -> str:
    """Returns the default application name for Pyroscope: the process's name."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            name = text_of(file.read()).rstrip("\n")
    except OSError:
        name = ""
    return re.sub(r"[^A-Za-z0-9_./-]", "_", name) or "stackpipe"


def hours_of(folder: str) -> list[str]:
    """Returns the hourly files, sorted by name."""
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if _HOUR_FILE.fullmatch(name))


class Watch:
    """Watches a process, or the whole system."""

    def __init__(self, settings: Settings, folder: str, opened: str, scratch: str, tools: pipeline.Tools):
        """`opened` is the open folder (files.open_folder), `folder` its name for users."""
        self._settings, self._name, self._folder, self._tools = settings, folder, opened, tools
        self._chunk = os.path.join(scratch, "chunk")
        self._once = Once()
        self._alerted: set[tuple[str, str]] = set()
        self._baseline = ""
        self.missing = 0  #: intervals that could not be folded
        if baseline := settings.line.last("baseline"):
            run = find_run(settings.output, baseline, "--baseline")
            must_count_alike("--baseline", run, "samples")
            self._baseline = run.stacks

    def _shown(self, hour: str) -> str:
        """Returns the name of an hourly file for users."""
        return os.path.join(self._name, os.path.basename(hour))

    def look(self, push: Push | None) -> None:
        """Records one interval, adds it to the file of the hour, and checks that file for alerts."""
        hour = os.path.join(self._folder, time.strftime("%Y-%m-%dT%HZ.folded", time.gmtime()))
        took = self._record()
        ended = time.time()  # the clock may have been set during the recording
        if not self._fold():
            self.missing += 1
            return
        if push and os.path.getsize(self._chunk):
            push.put(f"{self._chunk}.named", ended - took, ended, self._once)
        self._add_chunk(hour)
        self._remove_oldest(hour)
        self._check_limits(hour)
        self._check_growth(hour)

    def _record(self) -> float:
        """Records one interval.  Returns its duration, by a clock that cannot be set."""
        line, stream = self._settings.line, f"{self._chunk}.pe"
        target = ["-p", self._settings.pid] if self._settings.pid else ["-a"]
        began = time.clock_gettime(time.CLOCK_BOOTTIME)
        command = ["pe-record", "-q", "-F", line.last("freq", "1"), "-d", line.last("interval", "60"), "-o", stream, *target]
        recording = recorder.start(self._tools, command, stderr=subprocess.PIPE)
        said = text_of(recording.process.communicate()[1]).splitlines()
        took = time.clock_gettime(time.CLOCK_BOOTTIME) - began
        status = pipeline.wait_for(recording.process)
        # An interval in which nothing ran is not a failure.
        is_failure = status and not recording.summary.is_empty
        self._once.forward("\n".join(said if is_failure else recording.summary.without_text(said)))
        if is_failure:
            why = "" if said else files.why_not_written(os.path.dirname(self._chunk))
            raise Failure(f"pe-record: exit status {status}{why}")
        return took

    def _fold(self) -> bool:
        """Symbolizes and folds the interval; on failure, reports it and returns False."""
        named = f"{self._chunk}.named"
        for command, path in ((["pe-symbolize", f"{self._chunk}.pe"], named), (["stackfold", "--annotate", "--", named], self._chunk)):
            if os.path.lexists(path):
                os.unlink(path)
            with files.create(path) as out:
                process = self._tools.start(command, stdout=out, stderr=subprocess.PIPE)
                said = text_of(process.communicate()[1])
            if pipeline.wait_for(process):
                self._once.forward(said)
                return False
        return True

    def _add_chunk(self, hour: str) -> None:
        try:
            if os.path.islink(hour) or not os.path.isfile(hour):
                os.rename(self._chunk, hour)
                return
            with files.Draft(hour) as draft:
                if self._tools.pipe([["stackfold", "--", hour, self._chunk]], stdout=draft.file) == [0]:
                    draft.keep()
                    return
        except OSError as error:
            raise Failure(f"{self._shown(hour)}: {error.strerror}") from None
        raise Failure(f"{self._shown(hour)}: cannot be written")

    def _remove_oldest(self, hour: str) -> None:
        """Removes the oldest files, but never the current one.  Files of future hours were written before the clock was set
        back, so they count as the oldest."""
        keep = int(self._settings.line.last("keep", "168"))
        hours = hours_of(self._folder)
        to_come = [file for file in hours if file > hour]
        if to_come and keep:
            self._once.say(f"watch: the clock was set back: files of future hours, from {self._shown(to_come[0])} on, count as the oldest")
        ordered = to_come + [file for file in hours if file <= hour]
        for file in ordered[:max(len(ordered) - keep, 0)] if keep else []:
            os.unlink(file)

    def _check_limits(self, hour: str) -> None:
        for limit in self._settings.line.values.get("limit", []):
            function, _, most = limit.removesuffix("%").rpartition("=")
            share = share_of(function, hour, Reader(self._tools))
            if share and not share.is_found:
                self._once.say(f"--limit {function}={most}%: no function has this name so far")
            elif share and share.total_percent > float(most):
                told = f"{share.total_percent:.2f}"
                self._alert(function, told, most, hour, f"{told} % of the samples, the limit is {most} %")

    def _check_growth(self, hour: str) -> None:
        """Alerts if a function grew beyond noise, since the hour before or against a baseline."""
        earlier = [file for file in hours_of(self._folder) if file < hour]
        before = self._baseline or (earlier[-1] if earlier else "")
        if not before:
            return
        try:
            process = self._tools.start(["flamediff", "--text", "--top", "1", "--fail-over", self._settings.fail_over, "--", before, hour],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        except Failure:  # flamediff is not installed
            return
        said = text_of(process.communicate()[1])
        if pipeline.wait_for(process) == 3:
            grown = next((line for line in said.splitlines() if " grew from " in line), "")
            grown = grown.removeprefix("flamediff: --fail-over: ")
            # The name of a function may start with "-", which a program could parse as an option.
            self._alert("growth", f"function {grown}", self._settings.fail_over, hour, grown)

    def _alert(self, subject: str, told: str, limit: str, hour: str, why: str) -> None:
        """Reports an alert once for each file and function, on standard error and to the user's program.  The program gets
        the function, its share, the limit and the file as arguments, without a shell."""
        if (hour, subject) in self._alerted:
            return
        self._alerted.add((hour, subject))
        say(f"alert: {subject}: {why}, in {self._shown(hour)}")
        program = words_of(self._settings.line.last("alert"))
        if not program:
            return
        try:
            path = self._tools.find(program[0]) if "/" not in program[0] else program[0]
            status = pipeline.wait_for(self._tools.start([path, *program[1:], subject, told, limit, self._shown(hour)], as_user=True))
        except Failure as failure:
            say(str(failure))
            status = 127
        if status:
            say(f"--alert: {program[0]}: exit status {status}")


def open_locked(folder: str) -> str:
    """Opens the folder (files.open_folder) and locks it: two watches in it would overwrite each other's files.  Raises Failure."""
    opened = files.open_folder(folder)
    try:  # the lock lasts as long as the process
        fcntl.flock(os.open(opened, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Failure(f"{folder}: another profile_run is watching here; give one of them another --output") from None
    return opened


def remove_left_chunks(opened: str) -> None:
    """Removes the chunks of a killed watch.  We hold the lock, so no other process writes them."""
    for entry in list(os.scandir(opened)):
        if entry.name.startswith(".chunk-") and entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
            say("watch: an earlier watch was killed; the samples that it had not yet added are lost")


def run_watch(settings: Settings, tools: pipeline.Tools) -> int:
    """Watches until --duration is over, the process has ended, or a signal arrives."""
    line = settings.line
    need(tools, "pe-record", "watch")
    if line.has("workload") or line.command is not None:
        raise UsageError("watch: watches the whole system, or --pid")
    if line.last("mode", "system") != "system":
        raise UsageError("watch: has no modes")
    if not line.has("push") and any(line.has(name) for name in _PUSH_OPTIONS):
        raise UsageError("watch: options for sending profiles need --push")
    folder = os.path.join(settings.output, "watch")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise Failure(f"{folder}: cannot be made: {error.strerror}") from None
    opened = open_locked(folder)
    remove_left_chunks(opened)
    scratch, push = "", None
    stopped: list[int] = []
    try:
        scratch = files.temporary_folder(opened, ".chunk-")
        watch = Watch(settings, folder, opened, scratch, tools)
        pipeline.on_stop(lambda number, frame: stopped.append(number))
        push = Push(settings, folder, tools) if line.has("push") else None
        watch_on(settings, lambda: watch.look(push), lambda: bool(stopped))
        say(f"wrote to {folder}")
    finally:
        if push:
            push.end()
        if scratch:
            files.remove_folder(scratch)
    if watch.missing:
        raise Failure(f"watch: {watch.missing} intervals could not be folded and are missing")
    return 0


def watch_on(settings: Settings, look: Callable[[], None], is_stopped: Callable[[], bool]) -> None:
    """Calls `look` until the time is over, the process has ended, or a signal has arrived."""
    limit = settings.line.last("duration")
    end = time.clock_gettime(time.CLOCK_BOOTTIME) + float(limit) if limit else None
    while not is_stopped():
        look()
        if settings.pid and not is_there(settings.pid):
            return
        if end is not None and time.clock_gettime(time.CLOCK_BOOTTIME) >= end:
            return


def is_there(pid: str) -> bool:
    """Does the process exist?"""
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
