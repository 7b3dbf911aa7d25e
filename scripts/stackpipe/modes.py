"""What a mode of profile_run stands for: recorder, rate and time, and how what it counts is drawn."""
import re
from typing import NamedTuple

from stackpipe.runs import unit_of


class Mode(NamedTuple):
    """How something is recorded."""

    name: str
    recorder: str
    hz: int  #: 0: the recorder has no rate
    seconds: str  #: "0": with the program

    @property
    def has_limit(self) -> bool:
        """Does it end by itself?"""
        return float(self.seconds) > 0

    @property
    def streams(self) -> dict[str, str]:
        """The streams that the recorder leaves, and what those with names are called in a run."""
        if self.recorder == "hotcold":
            return {"on.pe": "oncpu.pe.gz", "off.pe": "offcpu.pe.gz"}
        return {"raw.pe": "named.pe.gz"}


# 499 Hz finds ten points of growth in one pair of 4-second runs, where 99 Hz misses a third of them.
_MODES = {
    "default": ("pe-record", 499, "10"),
    "quick": ("pe-record", 499, "5"),
    "detailed": ("pe-record", 997, "20"),
    "system": ("pe-record", 99, "10"),
    "offcpu": ("offcpu", 0, "10"),
    "heap": ("malloctrace", 0, "0"),
    "hotcold": ("hotcold", 99, "10"),
}
#: Folded text and pictures that a run of the heap has besides, and the events that they are of.
HEAP_PARTS = {"peak": "peak-bytes", "leaks": "live-bytes"}
#: What counts are, where a report says it.
COUNTS = {"heap": "bytes allocated", "offcpu": "microseconds waited",
          "hotcold": "microseconds on CPU, and, of frames with the mark _[o], waited"}
# Every thread waits in the scheduler; who called it tells more.
_SCHEDULER = re.compile(rb"(;_*(schedule|preempt_schedule|io_schedule|finish_task_switch)[a-z_.]*(_\[[a-z]\])?)+ ([0-9]+)$",
                        re.MULTILINE)


def mode_of(name: str, seconds: str) -> Mode:
    """The mode of a name; `seconds` unless that is empty."""
    recorder, hz, usual = _MODES[name or "default"]
    return Mode(name or "default", recorder, hz, seconds or usual)


def counted_options(mode: str) -> list[str]:
    """Options of flamediff for a mode's counts."""
    unit = unit_of(mode)
    return [] if unit == "samples" else ["--countname", unit]


def look_options(mode: str) -> list[str]:
    """Options of flamesvg for a mode's picture."""
    colors = {"offcpu": "io", "heap": "mem", "hotcold": "hotcold"}.get(mode, "kind")
    return ["--colors", colors, *counted_options(mode)]


def without_scheduler(folded: bytes) -> bytes:
    """Folded text whose stacks end before the scheduler."""
    return _SCHEDULER.sub(rb" \4", folded)
