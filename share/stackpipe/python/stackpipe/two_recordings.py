"""Waits where the engine bpf cannot record: two recordings of a target by the kernel's counters, or one of all its time.

pe-record samples where the target runs, and offcpu records where it waits.  Users to whom the kernel gives no stacks of waits get
one recording, which does not tell running from waiting.
"""
import errno
import os
import shutil
import signal
import subprocess
import time
from typing import BinaryIO, Mapping, NamedTuple, Sequence

from stackpipe import files, outputs, pipeline, record as cpu_time, recorder, targets
from stackpipe.messages import Failure, printable, say, say_lines, text_of, write_all
from stackpipe.recorder import Recorder, Recording

OWN_FAILURE = 125
COMMAND_HZ, RUNNING_HZ = "997", "99"  # as pe-record's; a held command is a running process to the recorders
_STREAMS = ("on.pe", "off.pe")
_LOOK_S = 0.02
_TRIAL_S = "0.01"
_USAGE = 2  # the status of a tool for a wrong command line
_GRACE_S = 1.0


class Request(NamedTuple):
    """The target to record, and the options."""

    target: targets.Target
    output: outputs.Output
    hz: str
    keep: str  #: the folder to keep files in; empty: keep none
    is_verbose: bool = False
    root: Sequence[str] = ()  #: options of stackfold


class HeldCommand:
    """A command that is held before it starts, so that both recorders see all of it.  A shell waits on a pipe, and then
    executes the command.  If we are killed, the pipe closes and the shell exits."""

    def __init__(self, command: Sequence[str], tools: pipeline.Tools, stdout: int | None = None):
        """Raises Failure if the command cannot be executed."""
        if not shutil.which(command[0], path=tools.users.get("PATH", os.defpath)):
            is_there = "/" in command[0] and os.path.exists(command[0])
            raise Failure(f"{command[0]}: {os.strerror(errno.EACCES if is_there else errno.ENOENT)}", 126 if is_there else 127)
        reading, self._gate = os.pipe()
        with pipeline.shell_descriptor(reading) as number:
            words = pipeline.in_shell(f'read -r _ <&{number} || exit {OWN_FAILURE}; unset {pipeline.PROGRAM_STDERR}; exec "$@" {number}<&-',
                                      command, tools.users)
            with pipeline.program_stderr(tools.users) as stderr:
                self._process = tools.start(words, as_user=True, stdout=stdout, stderr=stderr)
        os.close(reading)
        self.pid = self._process.pid

    def go(self) -> None:
        """Starts the command."""
        try:
            write_all(self._gate, b"\n")
        except BrokenPipeError:
            pass  # a signal has ended the shell; end() returns its status
        self._close_gate()

    def _close_gate(self) -> None:
        if self._gate >= 0:
            os.close(self._gate)
            self._gate = -1

    def end(self, limit: Sequence[str], is_stopped: bool) -> int:
        """Waits for the command, and returns its status as a shell does.  If the time is over, sends it SIGTERM, like pe-record,
        and returns 0.  If the recording was stopped by a signal, the command has a second to end by itself."""
        self._close_gate()
        try:
            self._process.wait((_GRACE_S if is_stopped else 0) if limit or is_stopped else None)
            return pipeline.wait_for(self._process)
        except subprocess.TimeoutExpired:
            self._process.terminate()
        pipeline.wait_for(self._process)
        if limit and limit[0] and not is_stopped:
            say(f"stopped the command after {limit[1]} s (-d)")
        return 0

    def ended_by(self) -> int:
        """Returns the signal that ended the command; 0 if none did."""
        return max(0, -(self._process.returncode or 0))


def draw(request: Request, work: str, tools: pipeline.Tools, why: str) -> int:
    """Records the target into the folder `work`, and writes the output.  `why` is the reason for which the engine bpf cannot.  Returns
    the status of the command, or our own."""
    if has_stacks(tools):
        ran = record(request, work, tools)
    elif request.keep or request.target.options[:1] == ["-a"]:  # two streams are wanted; no other engine records the whole system
        raise Failure(f"not recorded: {why}")
    else:
        ran = record_all_time(request, work, tools, why)
    if not request.keep:
        with outputs.keeping(work, _STREAMS):
            return write(request, work, ran, work, tools)
    for stream in _STREAMS:
        os.rename(os.path.join(work, stream), os.path.join(request.keep, stream))
    return write(request, request.keep, ran, work, tools)


