"""Runs tools directly, never through a shell.

A pipeline fails if any of its stages fails (bash's pipefail), so a partial result never passes for a complete one.
"""
import contextlib
import os
import select
import shlex
import shutil
import signal
import subprocess
from typing import IO, Any, Iterator, Mapping, Sequence

from stackpipe.messages import Failure, say

Target = int | IO[bytes] | None

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: The variable that names the descriptor that a recorder makes its command's standard error.
PROGRAM_STDERR = "STACKPIPE_STDERR"
_AT_START = {number: signal.getsignal(number) for number in STOP_SIGNALS}
_DRAWERS = ("flamesvg", "flamediff", "stacktop")
_READERS = ("pe-symbolize", "stackfold")
_READ_A_PART = 1  # their exit status for damaged input, of which they have written what they could read
_NOTHING_TO_DRAW = 2  # their exit status for input without stacks


class Tools:
    """Finds tools, and holds the environments of the tools and of the user's programs."""

    def __init__(self, here: str, environment: Mapping[str, str] | None = None):
        """`here` is the folder of the command: tools beside it have its version.  If there are none, those in PATH are
        used, or else those in the build folder of a checkout."""
        self.users = dict(os.environ if environment is None else environment)
        self.here = here
        self.shows_stages = False  #: show() prints
        self.hears_keys = True  #: Ctrl-C reaches the tools that are started
        self.written: list[str] = []  #: the outputs so far
        self.is_short = False  #: notes and outputs are kept, for short.lines()
        self.notes: list[str] = []
        self.told: list[str] = []  #: the outputs, with what they are
        self.options: Sequence[str] = ()  #: those of the command that the user has typed; advice of recorders names no others
        path = self.users.get("PATH", os.defpath)
        build = os.path.join(here, "../build/tools")
        if os.access(os.path.join(here, "stackfold"), os.X_OK):
            path = f"{here}:{path}"
        elif not shutil.which("stackfold", path=path) and os.access(os.path.join(build, "stackfold"), os.X_OK):
            path = f"{build}:{path}"
        # The C locale fixes messages, decimal points and the order of names.
        self.environment = {**self.users, "PATH": path, "LC_ALL": "C"}

    def which(self, name: str) -> str:
        """Returns the path of a program; empty if it is not installed."""
        return shutil.which(name, path=self.environment["PATH"]) or ""

    def find(self, name: str) -> str:
        """Returns the path of a program; raises Failure."""
        path = self.which(name)
        if not path:
            raise Failure(f"{name} is not installed", 125)
        return path

    def show(self, stages: Sequence[Sequence[str]], path: str = "") -> None:
        """With shows_stages, prints a pipeline as a shell would run it, with the file of its output."""
        if self.shows_stages:
            say(" | ".join(shlex.join(stage) for stage in stages) + (path and f" > {shlex.quote(path)}"))

    def start(self, command: Sequence[str], *, as_user: bool = False, variables: Mapping[str, str] | None = None,
              **more) -> subprocess.Popen:
        """Starts a tool.  `as_user` keeps the user's locale, path and open descriptors, for a tool that runs the user's
        program.  `variables` are added to its environment."""
        path = command[0] if "/" in command[0] else self.find(command[0])
        # A new process is in our process group, which gets Ctrl-C, until it has one of its own.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [] if self.hears_keys else [signal.SIGINT])
        try:
            environment = {**(self.users if as_user else self.environment), **(variables or {})}
            return subprocess.Popen(command, executable=path, env=environment, close_fds=not as_user,
                                    process_group=None if self.hears_keys else 0, **more)
        except OSError as error:
            raise Failure(f"{command[0]}: {error.strerror}", 125) from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def start_all(self, stages: Sequence[Sequence[str]], *, stdin: Target = None, stdout: Target = None,
                  stderr: Target = None) -> list[subprocess.Popen]:
        """Starts a pipeline; each stage reads the output of the one before it."""
        running: list[subprocess.Popen] = []
        try:
            for stage in stages:
                is_last = len(running) == len(stages) - 1
                running.append(self.start(stage, stdin=running[-1].stdout if running else stdin,
                                          stdout=stdout if is_last else subprocess.PIPE, stderr=stderr))
                if len(running) > 1:
                    running[-2].stdout.close()  # so that the stage gets SIGPIPE if its reader exits
        except Failure:
            for process in running:
                process.kill()
                process.stdout.close()
                process.wait()
            raise
        return running

    def pipe(self, stages: Sequence[Sequence[str]], *, stdin: Target = None, stdout: Target = None,
             stderr: Target = None) -> list[int]:
        """Runs a pipeline, and returns the status of each stage as a shell does."""
        return wait_for_all(self.start_all(stages, stdin=stdin, stdout=stdout, stderr=stderr))

    def read(self, stages: Sequence[Sequence[str]], *, stdin: Target = None, stderr: Target = None) -> tuple[list[int], bytes]:
        """Like pipe(), but also returns the output of the last stage."""
        running = self.start_all(stages, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr)
        try:
            with running[-1].stdout as file:
                printed = file.read()
        finally:
            statuses = wait_for_all(running)
        return statuses, printed


