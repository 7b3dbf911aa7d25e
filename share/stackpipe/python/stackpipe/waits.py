"""stackpipe waits: draws where a target runs and where it waits in one flame graph, and prints what took the time."""
import os
from typing import NamedTuple, Sequence

from stackpipe import files, outputs, pipeline, record as cpu_time, recorder, short, targets, times
from stackpipe.command import read_options
from stackpipe.messages import Failure, UsageError, printable, say, text_of
from stackpipe.options import HELP, VERSION, CommandLine, Option

NAME = "stackpipe"
USAGE = """Usage: stackpipe waits [OPTION]... {[--] COMMAND [ARGUMENT]... | -p PID | -t TID | -a}
Draw where a program runs, in warm colours, and where it waits, in cold ones.  Widths are time, added up over threads.
Ctrl-C ends the recording; the graph is still drawn.
"""
KEEP = Option("keep", "", "DIR", "keep the stream and folded stacks in the folder DIR")
OPTIONS = (*targets.OPTIONS, KEEP, outputs.ROOT, outputs.JSON, outputs.TIME, *outputs.OPTIONS, HELP, VERSION)
STREAM = "waits.pe"
STEP = "100ms"  #: of the map of time above the graph
OWN_FAILURE = 125
COMMAND_HZ, RUNNING_HZ = "997", "99"  # as pe-record's
_USAGE = 2  # the status of a tool for a wrong command line


class Request(NamedTuple):
    """The target to record, and the options."""

    target: targets.Target
    output: outputs.Output
    hz: str
    keep: str = ""  #: the folder to keep files in; empty: keep none
    is_verbose: bool = False
    root: Sequence[str] = ()  #: options of stackfold for the root frames and the part that is drawn
    prints_json: bool = False


def main(arguments: Sequence[str], tools: pipeline.Tools) -> int:
    """Returns the status of the recorded command, or our own."""
    line = read_options(NAME, USAGE, OPTIONS, arguments, tools, runs_command=True)
    return draw(with_time(read_request(line, "stackpipe waits -p PID"), line, tools), tools)


def read_request(line: CommandLine, example: str, otherwise: str = "") -> Request:
    """Returns the request that the command line makes; `otherwise` is the form for unknown suffixes.  Raises UsageError."""
    target = targets.read_target(line, example)
    keep = line.last("keep")
    if line.has("keep") and not os.path.isdir(keep):
        raise UsageError(f"--keep: no folder '{keep}'")
    hz = line.last("freq", COMMAND_HZ if target.command else RUNNING_HZ)
    return Request(target, outputs.read_output(line, otherwise=otherwise), hz, keep, line.has("verbose"), outputs.root_of(line),
                   line.has("json"))


def with_time(request: Request, line: CommandLine, tools: pipeline.Tools) -> Request:
    """Returns the request with the part of the recording that the command line asks for.  Raises UsageError."""
    return request._replace(root=[*request.root, *outputs.time_of(line, tools)])


def draw(request: Request, tools: pipeline.Tools) -> int:
    """Records the target and writes the output.  Returns the status of the command, or our own."""
    tools.shows_stages = request.is_verbose
    work = ""
    try:
        for tool in ("pe-record", "pe-symbolize", "stackfold", "stacktop", "flamesvg"):
            tools.find(tool)
        if request.keep:  # the stream is large, so it is written where it stays
            request = request._replace(keep=files.open_folder(request.keep))
        work = files.temporary_folder(request.keep, ".hotcold-") if request.keep else files.temporary_folder()
        recorder.announce(request.target, request.output)
        with short.lines(tools, not request.is_verbose and not request.output.is_quiet):
            recording, said = record(request, os.path.join(work, STREAM), tools)
            if not has_no_waits(recording):
                recorder.tell(tools, recording, said or recording.summaries[0].failure)  # a full disk has no room for what is said
                return write(request, work, recording, tools)
        return draw_all_time(request, recording.summaries[0].texts.get("text", "").removeprefix("pe-record: "), tools)
    finally:
        if work:
            files.remove_folder(work)


