"""profile_run capture: records a workload, and writes the folder of a run."""
import contextlib
import json
import os
import re
import shlex
import subprocess
import time
from typing import BinaryIO, Iterator, NamedTuple, Sequence

from stackpipe import files, heap, outputs, pipeline, record, recorder, targets, waits
from stackpipe.runs import modes, report
from stackpipe.messages import Failure, UsageError, bytes_of, count_of, print_out, printable, say, say_lines, text_of, write_all
from stackpipe.runs.profile_run import Settings, need
from stackpipe.runs.report import NotWritten
from stackpipe.runs.store import FORMAT, Run, find_run, keep_run, program_of, read_runs, text_of_number, unit_of

OWN_FAILURE = 125
_MOST_MESSAGES = 65536
_STREAM = "raw.pe"
_EVENTS = {"malloctrace": "alloc-bytes", "offcpu": "offcpu", "hotcold": "cpu,offcpu"}


def read_target(settings: Settings, mode: str, workload: list[str]) -> targets.Target:
    """Returns the target to record; raises UsageError."""
    if workload and settings.pid:
        raise UsageError("--workload, --pid: cannot be combined")
    if mode == "system":
        if workload or settings.pid:
            raise UsageError("--mode system: cannot be combined with --workload or --pid")
        return targets.Target(["-a"], [], "the whole system", [])
    if settings.pid:
        if mode == "heap":
            raise UsageError("--mode heap: traces only a program that it starts, not --pid")
        return targets.Target(["-p", settings.pid], [], f"process {settings.pid} ({targets.command_line_of(settings.pid)})", [])
    if not workload:
        raise UsageError("capture: nothing to record: give a program after --, --workload or --pid")
    return targets.Target([], workload, shlex.join(workload), [])


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
        """Returns the messages of the tools, without the draft's path, which will change."""
        self.said.seek(0)
        text = text_of(self.said.read().replace(b"\0", b"")[:_MOST_MESSAGES]).replace(f"{self.folder}/", "")
        self.said.seek(0, os.SEEK_END)
        return text.splitlines()

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


def capture(settings: Settings, workload: list[str], tools: pipeline.Tools) -> tuple[Run, int]:
    """Records and writes a run.  Returns it, and the status of the program, or of the recorder if there was no program.  Raises
    Failure."""
    line = settings.line
    mode = modes.mode_of(line.last("mode"), line.last("duration"), line.last("freq"), bool(workload))
    limit = ["-d", text_of_number(short(float(mode.seconds)))] if mode.has_limit else []
    target = read_target(settings, mode.name, workload)._replace(limit=limit)
    for tool in ("pe-record", "stackfold"):
        need(tools, tool, "capture")
    need(tools, "pe-record" if mode.recorder == "hotcold" else mode.recorder, f"--mode {mode.name}")
    baseline = find_baseline(settings, target.title, mode.name)
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
    target: targets.Target
    baseline: Run | None
    draft: Draft


def make_run(making: Making) -> tuple[Run, int]:
    """Records, and writes all files of the run."""
    settings, mode, target, draft = making.settings, making.mode, making.target, making.draft
    recording = make_recording(making)
    status = recording.status
    stream = draft.path(_STREAM)
    if not os.path.exists(stream) or os.path.getsize(stream) == 0:
        raise Failure(f"nothing was recorded{files.why_not_written(draft.folder)}", status if 0 < status <= 128 else OWN_FAILURE)
    is_whole = any(summary.is_whole for summary in recording.summaries)
    if is_whole and not any(summary.count for summary in recording.summaries):
        raise Failure(f"nothing was recorded{files.why_not_written(draft.folder)}", status or OWN_FAILURE)
    work = read_work(settings, draft)
    if not is_whole:
        keep_draft(making, f"{mode.recorder} failed (exit status {status}), so the run is incomplete"
                   f"{files.why_not_written(draft.folder)}")
    if not target.command and status != 0:
        say(f"{mode.recorder}: exit status {status}")
    try:
        derive(making, recording)
        meta = read_meta(making, recording, work)
        files.write_new(draft.path("messages.txt"), "".join(f"{line}\n" for line in draft.messages()))
        files.write_new(draft.path("meta.json"), json.dumps(meta, indent=2, ensure_ascii=False) + "\n")
        files.write_new(draft.path("report.txt"), report.report_of(making, meta, recording))
    except (NotWritten, OSError):
        keep_draft(making, "the run could not be written")
    draft.close()
    os.unlink(stream)
    run = keep_run(draft.folder, draft.output, settings.output, draft.stamp)
    draft.leave()
    return run, status


def keep_draft(making: Making, problem: str) -> None:
    """Keeps the recording in the draft's folder, and raises Failure."""
    draft = making.draft
    lines = draft.messages()
    draft.close()
    for name in os.listdir(draft.folder):
        if name != _STREAM:
            os.unlink(draft.path(name))
    try:
        files.write_new(draft.path("messages.txt"), "".join(f"{line}\n" for line in lines))
    except OSError:  # the disk is full; the messages have been printed
        pass
    kept = os.path.join(making.settings.output, files.name_of_folder(draft.folder), _STREAM)
    draft.leave()
    raise Failure(f"{problem}; the recording is kept in {kept}", OWN_FAILURE)


