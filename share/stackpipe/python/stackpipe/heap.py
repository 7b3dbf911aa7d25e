"""stackpipe heap: traces the allocations of a program, or of a running process, by malloctrace.  Draws its memory peak, its leaks and its
allocations, each as one flame graph."""
import os
from typing import Mapping, NamedTuple, Sequence

from stackpipe import files, outputs, pipeline, recorder, short, targets
from stackpipe.command import read_options
from stackpipe.messages import Failure, print_json, printable, say
from stackpipe.options import HELP, VERSION, CommandLine

NAME = "stackpipe"
OWN_FAILURE = 125
_FIGURES = ("peak_bytes", "live_bytes", "live_blocks", "allocated_bytes", "allocations", "processes")
USAGE = """Usage: stackpipe heap [OPTION]... [--] COMMAND [ARGUMENT]...
       stackpipe heap [OPTION]... -p PID
Draw where a program allocates memory.  With -o FILE.svg, FILE.svg shows the peak, FILE-leaks.svg the memory that was not
freed, and FILE-allocations.svg all allocated bytes.  With -p, only what is allocated from now on counts.
"""
OPTIONS = (targets.DURATION._replace(text="stop after S seconds; a command that still runs gets SIGINT"),
           targets.PID._replace(value="PID|NAME", text="trace a process that runs already"),
           outputs.JSON, *outputs.OPTIONS, HELP, VERSION)


class Part(NamedTuple):
    """A result."""

    event: str  #: of stackfold
    figure: str  #: its sum in malloctrace's summary
    what: str


PARTS = {"": Part("peak-bytes", "peak_bytes", "memory at the peak"),
         "leaks": Part("live-bytes", "live_bytes", "memory that was not freed"),
         "allocations": Part("alloc-bytes", "allocated_bytes", "all allocated bytes")}


def main(arguments: Sequence[str], tools: pipeline.Tools) -> int:
    """Returns the status of the program, or our own."""
    line = read_options(NAME, USAGE, OPTIONS, arguments, tools, runs_command=True)
    target = targets.read_target(line, "stackpipe heap -- ./program")
    parts = read_parts(line)
    tools.shows_stages = line.has("verbose")
    return record_and_draw(target, parts, tools, line.has("json"))


def read_parts(line: CommandLine) -> list[tuple[str, outputs.Output]]:
    """Returns the outputs that the command line asks for, each with the name of its part.  Raises as outputs.read_output()."""
    parts = []
    for output in outputs.read_output(line, parts=[part for part in PARTS if part]).all:
        # A stream has all parts; a pipe holds one result.
        is_one = output.form == "pe" or files.is_written_in_place(output.path)
        parts += [(part, output.beside(part) if part else output) for part in ([""] if is_one else PARTS)]
    for part, output in parts:
        outputs.check_replaceable(output, line.has("force"))
    return parts


def record_and_draw(target: targets.Target, parts: Sequence[tuple[str, outputs.Output]], tools: pipeline.Tools, prints_json: bool) -> int:
    """Traces the program and writes the parts.  `prints_json`: prints the figures, too."""
    for tool in ("malloctrace", "pe-symbolize", "stackfold", "flamesvg"):
        tools.find(tool)
    work = files.temporary_folder()
    try:
        with short.lines(tools, not tools.shows_stages and not parts[0][1].is_quiet):
            return record_in(work, target, parts, tools, prints_json)
    finally:
        files.remove_folder(work)


def record_in(work: str, target: targets.Target, parts: Sequence[tuple[str, outputs.Output]], tools: pipeline.Tools, prints_json: bool) -> int:
    """The same, in the folder `work`."""
    stream = os.path.join(work, "heap.pe")
    recording = trace(target, stream, parts[0][1], tools)
    status = 0 if recording.is_over_time else recording.status
    if not os.path.exists(stream) or os.path.getsize(stream) == 0:
        return status or OWN_FAILURE
    with outputs.keeping(work, [os.path.basename(stream)], f"stackfold --annotate --event {PARTS[''].event}"):
        figures = recording.summaries[0].figures
        is_written = write_parts(parts, stream, work, figures, ["--title", printable(target.title)], tools)
        if prints_json:
            print_json({"version": 1, "unit": "bytes", "target": target.title, "status": status,
                        **{name: int(figures.get(name, 0)) for name in _FIGURES},
                        "is_estimated": recording.summaries[0].flags.get("is_estimated", False), "outputs": tools.written})
    return status if is_written else status or OWN_FAILURE


def write_parts(parts: Sequence[tuple[str, outputs.Output]], stream: str, work: str, figures: Mapping[str, float], look: Sequence[str],
                tools: pipeline.Tools) -> bool:
    """Writes the parts of a stream; `figures` are those of its recorder, and `look` are more options of flamesvg.  Returns whether
    there was anything to write.  Raises Failure."""
    named = os.path.join(work, "named.pe")
    first = parts[0][1]
    with files.scratch() as said:
        has_failed = bool(pipeline.draw(tools, named, [["pe-symbolize", *(["-q"] if first.is_quiet else []), stream]], said))
        outputs.forward(tools, said, not first.is_quiet or has_failed, is_failure=has_failed)
    if has_failed:
        raise Failure(f"{first.path}: not written")
    return any([write_part(PARTS[part], output._replace(opens=output.opens and not part), named, look, tools)
                if output.form == "pe" or figures.get(PARTS[part].figure) != 0 else report_empty(PARTS[part], output)
                for part, output in parts])


def trace(target: targets.Target, stream: str, output: outputs.Output, tools: pipeline.Tools) -> recorder.Recording:
    """Runs the program under malloctrace, which ends with it; or attaches to a process."""
    recorder.announce(target, output)
    limit = [] if target.command else target.limit
    command = ["malloctrace", *(["-q"] if output.is_quiet else []), *limit, "-o", stream]
    return recorder.run_short(tools, command, target, output, is_timed=not target.command)


def write_part(part: Part, output: outputs.Output, named: str, more: Sequence[str], tools: pipeline.Tools) -> bool:
    """Writes one part of the recording.  Reports if it is empty, and returns whether it was written."""
    # Every fold would report the samples of the other events as left out.
    folding = output.fold("--event", part.event, named)
    look = ["--colors", "mem", "--countname", "bytes", *more, "--subtitle", part.what]
    stages = output.stages(folding, *look) or [["cat", named]]
    return outputs.write(tools, output, stages, part.what if output.form != "pe" else "") or report_empty(part, output)


def report_empty(part: Part, output: outputs.Output) -> bool:
    """Reports that a part has no stacks, so there is no file of it; returns False."""
    if not output.is_quiet:
        say(f"{part.what}: none, so {output.path} was not written")
    return False
