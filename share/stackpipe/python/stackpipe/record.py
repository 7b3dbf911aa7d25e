"""stackpipe record: records CPU time by pe-record, and writes it as a flame graph or in another form."""
import os
import shlex
from typing import NamedTuple, Sequence

from stackpipe import files, outputs, pipeline, recorder, short, targets, times
from stackpipe.command import read_options
from stackpipe.messages import Failure, UsageError, printable, say
from stackpipe.options import HELP, VERSION, Option

NAME = "stackpipe"
OWN_FAILURE = 125
USAGE = """Usage: stackpipe record [OPTION]... {[--] COMMAND [ARGUMENT]... | -p PID | -t TID | -a}
Record where CPU time goes and draw a flame graph.  Ctrl-C ends the recording; the graph is still drawn.
"""
OPTIONS = (
    *targets.OPTIONS,
    Option("event", "e", "EVENT", "the event to sample, as for pe-record(1) (default: CPU time)"),
    Option("engine", "", "NAME", "the engine for pe-record(1) (default: the best one that works here)"),
    Option("span", "", "FUNC", "record only what happens inside calls to FUNC, as for pe-record(1)"),
    Option("longer", "", "TIME", "with --span: only calls that take longer than TIME, such as 50ms, and what they waited for"),
    Option("elapsed", "", "", "divide the time on the clock, also while nothing ran: shows what to make faster"),
    Option("lines", "", "", "add file and line to the name of each frame, where known"),
    outputs.ROOT,
    outputs.TIME,
    *outputs.OPTIONS,
    HELP,
    VERSION,
)
_STEP = "100ms"  #: of the map of time above the graph
_USAGE = 2  # the status of a tool for a wrong command line


class Request(NamedTuple):
    """What to record, and how."""

    target: targets.Target
    output: outputs.Output
    rate: list[str] = []  #: options of pe-record
    event: str = ""
    engine: str = ""
    is_verbose: bool = False
    span: str = ""  #: a function
    longer: str = ""  #: a time; empty: all of its calls
    with_lines: bool = False
    is_elapsed: bool = False
    is_hotcold: bool = False  #: waits are drawn, in cold colours
    root: Sequence[str] = ()  #: options of stackfold
    time: Sequence[str] = ()  #: the option of the tools for the part that is drawn


def main(arguments: Sequence[str], tools: pipeline.Tools) -> int:
    """Returns the status of the recorded command, or our own."""
    line = read_options(NAME, USAGE, OPTIONS, arguments, tools, runs_command=True)
    target = targets.read_target(line, "stackpipe record -- ./program")
    if line.has("longer") and not line.has("span"):
        raise UsageError("--longer: only with --span")
    if line.has("elapsed"):
        for option in ("event", "span", "tid"):
            if line.has(option):
                raise UsageError(f"--elapsed, --{option}: cannot be combined")
        if line.has("all"):
            raise UsageError("--elapsed: needs a command or processes: on the whole machine something always runs")
    if line.has("longer"):
        outputs.check_by_stackfold("longer", line.last("longer"), tools)
    output = outputs.read_output(line)
    if (line.has("root") or line.has("elapsed")) and not all(each.is_folded for each in output.all):
        option = "root" if line.has("root") else "elapsed"
        raise UsageError(f"--{option}: only for svg, html and folded: others have the threads' own times")
    rate = ["-F", line.last("freq")] if line.has("freq") else []
    # Why calls are slow is a question about waits, too; these engines record both.
    is_hotcold = line.has("longer") and not line.has("event") and line.last("engine", "best") in ("best", "bpf", "perf")
    event = "cpu,waits" if line.has("elapsed") or is_hotcold else line.last("event")
    return record(Request(target, output, rate, event, line.last("engine"), line.has("verbose"), line.last("span"), line.last("longer"),
                          line.has("lines"), line.has("elapsed"), is_hotcold, outputs.root_of(line), outputs.time_of(line, tools)), tools)


def record(request: Request, tools: pipeline.Tools) -> int:
    """Records the target and writes the output.  Returns the status of the command, or our own."""
    for tool in ("pe-record", "pe-symbolize", "stackfold", "flamesvg"):
        tools.find(tool)
    work = files.temporary_folder()
    try:
        tools.shows_stages = request.is_verbose
        with short.lines(tools, not request.is_verbose and not request.output.is_quiet):
            return record_in(request, work, tools)
    finally:
        files.remove_folder(work)


