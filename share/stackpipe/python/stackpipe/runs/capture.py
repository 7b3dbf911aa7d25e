"""profile_run capture: records a workload, and writes the folder of a run."""
import contextlib
import json
import os
import re
import shlex
import subprocess
import time
from typing import BinaryIO, Iterator, NamedTuple, Sequence

from stackpipe import files, pipeline, targets
from stackpipe.runs import modes, report
from stackpipe.messages import Failure, UsageError, bytes_of, count_of, print_out, printable, say, say_lines, text_of, write_all
from stackpipe.runs.profile_run import Settings, need
from stackpipe.runs.report import NotWritten
from stackpipe.runs.store import FORMAT, Run, find_run, keep_run, program_of, read_runs, text_of_number, unit_of

OWN_FAILURE = 125
_MOST_MESSAGES = 65536
# The line that a recorder prints if it ends normally: a summary, or the reason why it recorded nothing.
CLOSING_LINE = re.compile(r"(?:pe-record|offcpu|malloctrace): (?:([0-9]+) (?:samples?|waits?|allocations?)"
                          r"(?: in ([0-9]+(?:\.[0-9]+)?) s, |: )|nothing was recorded: ).*")
_EVENTS = {"malloctrace": "alloc-bytes", "offcpu": "offcpu", "hotcold": "cpu-clock,offcpu"}


class Target(NamedTuple):
    """The target of the recording."""

    arguments: list[str]  #: the recorder's arguments
    what: str  #: the target, as text
    workload: list[str]  #: empty: the target is a process or the system
    pid: str


class Captured(NamedTuple):
    """A new run and its result."""

    run: Run
    status: int  #: status of the program, or of the recorder if there was no program
    samples: int
    lost: int


def read_target(settings: Settings, mode: str, workload: list[str]) -> Target:
    """Returns the target to record; raises UsageError."""
    if workload and settings.pid:
        raise UsageError("--workload, --pid: cannot be combined")
    if mode == "system":
        if workload or settings.pid:
            raise UsageError("--mode system: cannot be combined with --workload or --pid")
        return Target(["-a"], "the whole system", [], "")
    if settings.pid:
        if mode == "heap":
            raise UsageError("--mode heap: traces only a program that it starts, not --pid")
        return Target(["-p", settings.pid], f"process {settings.pid} ({targets.command_line_of(settings.pid)})", [], settings.pid)
    if not workload:
        raise UsageError("capture: nothing to record: give a program after --, --workload or --pid")
    return Target(["--", *workload], shlex.join(workload), workload, "")


class Draft:
    """A run that is being made, in a folder of its own.  One file collects the messages of the tools."""

    def __init__(self, output: str, stamp: str):
        try:
            os.makedirs(output, exist_ok=True)
        except OSError as error:
            raise Failure(f"{output}: cannot be made: {error.strerror}") from None
        self.stamp = stamp
        self.output = files.open_folder(output)  #: the folder of runs
        self.folder = files.temporary_folder(self.output, f".capture-{stamp}-")  #: empty once it is a run
        self.said: BinaryIO = files.create(self.path(".said"))
        self.printed: BinaryIO | None = None  #: the program's output, with --work

    def path(self, name: str) -> str:
        """Returns the path of a file in the draft."""
        return os.path.join(self.folder, name)

    def messages(self) -> list[str]:
        """Returns the messages of the tools.  Removes the draft's path and hotcold's line with the flame graph's path: both
        will change."""
        self.said.seek(0)
        text = text_of(self.said.read().replace(b"\0", b"")[:_MOST_MESSAGES]).replace(f"{self.folder}/", "")
        self.said.seek(0, os.SEEK_END)
        return [line for line in text.splitlines() if not re.fullmatch(r"hotcold: wrote (.*/)?flame\.svg", line)]

    def leave(self) -> None:
        """Keeps the folder when the capture ends."""
        files.close_folder(self.folder)
        self.folder = ""

    def close(self) -> None:
        """Removes the files that only the capture needed."""
        for file in (self.said, self.printed):
            if file:
                file.close()
        for name in (".said", ".output", ".waits.folded"):
            if os.path.lexists(self.path(name)):
                os.unlink(self.path(name))


