"""hotcold(1): shows where a program runs and waits in one flame graph, from pe-record and offcpu on the same target."""
import os
import re
import signal
import subprocess
import time
from typing import NamedTuple, Sequence

from stackpipe import files, pipeline
from stackpipe.command import read_options
from stackpipe.messages import Failure, UsageError, printable, say, write_all
from stackpipe.options import HELP, VERSION, CommandLine, Option

NAME = "hotcold"
OWN_FAILURE = 125
USAGE = """Usage: hotcold [OPTION]... OUT.svg {-p PID | -- COMMAND [ARGUMENT]...}
Draw where a program runs, warm, and where it waits, cold; widths are time.
"""
OPTIONS = (
    Option("pid", "p", "PID", "record this process; otherwise the command behind --"),
    Option("duration", "d", "S", "end after S seconds"),
    Option("freq", "F", "HZ", "samples a second and CPU (default 99)"),
    Option("keep", "", "DIR", "keep streams and folded stacks in the folder DIR"),
    HELP,
    VERSION,
)
# A recorder that succeeded prints a closing line.
_CLOSING_LINE = re.compile(rb"^[a-z-]+: (?:[0-9]+ (?:samples?|waits?)(?: in |: )|nothing was recorded: )", re.MULTILINE)
_LOOK_S = 0.02


class Request(NamedTuple):
    """The target to record, and the options."""

    out: str
    pid: str  #: empty: hotcold runs `command`
    command: list[str]
    limit: list[str]  #: options for both recorders
    hz: str
    keep: str  #: the folder to keep files in; empty: keep none


class Folders(NamedTuple):
    """Folders of the files in progress."""

    temporary: str
    work: str  #: holds the streams; they are large, so they are written where they stay


def main(arguments: Sequence[str], tools: pipeline.Tools) -> int:
    """Returns the status of the recorded command, or our own."""
    request = read_request(read_options(NAME, USAGE, OPTIONS, arguments, tools))
    temporary, work = "", ""
    try:
        for tool in ("pe-record", "offcpu", "pe-symbolize", "stackfold", "flamesvg"):
            tools.find(tool)
        files.check_writable(request.out)
        temporary = files.temporary_folder()
        work = files.temporary_folder(request.keep, ".hotcold-") if request.keep else temporary
        return record_and_draw(request, Folders(temporary, work), tools)
    except Failure as failure:
        raise Failure(str(failure), OWN_FAILURE) from None
    finally:
        for folder in {temporary, work} - {""}:
            files.remove_folder(folder)


def read_request(line: CommandLine) -> Request:
    """Returns the request that the command line makes; raises UsageError."""
    if not line.operands:
        raise UsageError("the name of the picture is missing")
    if len(line.operands) > 1:
        raise UsageError("the command goes behind --")
    pid, command, keep = line.last("pid"), line.command or [], line.last("keep")
    if not pid and not command:
        raise UsageError("a process or a command is missing")
    if pid and command:
        raise UsageError("-p, --: only one of them")
    duration = line.last("duration")
    if line.has("duration") and not (re.fullmatch(r"[0-9]*\.?[0-9]+", duration) and re.search("[1-9]", duration)):
        raise UsageError(f"--duration: not a number of seconds above 0: '{duration}'")
    if keep and not os.path.isdir(keep):
        raise UsageError(f"--keep: no folder '{keep}'")
    return Request(line.operands[0], pid, command, ["-d", duration] if duration else [], line.last("freq", "99"),
                   os.path.join(".", keep) if keep else "")


class HeldCommand:
    """A command that is held before it starts, so that both recorders see all of it.  It waits on a pipe.  If we are killed,
    the pipe closes and the command exits."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]):
        reading, self._gate = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._be(command, environment, reading)
        os.close(reading)

    def _be(self, command: Sequence[str], environment: dict[str, str], reading: int) -> None:
        status = 126
        try:
            os.close(self._gate)
            for number in (*pipeline.STOP_SIGNALS, signal.SIGPIPE, signal.SIGXFSZ):  # as Popen does
                if signal.getsignal(number) is not signal.SIG_IGN or number in (signal.SIGPIPE, signal.SIGXFSZ):
                    signal.signal(number, signal.SIG_DFL)
            if not os.read(reading, 1):
                os._exit(OWN_FAILURE)
            os.execvpe(command[0], command, environment)
        except OSError as error:
            say(NAME, f"{command[0]}: {error.strerror}")
            status = 127 if isinstance(error, FileNotFoundError) else status
        finally:
            os._exit(status)

    def go(self) -> None:
        """Starts the command."""
        write_all(self._gate, b"g")
        os.close(self._gate)

    def wait(self) -> int:
        """Waits for the command, and returns its status as a shell does."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return 128 - code if code < 0 else code


