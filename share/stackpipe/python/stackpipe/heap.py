"""stackpipe heap: traces the allocations of a program by malloctrace.  Draws its memory peak, its leaks and its
allocations, each as one flame graph."""
import os
from typing import Sequence

from stackpipe import files, outputs, pipeline, targets
from stackpipe.command import read_options
from stackpipe.messages import Failure, UsageError, printable, say
from stackpipe.options import HELP, VERSION

NAME = "stackpipe"
OWN_FAILURE = 125
USAGE = """Usage: stackpipe heap [OPTION]... [--] COMMAND [ARGUMENT]...
Draw where a program allocates memory.  With -o FILE.svg, FILE.svg shows the peak, FILE-leaks.svg the memory that was never
freed, and FILE-allocations.svg all allocated bytes.
"""
OPTIONS = (targets.DURATION, targets.PID, *outputs.OPTIONS, HELP, VERSION)
#: The parts, each with the event of stackfold and its description.
PARTS = {"": ("peak-bytes", "memory at the peak"), "leaks": ("live-bytes", "memory that was never freed"),
         "allocations": ("alloc-bytes", "all allocated bytes")}


def main(arguments: Sequence[str], tools: pipeline.Tools) -> int:
    """Returns the status of the program, or our own."""
    line = read_options(NAME, USAGE, OPTIONS, arguments, tools, runs_command=True)
    if line.has("pid"):
        raise UsageError("--pid: allocations can only be traced from a program's start: stackpipe heap -- COMMAND")
    target = targets.read_target(line, "stackpipe heap -- ./program")
    output = outputs.read_output(line)
    is_forced = line.has("force")
    parts = {part: output.beside(part) if part else output for part in (PARTS if output.form != "pe" else [""])}
    for part in parts.values():
        outputs.check_replaceable(part, is_forced)
    tools.shows_stages = line.has("verbose")
    return record_and_draw(target, parts, tools)


def record_and_draw(target: targets.Target, parts: dict[str, outputs.Output], tools: pipeline.Tools) -> int:
    """Traces the program and writes the parts."""
    for tool in ("malloctrace", "pe-symbolize", "stackfold", "flamesvg"):
        tools.find(tool)
    work = files.temporary_folder()
    try:
        stream = os.path.join(work, "heap.pe")
        status = trace(target, stream, parts[""].is_quiet, tools)
        if not os.path.exists(stream) or os.path.getsize(stream) == 0:
            return status or OWN_FAILURE
        named = os.path.join(work, "named.pe")
        with files.create(named) as file:
            if tools.pipe([["pe-symbolize", stream]], stdout=file) != [0]:
                raise Failure(f"{parts[''].path}: not drawn")
        for part, output in parts.items():
            write_part(part, output, named, target, tools)
        return status
    finally:
        files.remove_folder(work)


def trace(target: targets.Target, stream: str, is_quiet: bool, tools: pipeline.Tools) -> int:
    """Runs the program under malloctrace until it ends, the time is over, or Ctrl-C is typed.  Returns its status."""
    pipeline.go_on()
    command = ["malloctrace", *(["-q"] if is_quiet else []), "-o", stream, "--", *target.command]
    tools.show([command])
    process = tools.start(command, as_user=True)
    is_ended = bool(target.limit) and not pipeline.wait_or_interrupt(process, float(target.limit[1]))
    status = pipeline.wait_for(process)
    pipeline.stop_listening()
    if is_ended and not is_quiet:
        say(f"the command was ended after {target.limit[1]} s (-d)")
    return status


def write_part(part: str, output: outputs.Output, named: str, target: targets.Target, tools: pipeline.Tools) -> None:
    """Writes one part of the recording; reports if it is empty."""
    event, what = PARTS[part]
    # Every fold would report the samples of the other events as left out.
    folding = output.fold("--event", event, named)
    look = ["--colors", "mem", "--countname", "bytes", "--title", printable(target.title), "--subtitle", what]
    stages = output.stages(folding, *look) or [["cat", named]]
    if not outputs.write(tools, output, stages, what if output.form != "pe" else ""):
        say(f"{what}: none, so {output.path} was not written")