def capture(settings: Settings, workload: list[str], tools: pipeline.Tools) -> Captured:
    """Records and writes a run; raises Failure."""
    line = settings.line
    mode = modes.mode_of(line.last("mode"), line.last("duration"), line.last("freq"), bool(workload))
    target = read_target(settings, mode.name, workload)
    need(tools, "pe-record", "capture")
    if mode.recorder != "pe-record":
        need(tools, "malloctrace" if mode.recorder == "malloctrace" else "offcpu", f"--mode {mode.name}")
    need(tools, "stackfold", "capture")
    baseline = find_baseline(settings, target.what, mode.name)
    draft = Draft(settings.output, time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime()))
    try:
        return make_run(Making(settings, tools, mode, target, baseline, draft))
    except BaseException:
        if draft.folder:
            files.remove_folder(draft.folder)
        raise
    finally:
        files.close_folder(draft.output)
        pipeline.listen_again(tools)


def find_baseline(settings: Settings, what: str, mode: str) -> Run | None:
    """Returns the run of --baseline, or else the last run of the same workload and mode."""
    if settings.line.has("baseline") and settings.line.last("baseline"):
        return find_run(settings.output, settings.line.last("baseline"), "--baseline")
    for run in reversed(read_runs(settings.output)):
        if program_of(run.text("workload")) == program_of(without_invalid(what)) and run.text("mode") == mode:
            return run
    return None


def without_invalid(text: str) -> str:
    """Removes bytes that are not UTF-8, which JSON cannot hold."""
    return bytes_of(text).decode("utf-8", "ignore")


class Making(NamedTuple):
    """The inputs of a run that is being made."""

    settings: Settings
    tools: pipeline.Tools
    mode: modes.Mode
    target: Target
    baseline: Run | None
    draft: Draft


def make_run(making: Making) -> Captured:
    """Records, and writes all files of the run."""
    settings, mode, target, draft = making.settings, making.mode, making.target, making.draft
    status, interrupted = record(making)
    closing = read_closing_lines(draft.messages())
    stream = draft.path(next(iter(mode.streams)))
    if not os.path.exists(stream) or os.path.getsize(stream) == 0:
        raise Failure(f"nothing was recorded{files.why_not_written(draft.folder)}", status if 0 < status <= 128 else OWN_FAILURE)
    if closing and closing.samples == 0:
        raise Failure(f"nothing was recorded{files.why_not_written(draft.folder)}", status or OWN_FAILURE)
    work = read_work(settings, draft)
    if closing is None:
        keep_draft(making, f"{mode.recorder} failed (exit status {status}), so the run is incomplete"
                   f"{files.why_not_written(draft.folder)}")
    if not target.workload and status != 0:
        say(f"{mode.recorder}: exit status {status}")
    try:
        derive(making)
        meta = read_meta(making, closing, {"status": status, "interrupted": interrupted, "work": work})
        files.write_new(draft.path("messages.txt"), "".join(f"{line}\n" for line in draft.messages()))
        files.write_new(draft.path("meta.json"), json.dumps(meta, indent=2, ensure_ascii=False) + "\n")
        files.write_new(draft.path("report.txt"), report.report_of(making, meta))
    except (NotWritten, OSError):
        keep_draft(making, "the run could not be written")
    draft.close()
    for name in mode.streams:
        os.unlink(draft.path(name))
    run = keep_run(draft.folder, draft.output, settings.output, draft.stamp)
    draft.leave()
    return Captured(run, status, meta["samples"], meta["lost"])


def keep_draft(making: Making, problem: str) -> None:
    """Keeps the recording in the draft's folder, and raises Failure."""
    draft = making.draft
    lines = draft.messages()
    draft.close()
    for name in os.listdir(draft.folder):
        if name not in making.mode.streams:
            os.unlink(draft.path(name))
    try:
        files.write_new(draft.path("messages.txt"), "".join(f"{line}\n" for line in lines))
    except OSError:  # the disk is full; the messages have been printed
        pass
    kept = os.path.join(making.settings.output, files.name_of_folder(draft.folder), next(iter(making.mode.streams)))
    draft.leave()
    raise Failure(f"{problem}; the recording is kept in {kept}", OWN_FAILURE)