def record_and_draw(request: Request, folders: Folders, tools: pipeline.Tools) -> int:
    """Records the target and draws its flame graph."""
    ran = record(request, folders.work, tools)
    for stream in ("on", "off"):
        if not was_recorded(folders.work, stream):
            raise Failure(f"not recorded{files.why_not_written(folders.work)}")
    streams = folders.work
    if request.keep:
        streams = request.keep
        for stream in ("on.pe", "off.pe"):
            os.rename(os.path.join(folders.work, stream), os.path.join(streams, stream))
    folded = os.path.join(folders.work, "stacks.folded")
    title = f"process {request.pid}" if request.pid else " ".join(request.command)
    if fold(streams, folded, tools) != 0:
        raise Failure(f"{request.out}: not drawn")
    result = pipeline.draw(tools, request.out, [["flamesvg", "--colors", "hotcold", "--countname", "us", "--title",
                                                 printable(title), "--subtitle", "time on CPU and waiting", folded]])
    if request.keep and result == 0:
        os.rename(folded, os.path.join(request.keep, "stacks.folded"))
    return pipeline.report_picture(NAME, request.out, result, ran)


def record(request: Request, work: str, tools: pipeline.Tools) -> int:
    """Runs both recorders until the target ends, the time is over or Ctrl-C is typed.  Returns the command's status."""
    pipeline.go_on()
    held = None if request.pid else HeldCommand(request.command, tools.users)
    target = request.pid or str(held.pid)
    recorders = [start_recorder(tools, ["pe-record", "-e", "cpu-clock", "-F", request.hz], request, work, "on", target),
                 start_recorder(tools, ["offcpu"], request, work, "off", target)]
    if held:
        # Each recorder writes the head of its stream once it is recording.
        while not all(has_begun(work, stream) for stream in ("on", "off")):
            if any(recorder.poll() is not None for recorder in recorders):
                break
            time.sleep(_LOOK_S)
        held.go()
    for recorder in recorders:
        recorder.wait()
    pipeline.stop_listening()
    for stream in ("on", "off"):
        with open(os.path.join(work, f"{stream}.txt"), "rb") as file:
            write_all(2, file.read())
    return end_command(held, bool(request.limit)) if held else 0


def end_command(held: HeldCommand, has_limit: bool) -> int:
    """Like pe-record, sends the command SIGTERM when the time is over.  Ending by that signal is not a failure."""
    if has_limit:
        os.kill(held.pid, signal.SIGTERM)
    status = held.wait()
    return 0 if has_limit and status == 128 + signal.SIGTERM else status


def start_recorder(tools: pipeline.Tools, command: list[str], request: Request, work: str, stream: str,
                   target: str) -> subprocess.Popen:
    """Starts a recorder, which ends with us if we are killed."""
    stream_file = os.path.join(work, f"{stream}.pe")
    with files.create(os.path.join(work, f"{stream}.txt")) as said:
        return tools.start(["setpriv", "--pdeathsig", "TERM", "--", tools.find(command[0]), *command[1:], *request.limit,
                            "-o", stream_file, "-p", target], stderr=said)


def has_begun(work: str, stream: str) -> bool:
    """Has the recorder written anything to the stream?"""
    try:
        return os.path.getsize(os.path.join(work, f"{stream}.pe")) > 0
    except OSError:
        return False


def was_recorded(work: str, stream: str) -> bool:
    """Did the recorder finish its work?"""
    with open(os.path.join(work, f"{stream}.txt"), "rb") as file:
        return has_begun(work, stream) and _CLOSING_LINE.search(file.read()) is not None


def fold(streams: str, folded: str, tools: pipeline.Tools) -> int:
    """Folds both streams into one file, in microseconds.  Returns 0 if all of it was written."""
    failed = 0
    with files.create(folded) as out:
        for stream, weight, convert in (("on.pe", ["--weight", "period"], in_microseconds), ("off.pe", [], as_waiting)):
            running = tools.start_all([["pe-symbolize", os.path.join(streams, stream)], ["stackfold", *weight, "-"]],
                                      stdout=subprocess.PIPE)
            try:
                with running[-1].stdout as lines:
                    for line in lines:
                        out.write(convert(*line.rstrip(b"\n").rsplit(b" ", 1)))
            finally:
                failed |= any([pipeline.wait_for(process) for process in running])
    return failed


def in_microseconds(stack: bytes, count: bytes) -> bytes:
    """Converts a line of folded text from nanoseconds to microseconds."""
    return b"%s %.0f\n" % (stack, float(count) / 1000)


def as_waiting(stack: bytes, count: bytes) -> bytes:
    """Marks all frames of a line but the first, the thread's name.  So running and waiting are drawn side by side under
    the same thread."""
    root, *rest = stack.split(b";")
    marked = b";".join([root, *(frame + b"_[o]" for frame in rest)]) if rest else root + b"_[o]"
    return b"%s %s\n" % (marked, count)
