"""Runs recorders, and reads the summaries that they write for programs."""
import functools
import os
import signal
import subprocess
import time
from typing import Mapping, NamedTuple, Sequence

from stackpipe import files, outputs, pipeline, targets
from stackpipe.messages import Failure, program_name, say, say_lines, text_of, write_all

_PIPE_BYTES = 65536


class Summary(NamedTuple):
    """What a recorder reports at its end: pe-record(1), SUMMARY FOR PROGRAMS."""

    texts: Mapping[str, str] = {}  #: empty: the recorder was killed
    figures: Mapping[str, float] = {}
    flags: Mapping[str, bool] = {}

    @property
    def count(self) -> int:
        """The number of samples, waits or allocations."""
        return int(sum(self.figures.get(name, 0) for name in ("samples", "waits", "allocations")))

    @property
    def is_whole(self) -> bool:
        """Did the recorder end in good order?  There may have been nothing to record."""
        return self.texts.get("result") in ("recorded", "empty", "incomplete")

    @property
    def is_denied(self) -> bool:
        """Did the user lack a privilege for the recording?"""
        return self.texts.get("result") == "denied"

    @property
    def lacks_counters(self) -> bool:
        """Did the kernel give this user no counters, or no stacks of waits, whatever the target?  Nothing was recorded then."""
        return not self.is_whole and self.texts.get("lacks") == "counters"

    @property
    def failure(self) -> str:
        """The line that tells why nothing could be recorded, or its start; empty if something could."""
        return "" if self.is_whole or "text" not in self.texts else self.texts["text"] + "\n"

    @property
    def is_empty(self) -> bool:
        """Is it known that nothing was recorded?"""
        return self.is_whole and self.count == 0

    def without_text(self, lines: Sequence[str]) -> list[str]:
        """Returns the lines of the recorder's messages without the closing line, or the reason why there is none."""
        text = self.texts.get("text")  # of a long line, the start
        return [line for line in lines if not (text and line.startswith(text))]


def read_summary(data: bytes) -> Summary:
    """Reads what was written to a recorder's pipe.  Any process of the same user could write there."""
    import json  # the recorder starts before
    try:
        members = json.loads(data.splitlines()[-1]).items()
    except (AttributeError, IndexError, RecursionError, ValueError):
        return Summary()
    return Summary({name: value for name, value in members if isinstance(value, str)},
                   {name: value for name, value in members if isinstance(value, (int, float)) and 0 <= value < 1e18},
                   {name: value for name, value in members if isinstance(value, bool)})


class Recorder:
    """A recorder that was started."""

    def __init__(self, process: subprocess.Popen, pipe: int):
        self.process = process
        self._pipe = pipe

    @functools.cached_property
    def summary(self) -> Summary:
        """Its summary, once it has ended.  This does not wait: a helper that the recorder could not end may hold the pipe."""
        os.set_blocking(self._pipe, False)
        with open(self._pipe, "rb", buffering=0) as pipe:
            return read_summary(pipe.read(_PIPE_BYTES) or b"")


class Recording(NamedTuple):
    """A recording that has ended."""

    status: int  #: of the command, or of the recorder if it failed or there was no command
    is_interrupted: bool
    summaries: list[Summary]  #: of each recorder
    is_over_time: bool = False  #: the command was interrupted for that


def run_short(tools: pipeline.Tools, words: Sequence[str], target: targets.Target, output: outputs.Output, **more) -> Recording:
    """As run().  If messages are kept (short.lines()), prints only the closing line of a recording, and keeps the others.  Those of a
    failure are printed."""
    if not tools.is_short:
        return run(tools, words, target, output, **more)
    with files.scratch() as said, pipeline.separate_messages(tools):
        recording = run(tools, words, target, output, stderr=said, **more)
        said.seek(0)
        text = text_of(said.read())
    tell(tools, recording, text or recording.summaries[0].failure)  # a full disk has no room for what is said
    return recording


