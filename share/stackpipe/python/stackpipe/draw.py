"""stackpipe draw: draws a profile that was recorded before, as the command that recorded it does, or writes it in another form."""
from typing import Sequence

from stackpipe import files, heap, inputs, outputs, pipeline, short
from stackpipe.command import read_options
from stackpipe.messages import Failure, UsageError
from stackpipe.options import HELP, VERSION, CommandLine, Option

NAME = "stackpipe"
USAGE = """Usage: stackpipe draw [OPTION]... PROFILE
Draw a profile that was recorded before, or write it in another format.  A PROFILE is a sample stream, perf.data, a flame
graph of ours, folded text, a pprof or speedscope profile, or a kept run: a name that stackpipe runs list prints, latest,
previous, or a folder.
"""
OPTIONS = (
    outputs.TIME,
    Option("event", "e", "EVENT", "the event to draw, if there are several"),
    Option("elapsed", "", "", "divide the time on the clock, for a recording of CPU time and waits"),
    Option("lines", "", "", "add file and line to the name of each frame, where known"),
    outputs.ROOT,
    *outputs.OPTIONS,
    HELP,
    VERSION,
)
_STEP = "100ms"  #: of the map of time above the graph
#: Options that need the data of a sample stream.
_OF_STREAMS = ("elapsed", "lines", "root")


def main(arguments: Sequence[str], tools: pipeline.Tools) -> int:
    """Returns 0.  Raises Failure."""
    line = read_options(NAME, USAGE, OPTIONS, arguments, tools)
    names = [*line.operands, *(line.command or [])]
    if len(names) != 1:
        raise UsageError("one profile is needed; for example: stackpipe draw run.pe")
    if line.has("elapsed") and line.has("event"):
        raise UsageError("--elapsed, --event: cannot be combined")
    tools.shows_stages = line.has("verbose")
    path = inputs.path_of(names[0])
    if inputs.is_heap(path) and not line.has("event"):
        return draw_heap(line, path, tools)
    output = outputs.read_output(line)
    outputs.must_differ(output, [path])
    with short.lines(tools, not line.has("verbose") and not output.is_quiet):
        is_written = draw_stream(line, path, output, tools) if inputs.is_stream(path) else draw_other(line, path, output, tools)
    if not is_written:
        raise Failure(f"{output.path}: not written: there is nothing to draw in {names[0]}")
    return 0


def draw_heap(line: CommandLine, path: str, tools: pipeline.Tools) -> int:
    """Draws the parts of a stream of stackpipe heap."""
    for option in ("time", *_OF_STREAMS):
        if line.has(option):
            raise UsageError(f"--{option}: not for a recording of stackpipe heap")
    parts = heap.read_parts(line)
    for _, output in parts:
        outputs.must_differ(output, [path])
    work = files.temporary_folder()
    try:
        with short.lines(tools, not line.has("verbose") and not parts[0][1].is_quiet):
            is_written = heap.write_parts(parts, path, work, {}, [], tools)
        if not is_written:
            raise Failure(f"{path}: no allocation in it")
        return 0
    finally:
        files.remove_folder(work)


def draw_stream(line: CommandLine, path: str, output: outputs.Output, tools: pipeline.Tools) -> bool:
    """Draws a sample stream as the command that recorded it does.  Returns whether there was anything to draw."""
    has_waits = inputs.has_waits(path) and not line.has("event")
    for option in ("elapsed", "root"):
        if line.has(option) and not all(each.is_folded for each in output.all):
            raise UsageError(f"--{option}: only for svg, html and folded: others have the threads' own times")
    quiet = ["-q"] if output.is_quiet else []
    chosen = [*(f"--{name}={line.last(name)}" for name in ("time", "event") if line.has(name)), *outputs.root_of(line)]
    weight = ["--weight", "elapsed"] if line.has("elapsed") else []

    def stages_of(each: outputs.Output) -> list[list[str]]:
        marks = ["--every", _STEP, *(["--mark-waits"] if has_waits else [])] if each.is_drawn else []
        lines = ["--lines"] if line.has("lines") and each.is_folded else []
        return each.stages(each.fold(*quiet, *chosen, *weight, *lines, *marks), *(outputs.HOTCOLD if has_waits else ("--colors", "kind")))

    must_have_stacks(["stackfold", "-q", *chosen, path], output, tools)
    time = outputs.time_of(line, tools)
    is_copied = all(each.form == "pe" for each in output.all)  # stackfold knows the start of the recording only if it has all
    symbolize = ["pe-symbolize", *quiet, *(["--lines"] if line.has("lines") else []), *(time if is_copied else []), path]
    return outputs.write_all(tools, output, symbolize, stages_of, copy=("pe-symbolize", "-q", *time) if time else ("cat",))


def draw_other(line: CommandLine, path: str, output: outputs.Output, tools: pipeline.Tools) -> bool:
    """Draws any other profile.  Returns whether there was anything to draw."""
    for option in _OF_STREAMS:
        if line.has(option):
            raise UsageError(f"--{option}: only for a sample stream")
    if any(each.form == "pe" for each in output.all):
        raise UsageError(f"--output: '{output.path}' would be a sample stream, and only a sample stream has its data")
    quiet = ["-q"] if output.is_quiet else []
    chosen = [f"--{name}={line.last(name)}" for name in ("time", "event") if line.has(name)]
    must_have_stacks(["stackfold", "-q", *chosen, path], output, tools)
    return outputs.write_from(tools, output, path, lambda each: each.stages(each.fold(*quiet, *chosen), "--colors", "kind"))


def must_have_stacks(fold: Sequence[str], output: outputs.Output, tools: pipeline.Tools) -> None:
    """Raises Failure if this stage has no stacks for an output in folded text, which no later stage would report."""
    if any(each.form == "folded" for each in output.all):
        statuses, text = tools.read([fold])
        if any(statuses):
            raise Failure("")
        if not text:
            raise Failure(f"{output.path}: not written: there is nothing to draw")