#: The longest wait at once, in seconds.  Python runs the handler of a signal that comes just before a wait only after it.
_WAIT = 0.5


def wait_for(process: subprocess.Popen) -> int:
    """Waits for a process, and returns its status as a shell does: 128 plus the signal if one ended it."""
    if process.poll() is None:
        end = os.pidfd_open(process.pid)
        try:
            while not select.select([end], [], [], _WAIT)[0]:
                pass
        finally:
            os.close(end)
    status = process.wait()
    return 128 - status if status < 0 else status


def result_of(future: Any) -> Any:
    """Waits for the result of a Future, and returns it or raises what was raised instead."""
    import concurrent.futures  # loads logging, which few commands need
    while not concurrent.futures.wait([future], _WAIT).done:
        pass
    return future.result()


def wait_for_all(running: Sequence[subprocess.Popen]) -> list[int]:
    """Waits for the stages of a pipeline, and returns their statuses.  Kills them if a signal ends this command."""
    try:
        return [wait_for(process) for process in running]
    except BaseException:
        for process in running:
            process.kill()
            process.wait()
        raise


@contextlib.contextmanager
def program_stderr(variables: Mapping[str, str]) -> Iterator[int | None]:
    """Yields the descriptor that the variables name as the program's standard error, if they do.  A program that starts
    in the block inherits it only as that."""
    number = int(variables.get(PROGRAM_STDERR) or -1)
    if number < 0:
        yield None
        return
    os.set_inheritable(number, False)
    try:
        yield number
    finally:
        os.set_inheritable(number, True)


@contextlib.contextmanager
def separate_messages(tools: Tools) -> Iterator[None]:
    """In the block, a recorder's standard error is its own: its command gets ours."""
    users = tools.users
    copy = -1
    if PROGRAM_STDERR not in users:
        copy = os.dup(2)
        os.set_inheritable(copy, True)
        tools.users = {**users, PROGRAM_STDERR: str(copy)}
    try:
        yield
    finally:
        tools.users = users
        if copy >= 0:
            os.close(copy)


def outcome(stages: Sequence[Sequence[str]], statuses: Sequence[int], takes_part: bool = False) -> int:
    """Returns the result of a pipeline: 0, 2 if its last stage had nothing to draw, and otherwise 1.  `takes_part`: a part of
    damaged input suffices."""
    if takes_part:
        statuses = [0 if stage[0] in _READERS and status == _READ_A_PART else status for stage, status in zip(stages, statuses)]
    if any(statuses[:-1]) or (statuses[-1] and (statuses[-1] != _NOTHING_TO_DRAW or stages[-1][0] not in _DRAWERS)):
        return 1
    return statuses[-1]


def _has_stacks(file: IO[bytes]) -> bool:
    """Does an output have more than the facts of folded text?"""
    with open(f"/proc/self/fd/{file.fileno()}", "rb") as again:
        return any(not line.startswith(b"#") for line in again)


def draw(tools: Tools, path: str, stages: Sequence[Sequence[str]], stderr: Target = None, takes_part: bool = False) -> int:
    """Writes a file by a pipeline, and returns its outcome().  The file is replaced only if that is 0."""
    from stackpipe.files import Draft

    tools.show(stages, path)
    with Draft(path) as draft:
        result = outcome(stages, tools.pipe(stages, stdout=draft.file, stderr=stderr), takes_part)
        if takes_part and result == 0 and not _has_stacks(draft.file):
            result = _NOTHING_TO_DRAW
        try:
            if result == 0:
                draft.keep()
        except BrokenPipeError:
            raise Failure("", 141) from None
        except OSError as error:
            say(f"{path}: {error.strerror}")
            result = 1
    return result


def on_stop(handle) -> None:
    """Calls handle(number, frame) at SIGINT, SIGTERM and SIGHUP.  Signals that the parent process has set to be ignored,
    as nohup does, stay ignored, except SIGINT: a script's background jobs ignore it, but a user who sends it by kill(1) wants
    them to end."""
    for number, before in _AT_START.items():
        signal.signal(number, signal.SIG_IGN if before is signal.SIG_IGN and number != signal.SIGINT else handle)


class Stopped(BaseException):
    """A signal ended this command."""

    def __init__(self, number: int):
        super().__init__()
        self.number = number


def stop_listening(tools: Tools) -> None:
    """The recording is over.  One more Ctrl-C is ignored, because its result is drawn anyway.  The next one, SIGTERM and SIGHUP
    raise Stopped."""
    ignored: list[int] = []

    def stop(number: int, frame: object) -> None:
        if number != signal.SIGINT or ignored:
            raise Stopped(number)
        ignored.append(number)

    on_stop(stop)
    tools.hears_keys = False


def listen_again(tools: Tools) -> None:
    """From now on Ctrl-C acts as it did at the start."""
    for number, before in _AT_START.items():
        signal.signal(number, before)
    tools.hears_keys = True
