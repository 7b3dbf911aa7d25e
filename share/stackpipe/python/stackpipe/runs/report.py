"""The output of a profile_run run: its report, its hot spots and its flame graph."""
import contextlib
import os
import subprocess
from typing import TYPE_CHECKING, Iterator, Sequence

from stackpipe import files, inputs, pipeline
from stackpipe.runs import modes
from stackpipe.messages import Failure, print_out, printable, text_of
from stackpipe.recorder import Recording
from stackpipe.runs.profile_run import Settings, need
from stackpipe.runs.store import Run, find_run

if TYPE_CHECKING:
    from stackpipe.runs.capture import Making

_COLUMNS = 120  # width of a report's lines: C++ symbols can be hundreds long; the folded text keeps them whole
_FROM_THE_ROOT = ("--tree", "--total", "-n", "1", "--percent-limit", "2", "--max-depth", "30")


class NotWritten(Exception):
    """The run could not be written."""


def list_functions(tools: pipeline.Tools, *arguments: str) -> str:
    """Returns a table by stacktop.  Its status 2, a profile without stacks, is not an error.  Raises NotWritten."""
    stages = [["stacktop", "--columns", str(_COLUMNS), *arguments]]
    statuses, text = tools.read(stages, stderr=subprocess.DEVNULL)
    if pipeline.outcome(stages, statuses) == 1:
        raise NotWritten
    return text_of(text)


def report_of(making: "Making", meta: dict, recording: Recording) -> str:
    """Returns the report of a run that is being made.  Raises NotWritten, OSError."""
    mode, tools, draft = making.mode, making.tools, making.draft
    stacks = draft.path("stacks.folded")
    if meta["unit"] != "samples":
        with open(stacks, "rb") as file:
            folded = modes.without_scheduler(file.read())
        stacks = draft.path(".waits.folded")
        files.write_new(stacks, folded)
    text = head_of(making, meta)
    text += "\nHOT SPOTS\n\n" + list_functions(tools, "-n", str(making.settings.top), "--", stacks)
    text += "\nWHAT THEY CALL (lines of 1 % or more)\n\n"
    text += list_functions(tools, "--tree", "--self", "-n", "5", "--percent-limit", "1", "--max-depth", "8", "--", stacks)
    what = "BYTES ARE" if mode.name == "heap" else "TIME IS"
    text += f"\nWHERE THE {what}, FROM THE ROOT (lines of 2 % or more)\n\n" + list_functions(tools, *_FROM_THE_ROOT, "--", stacks)
    if mode.name == "heap":  # the holders of memory at its peak, and at the end
        for title, part in (("HELD AT THE PEAK", "peak"), ("NOT FREED", "leaks")):
            text += f"\n{title}, IN BYTES (lines of 2 % or more)\n\n"
            text += list_functions(tools, *_FROM_THE_ROOT, "--", draft.path(f"{part}.folded"))
    text += comparison_of(making)
    others = draft.messages()
    for summary in recording.summaries:  # its figures are in the head
        others = others if summary.is_empty else summary.without_text(others)
    if others:
        text += "\nMESSAGES\n\n" + "".join(f"{printable(line)}\n" for line in others)
    return text


def head_of(making: "Making", meta: dict) -> str:
    """Returns the lines that describe the profile: its date, mode, samples and so on."""
    mode, stamp = making.mode, making.draft.stamp
    asked = f"{meta['seconds_asked']} s" if mode.has_limit else "until it ends"
    lines = {
        "date": f"{stamp[:10]} {stamp[11:13]}:{stamp[14:16]}:{stamp[17:19]} UTC",
        "duration": f"{meta['seconds']} s (asked for: {asked}){', interrupted' if meta['interrupted'] else ''}",
        "mode": f"{mode.name}, {f'{mode.hz} Hz, ' if mode.hz else ''}{printable(meta['event'])}",
        "samples": f"{meta['samples']}, {meta['lost']} lost",
        "symbols": symbols_of(meta),
    }
    if making.target.command:
        lines["program"] = f"exit status {meta['exit_status']}"
    if meta["work"] is not None:
        lines["work"] = f"{meta['work']} units"
    lines["machine"] = meta["machine"]
    if mode.name in modes.COUNTS:
        lines["counts"] = modes.COUNTS[mode.name]
    return f"Profile of {printable(making.target.title)}\n\n" + "".join(f"{name:<12} {text}\n" for name, text in lines.items())


