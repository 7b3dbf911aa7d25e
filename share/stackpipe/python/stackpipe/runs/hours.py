"""The hourly files of profile_run watch, and its alerts."""
import os
import re
import subprocess
import time

from stackpipe import files, pipeline
from stackpipe.messages import Failure, text_of
from stackpipe.options import read_bytes
from stackpipe.runs.profile_run import Settings, words_of
from stackpipe.runs.store import find_run, must_count_alike
from stackpipe.runs.trend import Reader, share_of
from stackpipe.watch import log
from stackpipe.watch.own import OwnFiles

_HOUR_FILE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}Z\.folded", re.ASCII)
_OWN = "files"  #: the list of own files


def hours_of(folder: str) -> list[str]:
    """Returns the hourly files, sorted by name."""
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if _HOUR_FILE.fullmatch(name))


class Hours:
    """The hourly files of a folder."""

    def __init__(self, settings: Settings, name: str, opened: str, tools: pipeline.Tools):
        """`opened` is the open folder (files.open_folder), `name` its name for users."""
        self._settings, self._name, self._folder, self._tools = settings, name, opened, tools
        self._once = log.Once()
        is_first = not os.path.lexists(os.path.join(opened, _OWN))
        self._own = OwnFiles(opened, os.path.join(opened, _OWN))
        for hour in hours_of(opened) if is_first else []:  # an earlier version has kept no list
            self._own.add(os.path.basename(hour))

    def shown(self, hour: str) -> str:
        """Returns the name of an hourly file for users."""
        return os.path.join(self._name, os.path.basename(hour))

    def add(self, chunk: str, began: float) -> str:
        """Adds folded text to the file of the hour of this Unix time.  Returns its path; raises Failure or OSError."""
        hour = os.path.join(self._folder, time.strftime("%Y-%m-%dT%HZ.folded", time.gmtime(began)))
        self._move_damaged_aside(hour)
        has_some = os.path.lexists(hour) and os.path.getsize(hour) > 0
        if os.path.lexists(hour) and not os.path.getsize(chunk):
            return hour
        with files.Draft(hour, is_new=True) as draft:
            command = ["stackfold", "--from", "folded", "--", hour, chunk] if has_some else ["cat", "--", chunk]
            if self._tools.pipe([command], stdout=draft.file) != [0]:
                raise Failure(f"{self.shown(hour)}: cannot be written{files.why_not_written(self._folder)}")
            draft.keep(on_disk=True)
        try:
            self._own.add(os.path.basename(hour))
        except Failure as failure:  # the samples are in the file
            self._once.say(f"watch: {failure}")
        return hour

    def _move_damaged_aside(self, hour: str) -> None:
        """Renames a file that is not folded text, as after the machine has lost power, or one that is not a regular file."""
        if not os.path.lexists(hour):
            return
        is_file = os.path.isfile(hour) and not os.path.islink(hour)
        if is_file and (os.path.getsize(hour) == 0 or self._tools.pipe([["stackfold", "--from", "folded", "--", hour]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == [0]):
            return
        aside = next(name for name in (f"{hour}.damaged{number or ''}" for number in range(10000)) if not os.path.lexists(name))
        os.rename(hour, aside)
        log.say(f"watch: {self.shown(hour)} cannot be read; it is now {self.shown(aside)}")

    def remove_oldest(self, hour: str) -> None:
        """Removes the oldest own files, but never the current one.  Files of future hours were written before the clock was set
        back, so they count as the oldest."""
        line = self._settings.line
        count, size = int(line.last("keep", "168")), read_bytes("keep-size", line.last("keep-size", "1G"))
        own = set(self._own.names())
        hours = [file for file in hours_of(self._folder) if os.path.basename(file) in own]
        to_come = [file for file in hours if file > hour]
        if to_come and count:
            self._once.say(f"watch: the clock was set back: files of future hours, from {self.shown(to_come[0])} on, count as the oldest")
        ordered = to_come + [file for file in hours if file <= hour]
        total = sum(map(os.path.getsize, ordered))
        while len(ordered) > 1 and (count and len(ordered) > count or total > size):
            oldest = ordered.pop(0)
            total -= os.path.getsize(oldest)
            self._own.remove(os.path.basename(oldest))


class Alerts:
    """Checks the file of the hour, and tells the user and their program."""

    def __init__(self, settings: Settings, hours: Hours, opened: str, tools: pipeline.Tools):
        self._settings, self._hours, self._folder, self._tools = settings, hours, opened, tools
        self._once = log.Once()
        self._alerted: set[tuple[str, str]] = set()
        self._baseline = ""
        if baseline := settings.line.last("baseline"):
            run = find_run(settings.output, baseline, "--baseline")
            must_count_alike("--baseline", run, "samples")
            self._baseline = run.stacks

    def check(self, hour: str) -> None:
        """Checks the limits, and the growth since the hour before."""
        self._check_limits(hour)
        self._check_growth(hour)

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
        self._alerted = {one for one in self._alerted if one[0] == hour} | {(hour, subject)}
        log.say(f"alert: {subject}: {why}, in {self._hours.shown(hour)}")
        program = words_of(self._settings.line.last("alert"))
        if not program:
            return
        try:
            path = self._tools.find(program[0]) if "/" not in program[0] else program[0]
            status = pipeline.wait_for(self._tools.start([path, *program[1:], subject, told, limit, self._hours.shown(hour)], as_user=True))
        except Failure as failure:
            log.say(str(failure))
            status = 127
        if status:
            log.say(f"--alert: {program[0]}: exit status {status}")
