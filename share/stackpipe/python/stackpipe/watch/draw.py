"""Draws a time of the kept segments: stackpipe watch --dump."""
import re
import time

from stackpipe import outputs, pipeline
from stackpipe.messages import UsageError, printable, say
from stackpipe.options import CommandLine, read_seconds, text_of_seconds
from stackpipe.watch import state, store

_STEP_S = 0.1  #: of the map of time above the graph
_MOST_STEPS = 600
_SECONDS = re.compile(r"([0-9]{1,12}\.[0-9]{6}),([0-9]{1,12}\.[0-9]{6})")


def range_of(begin: float, end: float) -> str:
    """Returns a range of the recordings' clock, which is CLOCK_MONOTONIC."""
    return f"{max(begin, 0):.6f},{max(end, 0):.6f}"


def step_of(span_s: float) -> str:
    """Returns the step of the map for a time of this length."""
    return text_of_seconds(max(_STEP_S, round(span_s / _MOST_STEPS, 1)))


def clock_text(exact: re.Match) -> str:
    """Returns a range of the recordings' clock as times of day."""
    ahead = time.time() - time.monotonic()
    return " to ".join(time.strftime("%H:%M:%S", time.localtime(ahead + float(number))) for number in exact.groups())


def chosen_range(line: CommandLine, is_running: bool) -> tuple[str, str, str]:
    """Returns the range that the command line asks for, as the tools read it, the step of its map, and its text for people.  The clock
    ends it, not the last sample: a target that has stopped has none.  Raises UsageError."""
    if line.has("time"):
        if line.has("last"):
            raise UsageError("--last, --time: choose one of them")
        text = line.last("time")
        exact = _SECONDS.fullmatch(text)
        return (text, step_of(float(exact[2]) - float(exact[1])), clock_text(exact)) if exact else (text, step_of(_MOST_STEPS), text)
    last = read_seconds("last", line.last("last", "30s"))
    now = time.monotonic()
    told = f"{text_of_seconds(last)} to {time.strftime('%H:%M:%S')}"
    if is_running:
        return range_of(now - last, now), step_of(last), told
    return f"-{last:g}s", step_of(last), f"the last {text_of_seconds(last)}"


def dump(line: CommandLine, name: str, base: str, tools: pipeline.Tools) -> int:
    """Writes the output; returns 0, or 1 if there was nothing to write.  Raises Failure."""
    for tool in ("pe-symbolize", "stackfold", "flamesvg"):
        tools.find(tool)
    tools.shows_stages = line.has("verbose")
    opened = store.open_store(base, name)
    try:
        known = state.read(opened)
        text, step, told = chosen_range(line, known.is_running)
        default = f"{name}-{time.strftime('%Y%m%dT%H%M%S')}-dump.svg"
        output = outputs.read_output(line, default=default)
        pipeline.stop_listening(tools)  # SIGTERM removes the draft of the output
        tools.hears_keys = True
        with_waits = "waits" in known.event
        look = [*(outputs.HOTCOLD if with_waits else ("--colors", "kind")), "--title", printable(f"{known.target or name}{told and ': '}{told}")]
        symbolize = ["pe-symbolize", *(["-q"] if output.is_quiet else []), "--time", text, opened.path_of(store.SEGMENTS)]

        def stages_of(output: outputs.Output) -> list[list[str]]:
            marks = ["--every", step, *(["--mark-waits"] if with_waits else [])] if output.is_drawn else []
            return output.stages(output.fold(*(["-q"] if output.is_quiet else []), "--time", text, *marks), *look)

        # A recorder that was killed, or a disk that was full, may have left a segment whose end is missing.
        if outputs.write_all(tools, output, symbolize, stages_of, explains_nothing=True, takes_part=True):
            return 0
        say(f"{output.path}: not written: nothing was recorded in this time")
        return 1
    finally:
        opened.close()