def has_stacks(tools: pipeline.Tools) -> bool:
    """Does the kernel give this user stacks of waits?  Records this process, for a moment."""
    trial = recorder.start(tools, ["offcpu", "--engine", "perf", "-q", "-d", _TRIAL_S, "-p", str(os.getpid()), "-o", os.devnull],
                           stderr=subprocess.DEVNULL)
    pipeline.wait_for(trial.process)
    return trial.summary.is_whole and trial.summary.texts.get("stacks") != "none"


def write(request: Request, streams: str, ran: Recording, work: str, tools: pipeline.Tools) -> int:
    """Writes the output from the recordings in the folder `streams`.  Returns the status of the command, or our own."""
    output = request.output
    folded = os.path.join(work, "stacks.folded")
    with files.scratch() as said:
        sources = {stream: ["pe-symbolize", os.path.join(streams, stream)] for stream, summary in zip(_STREAMS, ran.summaries) if not summary.is_empty}
        is_folded = fold(sources, folded, tools, said, request.root) == 0
        outputs.forward(said, not (output.is_quiet and is_folded))
    if not is_folded:
        raise Failure(f"{output.path}: not written")
    is_split = len(ran.summaries) > 1
    look = ["--colors", "hotcold" if is_split else "kind", "--countname", "us", "--title", printable(request.target.title), "--subtitle",
            f"time on CPU {'and' if is_split else 'or'} waiting, summed over threads", folded]
    # The text is folded already.
    stages = [["flamesvg", *look]] if output.form == "svg" else [["cat", folded]] if output.form == "folded" else [output.fold(folded)]
    is_written = (output.form != "folded" or bool(sources)) and outputs.write(tools, output, stages)  # text is not made of nothing
    if not is_written:
        say(f"{output.path}: not written: nothing was recorded")
    if request.keep and is_written:
        os.rename(folded, os.path.join(request.keep, "stacks.folded"))
    return ran.status if is_written else ran.status or OWN_FAILURE


def record_all_time(request: Request, work: str, tools: pipeline.Tools, why: str) -> Recording:
    """Records running and waiting together, by wall clock, for users without privileges.  Raises Failure."""
    if not request.output.is_quiet:
        say(f"sampling all time by pe-record --engine ptrace --clock wall, so the graph does not tell running from waiting: {why}")
    stream = os.path.join(work, "on.pe")
    hz = RUNNING_HZ if request.hz == COMMAND_HZ else request.hz  # a thread that sleeps has samples, too
    ran = cpu_time.run(cpu_time.Request(request.target, request.output, ["--clock", "wall", "-F", hz], engine="ptrace", is_verbose=request.is_verbose),
                       stream, tools)
    if not has_begun(work, "on") or ran.status and not request.target.command:
        raise Failure(f"not recorded{files.why_not_written(work)}", ran.status if ran.status == _USAGE else None)
    return ran


def record(request: Request, work: str, tools: pipeline.Tools) -> Recording:
    """Runs both recorders until the target ends, the time is over or Ctrl-C is typed.  Raises Failure if one of them fails."""
    target = request.target
    recorders: list[Recorder] = []
    arrived = recorder.go_on(recorders)
    held = HeldCommand(target.command, tools, request.output.program_stdout) if target.command else None
    try:
        options = [*target.limit, *(["-p", str(held.pid)] if held else target.options), *(["-v"] if request.is_verbose else [])]
        for words, stream in ((["pe-record", "--engine", "best", "-e", "cpu-clock", "-F", request.hz], "on"), (["offcpu"], "off")):
            command = [*words, *options, "-o", os.path.join(work, f"{stream}.pe")]
            tools.show([command])
            with files.create(os.path.join(work, f"{stream}.txt")) as said:
                recorders.append(recorder.start(tools, command, stderr=said))
        # Each recorder writes the head of its stream once it is recording.  If one fails, the other may have a better reason.
        while any(each.process.poll() is None and not has_begun(work, stream) for stream, each in zip(("on", "off"), recorders)):
            time.sleep(_LOOK_S)
        if held and arrived:
            raise Failure("stopped before the command started", 128 + arrived[0])
        if held and all(each.process.poll() is None for each in recorders):
            held.go()
        wait_for_recorders(recorders, request, work)
        pipeline.stop_listening(tools)
        status = held.end(target.limit, bool(arrived)) if held else 0
        if held and held.ended_by() and status and not arrived and not request.output.is_quiet:
            say(signal_text(target.command[0], held.ended_by()))
        return Recording(status, bool(arrived), [each.summary for each in recorders])
    finally:
        for each in recorders:
            if each.process.poll() is None:
                each.process.terminate()
                each.process.wait()
        if held:
            held.end(["", "0"], False)