def record_in(request: Request, work: str, tools: pipeline.Tools) -> int:
    """Records into the folder `work`, and writes the output.  Returns the status of the command, or our own."""
    stream = os.path.join(work, "raw.pe")
    recorder.announce(request.target, request.output)
    recording = run(request, stream, tools)
    status = recording.status
    if status and not request.target.command and status != _USAGE:
        status = OWN_FAILURE  # the recorder failed: no program has a status
    if not os.path.exists(stream) or os.path.getsize(stream) == 0:
        return status or OWN_FAILURE
    return write(request, work, stream, recording._replace(status=status), tools)


def run(request: Request, stream: str, tools: pipeline.Tools) -> recorder.Recording:
    """Records the target into the stream."""
    output = request.output
    words = ["pe-record", "--engine", request.engine or "best", *request.rate, *(["-e", request.event] if request.event else []),
             *(["--span", request.span] if request.span else []), *request.target.limit, *(["-q"] if output.is_quiet else ["-v"] if request.is_verbose else [])]
    return recorder.run_short(tools, [*words, "-o", stream], request.target, output)


def stages(request: Request, output: outputs.Output) -> tuple[list[str], list[str]]:
    """Returns the stages that fold the stream for an output and draw it."""
    times = [*(["--weight", "elapsed"] if request.is_elapsed else []), *(["--every", _STEP] if output.is_drawn else [])]
    lines = ["--lines"] if request.with_lines and output.is_folded else []  # exports always have them
    calls = [*(["--span", request.span] if request.span else []), *(["--longer", request.longer] if request.longer else [])]
    marks = ["--mark-waits"] if request.is_hotcold and output.is_drawn else []
    colors = outputs.HOTCOLD if request.is_hotcold else ("--colors", "kind")
    return output.fold(*times, *lines, *calls, *marks, *request.root, *request.time), ["flamesvg", *colors, "--title", printable(request.target.title)]


def stages_for(request: Request, output: outputs.Output) -> list[list[str]]:
    """Returns the stages that write an output from a stream with symbols."""
    fold, draw = stages(request, output)
    return output.stages(fold, *draw[1:])


def write(request: Request, work: str, stream: str, recording: recorder.Recording, tools: pipeline.Tools) -> int:
    """Writes the output from the stream of a recording in the folder `work`.  Returns the status of the command, or our own."""
    output, status = request.output, recording.status
    fold, draw = stages(request, output)
    reason = "nothing was recorded"
    if not recording.summaries[0].is_empty:
        with outputs.keeping(work, [os.path.basename(stream)], shlex.join(fold), shlex.join(draw)):
            write_picture = write_elapsed if request.is_elapsed else write_stacks
            if write_picture(request, work, stream, tools):
                return status if request.target.command else 0
        if request.longer:
            reason = f"nothing was recorded in calls longer than {request.longer}"
    say(f"{output.path}: not written: {reason}")
    return status or OWN_FAILURE


def symbolizing(request: Request, stream: str) -> list[str]:
    """Returns the stage that adds symbols to the stream."""
    time = request.time if all(each.form == "pe" for each in request.output.all) else []  # stackfold knows the start of the recording only if it has all
    return ["pe-symbolize", *(["-q"] if request.output.is_quiet else []), *(["--lines"] if request.with_lines else []), *time, stream]


def write_stacks(request: Request, _: str, stream: str, tools: pipeline.Tools) -> bool:
    """Writes the output.  Returns whether there was anything to write.  Raises Failure."""
    return outputs.write_all(tools, request.output, symbolizing(request, stream), lambda each: stages_for(request, each), explains_nothing=bool(request.longer),
                             copy=("pe-symbolize", "-q", *request.time) if request.time else ("cat",))


def write_elapsed(request: Request, work: str, stream: str, tools: pipeline.Tools) -> bool:
    """Writes the output, and prints the times of the clock and of threads.  Returns whether there was anything to write.  Raises
    Failure."""
    named, folded = (os.path.join(work, name) for name in ("named.pe", "stacks.folded"))
    output = request.output
    with files.scratch() as said:
        has_failed = pipeline.draw(tools, named, [symbolizing(request, stream)], said)
        outputs.forward(tools, said, not output.is_quiet or bool(has_failed), is_failure=bool(has_failed))
    if has_failed:
        raise Failure(f"{output.path}: not written")
    is_written = outputs.write_from(tools, output, named, lambda each: stages_for(request, each), copy=("pe-symbolize", "-q", *request.time) if request.time else ("cat",))
    if is_written and not output.is_quiet and not pipeline.draw(tools, folded, [["stackfold", "--annotate", "-q", *request.root, *request.time, named]]):
        times.report(tools, named, folded, [*request.root, *request.time])
    return is_written