def record(making: Making) -> tuple[int, bool]:
    """Records, and returns the recorder's status and whether Ctrl-C interrupted it.  Ctrl-C reaches the recorder, which ends
    normally, and this command, which continues.  After the recording this command ignores Ctrl-C, so a second one also
    leaves a complete run."""
    draft, interrupted = making.draft, []
    printed = 2
    if making.settings.work:
        # Output goes to a file, because processes that the program left may write long after the recorder has ended.
        draft.printed = files.create(draft.path(".output"))
        printed = draft.printed.fileno()
    pipeline.on_stop(lambda number, frame: interrupted.append(number))
    with program_stderr(printed) as variables:
        process = making.tools.start(recorder_command(making), as_user=True, variables=variables, stdout=printed, stderr=draft.said)
    if making.mode.recorder == "malloctrace" and making.mode.has_limit:
        # malloctrace has no time limit and ends with its program.  SIGINT ends both.
        if not pipeline.wait_or_interrupt(process, float(making.mode.seconds)):
            say(f"stopped the command after {making.mode.seconds} s (--duration)")
    status = pipeline.wait_for(process)
    pipeline.stop_listening(making.tools)
    if draft.printed:
        draft.printed.seek(0)
        write_all(2, draft.printed.read())
    say_lines("".join(f"{line}\n" for line in draft.messages()))
    return status, bool(interrupted)


def recorder_command(making: Making) -> list[str]:
    """Returns the recorder and its arguments."""
    mode, draft, tools, target = making.mode, making.draft, making.tools, making.target.arguments
    limit = ["-d", text_of_number(short(float(mode.seconds)))] if mode.has_limit else []
    stream = draft.path("raw.pe")
    if mode.recorder == "hotcold":
        return [os.path.join(tools.here, "hotcold"), *limit, "-F", str(mode.hz), "--keep", draft.folder, draft.path("flame.svg"), *target]
    if mode.recorder == "malloctrace":
        return [tools.find("malloctrace"), "-o", stream, *target]
    rate = ["-F", str(mode.hz)] if mode.hz else []
    return [tools.find(mode.recorder), *rate, *limit, "-o", stream, *target]


@contextlib.contextmanager
def program_stderr(descriptor: int) -> Iterator[dict[str, str]]:
    """Gives the program another standard error than the recorder's.  So its output is never parsed as the recorder's figures,
    and we do not wait for processes that it leaves running.  The recorder itself gives it the descriptor, because a shell that
    did so would appear in the profile.  Yields the variables of the recorder."""
    copy = os.dup(descriptor)
    try:
        os.set_inheritable(copy, True)
        yield {pipeline.PROGRAM_STDERR: str(copy)}
    finally:
        os.close(copy)


class Closing(NamedTuple):
    """The figures in the recorders' closing lines; for two recorders, combined."""

    samples: int
    lost: int
    seconds: float


def read_closing_lines(messages: Sequence[str]) -> Closing | None:
    """Returns the figures of the last two closing lines; None if no recorder ended normally."""
    lines = [match for line in messages if (match := CLOSING_LINE.fullmatch(line))][-2:]
    samples = lost = 0
    seconds: float | None = None
    for match in lines:
        samples += int(match[1] or 0)
        if found := re.search(r", ([0-9]+) lost", match[0]):
            lost += int(found[1])
        if seconds is None and match[2]:
            seconds = float(match[2])
    return Closing(samples, lost, seconds or 0) if lines else None


def read_work(settings: Settings, draft: Draft) -> int | float | None:
    """Returns the units of work that the program reports, from the last line that --work matches.  The number is the first
    group of the expression or, without groups, the whole match."""
    regex = settings.work
    if not regex or not draft.printed:
        return None
    draft.printed.seek(0)
    match = None
    for line in text_of(draft.printed.read().replace(b"\0", b"")).split("\n"):
        match = regex.search(line) or match
    number = (match[1] if regex.groups else match[0]) if match else None
    if number and re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,9})?", number) and float(number) > 0:
        return short(float(number))
    say("--work: no amount of work above 0 in the program's output" + (f", though there is: {match.string}" if match else ""))
    return None