def record(request: Request, stream: str, tools: pipeline.Tools) -> tuple[recorder.Recording, str]:
    """Records CPU time and waits into one stream.  Returns also the messages of the recorder."""
    words = ["pe-record", "--engine", "best", "-e", "cpu,waits", "-F", request.hz, *request.target.limit,
             *(["-q"] if request.output.is_quiet else ["-v"] if request.is_verbose else []), "-o", stream]
    with files.scratch() as said, pipeline.separate_messages(tools):
        recording = recorder.run(tools, words, request.target, request.output, stderr=said)
        said.seek(0)
        return recording, text_of(said.read())


def has_no_waits(recording: recorder.Recording) -> bool:
    """Does the kernel give this user no stacks of waits?  The command has not started then."""
    return recording.summaries[0].lacks_counters and not recording.is_interrupted


def draw_all_time(request: Request, why: str, tools: pipeline.Tools) -> int:
    """Records running and waiting together, by wall clock, for users without privileges, and writes the output.  Returns the status of
    the command, or our own.  Raises Failure."""
    if request.keep or request.prints_json or request.target.options[:1] == ["-a"]:  # waits are wanted; no other engine records the whole system
        raise Failure(f"not recorded: {why}")
    if not request.output.is_quiet:
        say(f"sampling all time by pe-record --engine ptrace --clock wall, so the graph does not tell running from waiting: {why}")
    hz = RUNNING_HZ if request.hz == COMMAND_HZ else request.hz  # a thread that sleeps has samples, too
    return cpu_time.record(cpu_time.Request(request.target, request.output, ["--clock", "wall", "-F", hz], engine="ptrace",
                                            is_verbose=request.is_verbose, root=request.root), tools)


def write(request: Request, work: str, recording: recorder.Recording, tools: pipeline.Tools) -> int:
    """Writes the output from the stream in the folder `work`.  Returns the status of the command, or our own."""
    stream, output, status = os.path.join(work, STREAM), request.output, recording.status
    if status and not request.target.command and status != _USAGE:
        status = OWN_FAILURE  # the recorder failed: no program has a status
    if not os.path.exists(stream) or os.path.getsize(stream) == 0:
        return status or OWN_FAILURE
    with outputs.keeping(work, [STREAM]):
        if recording.summaries[0].is_empty or not write_stacks(request, work, tools):
            say(f"{output.path}: not written: nothing was recorded")
            return status or OWN_FAILURE
    if request.keep:
        for name in (STREAM, "stacks.folded"):
            os.rename(os.path.join(work, name), os.path.join(request.keep, name))
    return status if request.target.command else 0


def write_stacks(request: Request, work: str, tools: pipeline.Tools) -> bool:
    """Writes the output and prints the summary.  Returns whether there was anything to write.  Raises Failure."""
    stream, named, folded = (os.path.join(work, name) for name in (STREAM, "named.pe", "stacks.folded"))
    output, fold = request.output, ["stackfold", "--annotate", *request.root]
    with files.scratch() as said:
        has_failed = any(pipeline.draw(tools, path, [stage], said) for path, stage in (
            (named, ["pe-symbolize", stream]), (folded, [*fold, named])))
        outputs.forward(tools, said, not output.is_quiet or has_failed, is_failure=has_failed)
    if has_failed:
        raise Failure(f"{output.path}: not written")
    # The messages about the stream have been printed.
    look = [*outputs.HOTCOLD, "--title", printable(request.target.title), "--subtitle",
            "time on CPU and waiting, summed over threads"]
    time = [option for option in request.root if option.startswith("--time=")]

    def stages_of(output: outputs.Output) -> list[list[str]]:
        marks = ["--mark-waits", "--every", STEP] if output.is_drawn else []
        return output.stages(output.fold("-q", *(request.root if output.is_folded else time), *marks), *look)

    is_written = outputs.write_from(tools, output, named, stages_of, copy=("pe-symbolize", "-q", *time) if time else ("cat",))
    if is_written and not output.is_quiet:
        times.report(tools, named, folded, request.root)
    if is_written and request.prints_json:
        times.print_figures(tools, request.target.title, named, folded, request.root)
    return is_written