def symbols_of(meta: dict) -> str:
    """Returns the share of frames that have a symbol, as text."""
    if meta["frames"]:
        share = 100 * (meta["frames"] - meta["frames_without_name"]) / meta["frames"]
        return f"{share:.1f} % of {meta['frames']} frames have a name"
    return "every frame has a name" if meta["samples"] else "-"


def comparison_of(making: "Making") -> str:
    """Returns the report's section on the changes since the baseline."""
    text = "\nAGAINST THE BASELINE\n\n"
    if not making.baseline:
        return text + "There is no earlier run of this workload and mode, and none was named.\n"
    name = printable(making.baseline.name)
    try:
        making.tools.find("flamediff")
    except Failure:
        return text + f"flamediff, which compares runs, is not installed; the baseline would be {name}.\n"
    counted = modes.counted_options(making.mode.name)
    statuses, told = making.tools.read([["flamediff", "--text", *counted, "--top", "10", "--",
                                         making.baseline.stacks, making.draft.path("stacks.folded")]], stderr=subprocess.STDOUT)
    return text + f"Baseline: {name}\n\n{text_of(told)}" + ("They could not be compared.\n" if any(statuses) else "")


def run_analyze(settings: Settings, tools: pipeline.Tools) -> int:
    """Prints the hot spots of a run, and the usual remedies."""
    run = find_run(settings.output, settings.line.last("run", "latest"), "--run")
    width = [] if os.isatty(1) else ["--columns", str(_COLUMNS)]  # stacktop uses the terminal's own width
    with chosen_stacks(settings, run, tools) as stacks:
        show(tools, ["stacktop", *width, *settings.table, "-n", str(settings.top), "--hints", "--", stacks])
        if settings.table:
            return 0
        print_out("\n")
        show(tools, ["stacktop", *width, "--tree", "--self", "-n", str(min(settings.top, 5)), "--percent-limit", "1", "--max-depth", "8",
                     "--", stacks])
    return 0


@contextlib.contextmanager
def chosen_stacks(settings: Settings, run: Run, tools: pipeline.Tools) -> Iterator[str]:
    """Yields the file with the run's folded text, or with that of --time."""
    if not settings.line.has("time"):
        yield run.stacks
        return
    work = files.temporary_folder()
    try:
        yield inputs.folded_part(run, settings.line.last("time"), work, tools)
    finally:
        files.remove_folder(work)


def show(tools: pipeline.Tools, command: Sequence[str]) -> None:
    """Prints a tool's output on standard output.  Raises Failure with the tool's status if it fails."""
    status = tools.pipe([command])[0]
    if status:
        raise Failure("", status)


def run_flamegraph(settings: Settings, tools: pipeline.Tools) -> int:
    """Draws a run again.  Options after -- go to flamesvg and take precedence over ours."""
    need(tools, "flamesvg", "flamegraph")
    run = find_run(settings.output, settings.line.last("run", "latest"), "--run")
    path, theirs = settings.svg or run.path("flame.svg"), settings.line.command or []
    ours = [] if is_given(theirs, "--colors") else modes.look_options(run.text("mode"))
    ours += [] if is_given(theirs, "--title") else ["--title", printable(run.text("workload"))]
    with chosen_stacks(settings, run, tools) as stacks:
        if pipeline.draw(tools, path, [["flamesvg", *ours, *theirs, stacks]]) != 0:
            raise Failure(f"{path}: not written")
    print_out(f"{path}\n")
    return 0


def is_given(options: Sequence[str], name: str) -> bool:
    """Do the options contain this one?"""
    return any(option == name or option.startswith(f"{name}=") for option in options)