def derive(making: Making) -> None:
    """Writes the streams with symbols, the folded text and the flame graphs; raises NotWritten."""
    mode, draft = making.mode, making.draft
    for raw, named in mode.streams.items():
        write_stage(making, named, [["pe-symbolize", draft.path(raw)], ["gzip", "-1"]])
    if mode.recorder != "hotcold":  # hotcold itself folds
        fold(making, "stacks.folded", [])
    draw(making, "stacks", "flame", f"{draft.stamp}, {mode.name}")
    for part, event in modes.HEAP_PARTS.items() if mode.name == "heap" else ():
        # Its messages would repeat those of the first fold.
        fold(making, f"{part}.folded", ["--event", event], stderr=subprocess.DEVNULL)
        draw(making, part, part, f"{draft.stamp}, {event}")


def fold(making: Making, name: str, more: list[str], **streams) -> None:
    """Folds the stream with symbols."""
    write_stage(making, name, [["gzip", "-dc", "--", making.draft.path("named.pe.gz")], ["stackfold", "--annotate", *more, "-"]], **streams)


def draw(making: Making, folded: str, picture: str, subtitle: str) -> None:
    """Draws one of the run's flame graphs; without stacks, its text reports that."""
    draft = making.draft
    if os.path.lexists(draft.path(f"{picture}.svg")):  # hotcold drew it
        os.unlink(draft.path(f"{picture}.svg"))
    write_stage(making, f"{picture}.svg", [["flamesvg", *modes.look_options(making.mode.name), "--title", printable(making.target.what),
                                            "--subtitle", subtitle, draft.path(f"{folded}.folded")]])


def write_stage(making: Making, name: str, stages: Sequence[Sequence[str]], stderr: BinaryIO | int | None = None) -> None:
    """Writes a file of the draft by a pipeline; raises NotWritten."""
    with files.create(making.draft.path(name)) as out:
        statuses = making.tools.pipe(stages, stdout=out, stderr=making.draft.said if stderr is None else stderr)
    if pipeline.outcome(stages, statuses) == 1:
        raise NotWritten


def read_meta(making: Making, closing: Closing, done: dict) -> dict:
    """Returns the content of meta.json."""
    mode, target, draft = making.mode, making.target, making.draft
    messages = draft.messages()
    names = [match for line in messages
             if (match := re.fullmatch(r"pe-symbolize: (?:.*; )?(?:([0-9]+) of )?([0-9]+) frames without a name.*", line))]
    event = _EVENTS.get(mode.recorder, "cpu-clock" if any("sampling cpu-clock" in line for line in messages) else "cycles")
    return {
        "format": FORMAT,
        "date": draft.stamp,
        "mode": mode.name,
        "workload": without_invalid(target.what),
        "arguments": [without_invalid(word) for word in target.workload],
        "pid": int(target.pid) if target.pid else None,
        "exit_status": done["status"],
        "interrupted": done["interrupted"],
        "rate_hz": mode.hz,
        "event": event,
        "seconds_asked": short(float(mode.seconds)),
        "seconds": short(closing.seconds),
        "unit": unit_of(mode.name),
        "samples": closing.samples,
        "lost": closing.lost,
        "work": done["work"],
        "frames": int(names[-1][2]) if names else None,
        "frames_without_name": int(names[-1][1] or 0) if names else 0,
        "machine": " ".join((os.uname().sysname, os.uname().release, os.uname().machine)),
        "version": text_of(making.tools.read([["pe-record", "--version"]])[1]).strip(),
        "baseline": without_invalid(making.baseline.name) if making.baseline else None,
    }


def short(number: float) -> int | float:
    """Converts a number without a fraction to an integer."""
    return int(number) if number == int(number) else number


def run_capture(settings: Settings, tools: pipeline.Tools) -> int:
    """Makes a run and prints its folder.  Returns the status of the program, or 0 without one."""
    workload = settings.workload()
    captured = capture(settings, workload, tools)
    problem = None
    try:
        print_out(f"{captured.run.folder}\n", OWN_FAILURE)
    except Failure as failure:
        problem = failure
    say(f"{count_of(captured.samples, 'sample')}, {captured.lost} lost; report: {captured.run.path('report.txt')}")
    if problem and not str(problem):
        raise problem
    if workload and captured.status != 0:
        say(f"{workload[0]}: exit status {captured.status}")
    if problem:
        raise problem
    return captured.status if workload else 0