def make_recording(making: Making) -> recorder.Recording:
    """Records.  After the recording this command ignores Ctrl-C, so a second one also leaves a complete run."""
    draft = making.draft
    printed = 2
    if making.settings.work:
        # Output goes to a file, because processes that the program left may write long after the recorder has ended.
        draft.printed = files.create(draft.path(".output"))
        printed = draft.printed.fileno()
    with separate_output(making, printed) as program_output:
        try:
            recording = run_recorders(making, outputs.Output("", "pe", program_stdout=program_output))
        except Failure as failure:
            if str(failure):
                say(str(failure))
            recording = recorder.Recording(OWN_FAILURE if failure.status is None else failure.status, False, [])
    if draft.printed:
        draft.printed.seek(0)
        write_all(2, draft.printed.read())
    say_lines("".join(f"{line}\n" for line in draft.messages()))
    return recording


def run_recorders(making: Making, output: outputs.Output) -> recorder.Recording:
    """Records as `stackpipe record`, `waits` and `heap` do."""
    mode, draft, tools, target = making.mode, making.draft, making.tools, making.target
    stream = draft.path(_STREAM)
    if mode.recorder == "hotcold":
        recording, said = waits.record(waits.Request(target, output, str(mode.hz)), stream, tools)
        say_lines(said)
        return recording
    if mode.recorder == "malloctrace":
        return heap.trace(target, stream, output, tools)
    if mode.recorder == "offcpu":
        return recorder.run(tools, ["offcpu", *target.limit, "-o", stream], target, output)
    rate = ["-F", str(mode.hz)] if mode.hz else []
    return record.run(record.Request(target, output, rate, engine="auto"), stream, tools)


@contextlib.contextmanager
def separate_output(making: Making, descriptor: int) -> Iterator[int]:
    """While this lasts, our messages and those of recorders go to the draft, and what the program prints to the descriptor, of which
    this yields a copy.  So its output does not pass for messages, and we do not wait for processes that it leaves running.  The
    recorder itself gives it the descriptor, because a shell that did so would appear in the profile."""
    tools, users, before = making.tools, making.tools.users, os.dup(2)
    copy = os.dup(descriptor)
    os.set_inheritable(copy, True)
    tools.users = {**users, pipeline.PROGRAM_STDERR: str(copy)}
    os.dup2(making.draft.said.fileno(), 2)
    try:
        yield copy
    finally:
        os.dup2(before, 2)
        tools.users = users
        os.close(before)
        os.close(copy)


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


def derive(making: Making, recording: recorder.Recording) -> None:
    """Writes the streams with symbols, the folded text and the flame graphs; raises NotWritten."""
    mode, draft = making.mode, making.draft
    write_stage(making, "named.pe.gz", [["pe-symbolize", draft.path(_STREAM)], ["gzip", "-1"]])
    fold(making, "stacks.folded", ["--mark-waits"] if mode.recorder == "hotcold" else [])
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
    write_stage(making, f"{picture}.svg", [["flamesvg", *modes.look_options(making.mode.name), "--title", printable(making.target.title),
                                            "--subtitle", subtitle, making.draft.path(f"{folded}.folded")]])


def write_stage(making: Making, name: str, stages: Sequence[Sequence[str]], stderr: BinaryIO | int | None = None) -> None:
    """Writes a file of the draft by a pipeline; raises NotWritten."""
    with files.create(making.draft.path(name)) as out:
        statuses = making.tools.pipe(stages, stdout=out, stderr=making.draft.said if stderr is None else stderr)
    if pipeline.outcome(stages, statuses) == 1:
        raise NotWritten


def read_meta(making: Making, recording: recorder.Recording, work: int | float | None) -> dict:
    """Returns the content of meta.json."""
    mode, target, draft, summaries = making.mode, making.target, making.draft, recording.summaries
    names = [match for line in draft.messages()
             if (match := re.fullmatch(r"pe-symbolize: (?:.*; )?(?:([0-9]+) of )?([0-9]+) frames without a name.*", line))]
    return {
        "format": FORMAT,
        "date": draft.stamp,
        "mode": mode.name,
        "workload": without_invalid(target.title),
        "arguments": [without_invalid(word) for word in target.command],
        "pid": int(making.settings.pid) if making.settings.pid else None,
        "exit_status": recording.status,
        "interrupted": recording.is_interrupted,
        "rate_hz": mode.hz,
        "event": _EVENTS.get(mode.recorder) or summaries[0].texts.get("event", ""),
        "seconds_asked": short(float(mode.seconds)),
        "seconds": short(summaries[0].figures.get("seconds", 0)),
        "unit": unit_of(mode.name),
        "samples": sum(summary.count for summary in summaries),
        "lost": sum(summary.figures.get("lost", 0) for summary in summaries),
        "work": work,
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
    run, status = capture(settings, workload, tools)
    try:
        print_out(f"{run.folder}\n", OWN_FAILURE)
    finally:
        say(f"{count_of(int(run.number('samples') or 0), 'sample')}, {run.figure('lost')} lost; report: {run.path('report.txt')}")
        if workload and status:
            say(f"{workload[0]}: exit status {status}")
    return status if workload else 0