def tell(tools: pipeline.Tools, recording: Recording, text: str) -> None:
    """Prints the messages of a recorder; if they are kept, only the closing line of a recording."""
    lines = text.splitlines(keepends=True)
    notes = recording.summaries[0].without_text(lines)
    if not tools.is_short or not recording.summaries[0].is_whole or len(notes) == len(lines):
        say_lines(text)
    else:
        say_lines("".join(line for line in lines if line not in notes))
        tools.notes += notes


def start(tools: pipeline.Tools, command: Sequence[str], *, as_user: bool = False, descriptors: Sequence[int] = (), **more) -> Recorder:
    """Starts a recorder.  It ends with us if we are killed, and gives neither the variable nor the pipe to its command.  It also gets
    these descriptors."""
    reading, writing = os.pipe()
    try:
        os.set_inheritable(writing, True)  # for as_user, which leaves descriptors open
        words = ["setpriv", "--pdeathsig", "TERM", "--", tools.find(command[0]), "--summary", str(writing), *command[1:]]
        return Recorder(tools.start(words, as_user=as_user, variables={"STACKPIPE_OPTIONS": " ".join(tools.options)},
                                    pass_fds=() if as_user else (writing, *descriptors), **more), reading)
    except Failure:
        os.close(reading)
        raise
    finally:
        os.close(writing)


def go_on(recorders: Sequence[Recorder]) -> list[int]:
    """From now on Ctrl-C, SIGTERM and SIGHUP end the recorders, not this command.  Returns a list of the signals that arrived,
    which grows.  Recorders that are in the terminal's process group get Ctrl-C twice, which they do not mind."""
    arrived: list[int] = []

    def forward(number: int, frame: object) -> None:
        arrived.append(number)
        for each in recorders:
            each.process.send_signal(number)

    pipeline.on_stop(forward)
    return arrived


def announce(target: targets.Target, output: outputs.Output) -> None:
    """Prints how to end a recording that does not end by itself."""
    if not target.command and not target.limit and not output.is_quiet:
        say(f"recording {target.title} until Ctrl-C (or give -d SECONDS)")


def wait_visibly(process: subprocess.Popen, is_shown: bool) -> int:
    """Waits for a recorder whose messages are kept, and returns its status.  `is_shown`: shows the time on the terminal."""
    started, shown = time.monotonic(), False
    while is_shown:
        try:
            process.wait(1)
            break
        except subprocess.TimeoutExpired:
            write_all(2, f"\r\033[K{program_name()}: {time.monotonic() - started:.0f} s".encode())
            shown = True
    if shown:
        write_all(2, b"\r\033[K")
    return pipeline.wait_for(process)


def run(tools: pipeline.Tools, words: Sequence[str], target: targets.Target, output: outputs.Output, is_timed: bool = True,
        **more) -> Recording:
    """Runs a recorder until the target ends, the time is over, or Ctrl-C is typed.  One that is not `is_timed` knows no time limit,
    and gets SIGINT then."""
    recorders: list[Recorder] = []
    arrived = go_on(recorders)
    command = [*words, *target.options, *(["--", *target.command] if target.command else [])]
    tools.show([command])
    recorders.append(recorder := start(tools, command, as_user=True, stdout=output.program_stdout, **more))
    for number in arrived:  # before the recorder was in the list
        recorder.process.send_signal(number)
    is_over = False
    if target.limit and not is_timed:
        try:
            recorder.process.wait(float(target.limit[1]))
        except subprocess.TimeoutExpired:
            is_over = True
            recorder.process.send_signal(signal.SIGINT)
    status = wait_visibly(recorder.process, not target.command and tools.is_short and os.isatty(2))
    pipeline.stop_listening(tools)
    if recorder.process.returncode == -signal.SIGKILL:
        say(f"{words[0]} was killed (SIGKILL), perhaps by the kernel for lack of memory: the recording is cut off")
    if is_over and not output.is_quiet:
        say(f"stopped the command after {target.limit[1]} s (-d)")
    return Recording(status, bool(arrived), [recorder.summary], is_over)