def signal_text(command: str, number: int) -> str:
    """Describes the end of a command by a signal as the recorders do."""
    try:
        name = f" ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal
        name = ""
    return f"'{command}' killed by signal {number}{name}"


def wait_for_recorders(recorders: Sequence[Recorder], request: Request, work: str) -> None:
    """Waits for both recorders, and prints their messages.  If one fails, ends the other, and raises Failure."""
    running = list(recorders)
    while running:
        time.sleep(_LOOK_S)
        for each in [each for each in running if each.process.poll() is not None]:
            running.remove(each)
            if not each.summary.is_whole:
                for other in running:
                    other.process.terminate()
    failed = [each for each in recorders if not each.summary.is_whole]
    # It is no news that a target only runs or only waits.
    hides_nothing = failed or request.is_verbose or all(each.summary.is_empty for each in recorders)
    if failed or not request.output.is_quiet:
        lines: list[str] = []
        for stream, each in zip(("on", "off"), recorders):
            said = messages_of(work, stream).splitlines(keepends=True) if each in failed or not failed else []
            lines += each.summary.without_text(said) if each.summary.is_empty and not hides_nothing else said
        say_lines(outputs.once(lines))
    if failed:
        is_usage = any(each.process.returncode == _USAGE for each in failed)
        raise Failure(f"not recorded{files.why_not_written(work)}", _USAGE if is_usage else None)


def has_begun(work: str, stream: str) -> bool:
    """Has the recorder written anything to the stream?"""
    try:
        return os.path.getsize(os.path.join(work, f"{stream}.pe")) > 0
    except OSError:
        return False


def messages_of(work: str, stream: str) -> str:
    """Returns what the recorder of a stream has printed so far."""
    with open(os.path.join(work, f"{stream}.txt"), "rb") as file:
        return text_of(file.read())


def fold(sources: Mapping[str, Sequence[str]], folded: str, tools: pipeline.Tools, said: BinaryIO, root: Sequence[str] = ()) -> int:
    """Folds the streams into one file, in microseconds, with the root frames of these options.  `sources` are the commands that
    print them with symbols.  Messages go to the file `said`.  Returns 0 if all was written."""
    failed = 0
    with files.create(folded) as out:
        out.write(b"# unit: us\n")
        # Frames of waits are marked, except roots: running and waiting are drawn side by side under the same thread.
        for stream, how, convert in (("on.pe", ["--weight", "period"], in_microseconds), ("off.pe", ["--mark-waits"], unchanged)):
            if stream not in sources:
                continue
            stages = [sources[stream], ["stackfold", *how, *root, "-"]]
            tools.show(stages)
            running = tools.start_all(stages, stdout=subprocess.PIPE, stderr=said)
            try:
                with running[-1].stdout as lines:
                    for line in lines:
                        if line.endswith(b"\n"):  # stackfold was killed in the middle of the last line: its status says so
                            out.write(convert(*line[:-1].rsplit(b" ", 1)))
            finally:
                failed |= any([pipeline.wait_for(process) for process in running])
    return failed


def in_microseconds(stack: bytes, count: bytes) -> bytes:
    """Converts a line of folded text from nanoseconds to microseconds."""
    return b"%s %.0f\n" % (stack, float(count) / 1000)


def unchanged(stack: bytes, count: bytes) -> bytes:
    """Returns a line of folded text."""
    return b"%s %s\n" % (stack, count)
