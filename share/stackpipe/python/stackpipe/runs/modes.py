"""The modes of profile_run.  A mode sets the recorder, rate and duration, and how its counts are drawn."""
import re
from typing import NamedTuple

from stackpipe.runs.store import unit_of


class Mode(NamedTuple):
    """A way to record a target."""

    name: str
    recorder: str
    hz: int  #: 0: the recorder has no rate
    seconds: str  #: "0": until the program ends

    @property
    def has_limit(self) -> bool:
        """Does the recording end after a set time?"""
        return float(self.seconds) > 0


# The recorder, the rate and the seconds for what runs already.  499 Hz finds growth of ten points in one pair of 4-second
# runs; 99 Hz misses a third of such growth.
_MODES = {
    "default": ("pe-record", 499, "10"),
    "quick": ("pe-record", 499, "5"),
    "detailed": ("pe-record", 997, "20"),
    "system": ("pe-record", 99, "10"),
    "offcpu": ("offcpu", 0, "10"),
    "heap": ("malloctrace", 0, "0"),
    "hotcold": ("hotcold", 99, "10"),
}
_COMMAND_HZ = 997
#: Additional folded text and flame graphs of a heap run, and their events.
HEAP_PARTS = {"peak": "peak-bytes", "leaks": "live-bytes"}
#: Descriptions of the counts, for the modes whose reports explain them.
COUNTS = {"heap": "bytes allocated", "offcpu": "microseconds waited",
          "hotcold": "microseconds on CPU, and, of frames with the mark _[o], waited"}
# Every thread waits in the scheduler; its callers are more informative.
_SCHEDULER = re.compile(rb"(;_*(schedule|preempt_schedule|io_schedule|finish_task_switch)[a-z_.]*(_\[[a-z]\])?)+((;\[[^;\n]*\](_\[o\])?)* [0-9]+)$",
                        re.MULTILINE)


def mode_of(name: str, seconds: str, hz: str = "", is_command: bool = False) -> Mode:
    """Returns the mode of a name.  A command is recorded at 997 Hz until it ends.  `seconds` and `hz` replace the duration and
    the rate, unless they are empty."""
    recorder, usual_hz, usual_seconds = _MODES[name or "default"]
    if is_command:
        usual_hz, usual_seconds = usual_hz and _COMMAND_HZ, "0"
    return Mode(name or "default", recorder, int(hz or usual_hz), seconds or usual_seconds)


def counted_options(mode: str) -> list[str]:
    """Returns the options of flamediff for a mode's counts."""
    unit = unit_of(mode)
    return [] if unit == "samples" else ["--countname", unit]


def look_options(mode: str) -> list[str]:
    """Returns the options of flamesvg for a mode's flame graph."""
    colors = {"offcpu": "io", "heap": "mem", "hotcold": "hotcold"}.get(mode, "kind")
    return ["--colors", colors, *counted_options(mode)]


def without_scheduler(folded: bytes) -> bytes:
    """Removes the scheduler's frames from the ends of stacks, before the kind of the wait."""
    return _SCHEDULER.sub(rb"\4", folded)
